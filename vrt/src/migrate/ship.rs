//! Shipping: a rank goes to a PE that shares no memory with its own.
//!
//! The rank's slot has the same addresses in every node, so what is live of its stack and heap
//! ([`live`](vrt_slot::live)) goes there as it is, in pieces through the transport, and its
//! state after it. The pieces wait in the backlog of their lane, so the PE does other work between
//! them; they are read from the slot when they go, which nobody uses any more.
//!
//! ```text
//! PE A, node 1                                  PE B, node 2
//!   lease: away, unless in use (then it stays)
//!   Coming -----------------------------------> place = B: hold what comes for it; lease: moving
//!   place = B, in this node
//!   Memory, Memory, Memory ... ---------------> into the slot, same addresses
//!   parcel(state) ----------------------------> adopt; lease: here; tell the first PE of the rank
//!   the last piece is gone: keep the pages for a while, in case it comes back
//! ```
//!
//! What reaches a node that a rank has left is passed on, and the PE that sent it hears where the
//! rank went. A packet can overtake `Coming` on another way and be sent back and forth until that
//! has come; it is never lost, and numbers keep the order.
//!
//! The *lease* of a rank's memory in a node lets other PEs of the node use it in the middle of a
//! message or a collective operation: the rank does not leave while one is out. Once it has left,
//! data in its slot is asked for with `ClearToSend` instead.

use std::collections::VecDeque;
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::state::MovingRank;
use super::{Stays, Whereabouts};
use crate::net::{Data, Kind, Packet};
use crate::pe::Engine;
use vrt_slot::{Arena, SlotId, hooks, live};

/// The request number that stands for the last piece of a rank's memory.
pub(crate) const SHIPPED: u32 = u32::MAX;

/// Bytes of departed ranks that a PE keeps, so that one that comes back finds its pages there.
const KEPT: usize = 256 << 20;

/// Ranks that have been shipped, and the bytes of each that were live.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    /// Those whose last piece has not gone.
    leaving: Vec<(u32, usize)>,
    /// Number of the departure and bytes of each rank that has gone.
    gone: FxHashMap<u32, (u64, usize)>,
    /// The departures, oldest first; of a rank that went again only the last one counts.
    order: VecDeque<(u32, u64)>,
    departures: u64,
    bytes: usize,
}

/// The whole lines in which some bytes of a slot lie: what is sent has to consist of such.
pub(super) fn lines(at: usize, len: usize) -> Vec<(usize, usize)> {
    if len == 0 {
        return Vec::new();
    }
    let start = at & !(live::LINE - 1);
    vec![(start, (at + len).next_multiple_of(live::LINE) - start)]
}

impl Engine {
    /// Sends a suspended rank that [`may_go`](Self::may_go) to a PE of another node; returns the bytes that travel.
    pub(crate) fn ship(&mut self, rank: u32, to: u32) -> Result<u64, Stays> {
        if !self.shared.send_away(rank) {
            return Err(Stays::InUse);
        }
        let Some(state) = self.ranks[rank as usize].take() else { return Err(Stays::NotHere) };
        let slot = state.slot;
        // SAFETY: the rank is this PE's and suspended, so what it sends stays until it goes on.
        unsafe {
            self.net.keep_data_of(rank);
            hooks::drain_remote(slot);
            hooks::own(slot, 0);
        }
        self.announce(rank, to, state.moves.wrapping_add(1));
        // SAFETY: the slot is nobody's now and stays as it is until the last piece has gone.
        let ranges = unsafe { live::ranges(slot) };
        let timers = self.timers.take_relative(rank);
        let mut moving = MovingRank::pack(rank, *state, timers);
        // SAFETY: the rank was this PE's.
        unsafe { moving.detach() };
        let bytes: usize = ranges.iter().map(|(_, len)| len).sum();
        tracing::trace!(rank, to, bytes, ranges = ranges.len(), "shipped");
        self.send_memory(rank, to, &ranges);
        self.dispatch(rank, to, &mut moving);
        Ok(bytes as u64)
    }

    /// Sends ranges of the slot of a rank that nobody uses any more; see [`lines`].
    pub(super) fn send_memory(&mut self, rank: u32, to: u32, ranges: &[(usize, usize)]) {
        let bytes = ranges.iter().map(|(_, len)| len).sum();
        self.left_behind.leaving.push((rank, bytes));
        for (i, (start, len)) in ranges.iter().enumerate() {
            let mut packet = Packet::new(Kind::Memory, rank, to);
            packet.data = Data::words([0, *start as u64, 0]);
            let done = (i + 1 == ranges.len()).then_some((rank, SHIPPED));
            self.net.stream_memory(to as usize, &packet, *start as *const u8, *len as u64, done);
        }
        if ranges.is_empty() {
            self.shipped(rank);
        }
    }

    /// Tells a PE of another node that a rank will come.
    pub(super) fn announce(&mut self, rank: u32, to: u32, version: u32) {
        let mut coming = Packet::new(Kind::Coming, rank, to);
        coming.data = Data::words([u64::from(version), 0, 0]);
        // SAFETY: nothing lies beside this kind.
        unsafe { self.net.send(to as usize, &coming, std::ptr::null()) };
    }

    /// A rank is about to come.
    pub(crate) fn expect(&mut self, packet: &Packet) {
        self.shared.will_come(packet.from);
        self.shared.settle(packet.from, self.id, packet.data.word(0) as u32);
    }

    /// A piece of the memory of a rank that is about to come.
    ///
    /// # Safety
    /// `beside` is readable for `packet.beside()` bytes.
    pub(crate) unsafe fn take_memory(&mut self, packet: &Packet, beside: *const u8) {
        let to = (packet.data.word(1) + packet.data.word(0)) as usize;
        debug_assert!(Arena::contains(to) && packet.beside() > 0);
        let began = Instant::now();
        // SAFETY: a part of the slot of a rank that is nobody's but coming here; it was announced,
        // so nobody gives its pages back.
        unsafe { std::ptr::copy_nonoverlapping(beside, to as *mut u8, packet.beside()) };
        // Once into the ring, and once out of it.
        let seconds = 2.0 * began.elapsed().as_secs_f64();
        self.balancer.copied(packet.beside() as u64, seconds);
    }

    /// The last piece of a rank's memory has gone. Its pages stay in case it comes back, until
    /// there are too many of them.
    pub(crate) fn shipped(&mut self, rank: u32) {
        self.shared.has_left(rank);
        let left = &mut self.left_behind;
        let Some(at) = left.leaving.iter().position(|(of, _)| *of == rank) else { return };
        let (_, bytes) = left.leaving.swap_remove(at);
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
            // SAFETY: the slot of a rank has its number, and this rank is in another node.
            self.shared.while_away(rank, || unsafe { arena.discard(SlotId(rank)) });
        }
    }

    /// Tells the PE that sent what could not be delivered here where the rank is now.
    pub(super) fn tell_sender(&mut self, rank: u32) {
        let from = self.receiving_from;
        if from != self.id && !self.shared.is_near(from) {
            self.tell_place(rank, from);
        }
    }

    /// Tells a PE of another node where a rank is.
    pub(super) fn tell_place(&mut self, rank: u32, to: u32) {
        let (pe, version) = self.shared.place_and_version(rank);
        let mut news = Packet::new(Kind::Moved, rank, to);
        news.data = Data::words([u64::from(pe), u64::from(version), 0]);
        // SAFETY: nothing lies beside this kind.
        unsafe { self.net.send(to as usize, &news, std::ptr::null()) };
    }

    /// News of where a rank is.
    pub(crate) fn learn(&mut self, packet: &Packet) {
        let (pe, version) = (packet.data.word(0) as u32, packet.data.word(1) as u32);
        self.shared.learn(packet.from, pe, version);
    }

    /// A rank has come from another node: its first PE, where everybody asks who has never heard
    /// of it, shall know.
    pub(super) fn has_arrived(&mut self, rank: u32) {
        self.shared.has_come(rank);
        let home = self.shared.home(rank);
        if !self.shared.is_near(home) {
            self.tell_place(rank, home);
        }
    }

    /// Passes a packet on to another PE; `beside` as in `handle`.
    ///
    /// # Safety
    /// `beside` is readable for `packet.beside()` bytes.
    pub(super) unsafe fn forward(&mut self, packet: &Packet, pe: usize, beside: *const u8) {
        let mut packet = *packet;
        if !self.shared.is_near(pe as u32) {
            if packet.kind == Kind::Rendezvous {
                // The sender's memory cannot be read there.
                packet.kind = Kind::Staged;
            }
            self.tell_sender(packet.to);
        }
        // SAFETY: as the caller promises.
        unsafe { self.net.send(pe, &packet, beside) };
    }

    /// Where a rank is that is not on this PE.
    pub(super) fn find(&self, rank: u32) -> Whereabouts {
        match self.shared.place(rank) {
            crate::net::shared::ENDED => Whereabouts::Ended,
            pe if pe == self.id => Whereabouts::ComingHere,
            pe => Whereabouts::On(pe as usize),
        }
    }
}
