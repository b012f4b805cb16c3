//! Counters of ranks that others increment: the one-sided half of RSX.
//!
//! A counter is identified by the context and number of its exchange, is created by the first
//! increment, and removed when its rank reads it. It is kept by the rank's PE, without the rank's
//! participation, and moves along with the rank. (Windows cannot be used: they do not reach other
//! nodes, and each rank keeps the addresses of all others.)

use crate::net::{Data, Kind, Packet};
use crate::pe::{Core, Engine, Request, Started};

/// Adds to a counter of a rank of the job, on behalf of the running rank; done when the addition
/// has happened.
pub fn count_up(core: &mut Core, rank: u32, counter: (u32, u32), amount: u64) -> Started {
    let is_done = match core.shared.location(rank).pe() {
        None => true,
        Some(pe) => pe == core.id && add_here(core, rank, counter, amount),
    };
    if is_done {
        return Started::done();
    }
    let mut packet = Packet::new(Kind::CountUp, core.current, rank);
    (packet.context, packet.sequence) = counter;
    packet.data = Data::words([amount, 0, 0]);
    packet.request = core.running().new_request(Request::send());
    core.post(&packet);
    core.outcome(packet.request)
}

fn add_here(core: &mut Core, rank: u32, counter: (u32, u32), amount: u64) -> bool {
    let Some(state) = core.rank(rank) else { return false };
    *state.counters_of_exchanges.entry(counter).or_default() += amount;
    true
}

/// Somebody adds to a counter of a rank of this PE.
///
/// # Safety
/// None: packets of this kind have no payload.
pub(crate) unsafe fn counted_up(engine: &mut Engine, packet: &Packet, _: *const u8) {
    let counter = (packet.context, packet.sequence);
    if add_here(engine, packet.to, counter, packet.data.word(0)) {
        engine.tell_finished(packet);
    } else {
        // SAFETY: packets of this kind have no payload.
        unsafe { engine.pass_on(packet, std::ptr::null()) };
    }
}
