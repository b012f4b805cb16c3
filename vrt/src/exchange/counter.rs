//! Counters of ranks that others increase: the one-sided half of RSX.
//!
//! A counter is known by the context and number of its exchange, comes to be when it is first
//! increased, and goes when its rank reads it. It is kept by the PE that has the rank, which takes
//! no part itself, and moves along. (Windows are no help here: they do not reach other nodes, and
//! each rank keeps the addresses of all others.)

use crate::net::shared::ENDED;
use crate::net::{Data, Kind, Packet};
use crate::pe::{Completion, Engine, Request, Started};

impl Engine {
    /// Adds to a counter of a rank of the job, on behalf of the running one; done when the
    /// addition has happened.
    pub(crate) fn count_up(&mut self, rank: u32, counter: (u32, u32), amount: u64) -> Started {
        let pe = self.shared.place(rank);
        if pe == ENDED || (pe == self.id && self.add_here(rank, counter, amount)) {
            return Started::Done(Completion::default());
        }
        let mut packet = Packet::new(Kind::CountUp, self.current, rank);
        (packet.context, packet.order) = counter;
        packet.data = Data::words([amount, 0, 0]);
        packet.request = self.running().new_request(Request::send());
        self.post(&packet);
        self.outcome(packet.request)
    }

    fn add_here(&mut self, rank: u32, counter: (u32, u32), amount: u64) -> bool {
        let Some(state) = self.rank(rank) else { return false };
        *state.counters_of_exchanges.entry(counter).or_default() += amount;
        true
    }

    /// Somebody adds to a counter of a rank of this PE.
    pub(crate) fn counted_up(&mut self, packet: &Packet) {
        let counter = (packet.context, packet.order);
        if self.add_here(packet.to, counter, packet.data.word(0)) {
            self.tell_finished(packet);
        } else {
            // SAFETY: nothing lies beside this kind.
            unsafe { self.pass_on(packet, std::ptr::null()) };
        }
    }
}
