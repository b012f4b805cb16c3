//! Shipping: moves a rank to a PE that shares no memory with its own.
//!
//! The rank's slot has the same addresses in every node, so the live parts of its stack and heap ([`live`]) are sent
//! unchanged, in pieces through the transport, followed by its state. The pieces wait in the backlog of their lane, so
//! the PE does other work between them; they are read when they are sent from the slot, which nothing uses any more.
//!
//! ```text
//! PE A, node 1                                  PE B, node 2
//!   lease: away, unless in use (then it stays)
//!   Coming -----------------------------------> location = B: hold what comes; lease: moving
//!   location = B, in this node
//!   Memory, Memory, Memory ... ---------------> into the slot, same addresses
//!   parcel(state) ----------------------------> adopt; lease: here; tell the first PE of the rank
//!   the last piece is gone: keep the pages for a while, in case it comes back
//! ```
//!
//! The encoded state of a rank that moves by its state is sent in such pieces, too, out of A's pool and into B's; the
//! slot is unchanged.
//!
//! Anything that reaches a node that a rank has left is passed on (`pe::location`).
//!
//! The *lease* of a rank's memory in a node lets other PEs of the node use it in the middle of a message or a
//! collective operation: the rank does not leave while it is leased. Once it has left, data in its slot is requested
//! with `ClearToSend` instead.

use std::time::Instant;

use crate::migrate::kept::whole_lines;
use crate::migrate::left_behind::Leaving;
use crate::migrate::migration::{Migration, Stays};
use crate::migrate::state::{MovingRank, dispatch};
use crate::net::shared::Shared;
use crate::net::{Data, Kind, Packet};
use crate::pe::{Core, Encoded, Engine};
use vrt_shm::Begun;
use vrt_slot::{Arena, SlotId, hooks, live};

/// Bytes of departed ranks that a PE keeps, so that one that comes back finds its pages there.
const KEPT: usize = 256 << 20;

impl Migration {
    /// Sends a suspended rank that [`may_go`](Self::may_go) to a PE of another node; returns the bytes
    /// that travel.
    pub(super) fn ship(&mut self, core: &mut Core, rank: u32, to: u32) -> Result<u64, Stays> {
        let state = &mut core.ranks[rank as usize];
        if state.is_some() && core.shared.lease(rank).begin_leaving() == Begun::InUse {
            return Err(Stays::InUse);
        }
        let Some(state) = state.take() else { return Err(Stays::NotHere) };
        let slot = state.slot;
        // SAFETY: G1, and G2: what a suspended rank sends stays until it goes on.
        unsafe {
            core.net.keep_data_of(rank);
            hooks::drain_remote(slot);
            hooks::own(slot, 0);
        }
        core.announce(rank, to, state.moves.wrapping_add(1));
        // SAFETY: G1: nobody changes the slot until the last piece has gone.
        let ranges = unsafe { live::ranges(slot) };
        let timers = core.timers.take_relative(rank);
        let mut moving = MovingRank::pack(rank, state, timers);
        // SAFETY: G1: the rank was this PE's until now.
        unsafe { moving.detach() };
        let bytes: usize = ranges.iter().map(|(_, len)| len).sum();
        tracing::trace!(rank, to, bytes, ranges = ranges.len(), "shipped");
        self.send_memory(core, rank, to, &ranges);
        dispatch(core, rank, to, &mut moving);
        Ok(bytes as u64)
    }

    /// Sends the encoded state of a rank from its block of the pool, which is given back when the last piece
    /// has gone. It comes into such a block, too: the pieces say how long it is, and not where it lies.
    pub(super) fn send_state(&mut self, core: &mut Core, rank: u32, to: u32, state: Encoded) {
        let Encoded { at, len } = state;
        self.left_behind.leaving.push(Leaving { rank, bytes: len, state: Some(state) });
        let mut packet = Packet::new(Kind::Memory, rank, to);
        let len = whole_lines(len) as u64;
        packet.data = Data::words([0, 0, len]);
        core.net.stream_memory(to as usize, &packet, at, len, true);
    }

    /// Sends ranges of the slot of a rank that nobody uses any more; they are whole lines.
    fn send_memory(&mut self, core: &mut Core, rank: u32, to: u32, ranges: &[(usize, usize)]) {
        let bytes = ranges.iter().map(|(_, len)| len).sum();
        self.left_behind.leaving.push(Leaving { rank, bytes, state: None });
        for (i, (start, len)) in ranges.iter().enumerate() {
            let mut packet = Packet::new(Kind::Memory, rank, to);
            packet.data = Data::words([0, *start as u64, 0]);
            let last = i + 1 == ranges.len();
            core.net.stream_memory(to as usize, &packet, *start as *const u8, *len as u64, last);
        }
        if ranges.is_empty() {
            self.shipped(core.shared, rank);
        }
    }

    /// The block for the encoded state of a rank that is about to come: the first piece makes it.
    fn room_for_state(&mut self, core: &mut Core, packet: &Packet) -> *mut u8 {
        let len = packet.data.word(2) as usize;
        let room = || core.block_for(len, "the state of a rank that comes");
        *self.states.entry(packet.from).or_insert_with(room)
    }

    /// The last piece of a rank's memory has gone. Its pages stay in case it comes back, until
    /// there are too many of them.
    fn shipped(&mut self, shared: Shared, rank: u32) {
        shared.lease(rank).has_left();
        let left = &mut self.left_behind;
        let Some(at) = left.leaving.iter().position(|of| of.rank == rank) else { return };
        let Leaving { bytes, state, .. } = left.leaving.swap_remove(at);
        if let Some(state) = state {
            // SAFETY: the block of the pool that `send_state` was given; its last piece has gone.
            unsafe { hooks::free_in_arena(state.at) };
        }
        left.departures += 1;
        left.bytes += bytes;
        left.order.push_back((rank, left.departures));
        if let Some((_, before)) = left.gone.insert(rank, (left.departures, bytes)) {
            left.bytes -= before;
        }
        if left.order.len() > 2 * left.gone.len() + 64 {
            let gone = &left.gone;
            left.order.retain(|(rank, departure)| {
                gone.get(rank).is_some_and(|(last, _)| last == departure)
            });
        }
        while left.bytes > KEPT
            && let Some((rank, departure)) = left.order.pop_front()
        {
            if left.gone.get(&rank).is_none_or(|(last, _)| *last != departure) {
                continue;
            }
            left.bytes -= left.gone.remove(&rank).map_or(0, |(_, bytes)| bytes);
            let Some(arena) = Arena::current() else { return };
            // SAFETY: the slot of a rank has its number; `while_away` runs this only while the rank is in another node.
            shared.while_away(rank, || unsafe { arena.discard(SlotId(rank)) });
        }
    }
}

/// A piece of the memory of a rank that is about to come, or of its encoded state.
///
/// # Safety
/// `payload` is readable for `packet.payload()` bytes.
pub(super) unsafe fn memory_came(engine: &mut Engine, packet: &Packet, payload: *const u8) {
    let (migration, core) = engine.part::<Migration>();
    let start = match packet.data.word(1) as usize {
        0 => migration.room_for_state(core, packet) as usize,
        in_slot => in_slot,
    };
    let to = start + packet.data.word(0) as usize;
    debug_assert!(Arena::contains(to) && packet.payload() > 0);
    let began = Instant::now();
    // SAFETY: G1: a part of the slot of a rank that is coming here, which was announced, so nobody gives its pages back;
    // or of a block of this PE's pool that `room_for_state` has got. The payload is readable, says the caller.
    unsafe { std::ptr::copy_nonoverlapping(payload, to as *mut u8, packet.payload()) };
    // Once into the ring, and once out of it.
    let seconds = 2.0 * began.elapsed().as_secs_f64();
    migration.costs.copied(packet.payload() as u64, seconds);
}

/// The last piece of a rank's memory has gone.
pub(super) fn memory_gone(engine: &mut Engine, rank: u32) {
    let (migration, core) = engine.part::<Migration>();
    migration.shipped(core.shared, rank);
}
