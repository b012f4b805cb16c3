//! Limits the memory of unexpected messages.
//!
//! A rank whose unexpected messages take more than `--unexpected` is *held*: nothing is refused, but its senders keep
//! the data, and a standard send completes only when its receive is posted, as if it were synchronous. Then only
//! headers arrive, of which a rank that waits for its sends can cause only one. The order of messages does not change,
//! and a message for which a receive is posted is matched, so this can stop a program only if it relies on unlimited
//! buffering of sends, which MPI does not guarantee (MPI-4.1 section 3.5).
//!
//! ```text
//!                     more than the limit
//!      not held  ------------------------------->  held: a bit in the rank's location, in this node;
//!                <-------------------------------        `Hold` to nodes that send it data
//!                     less than half of it
//! ```
//!
//! That a rank is held is known to its PE, to its node by the bit, and to nodes that were told; everywhere but at its
//! PE it is a hint, so both kinds of send are always understood. A rank that moves takes along that it is held and
//! which nodes were told. What a PE has told is revoked by way of that PE, wherever the rank is then: paths keep their
//! order, so the last message arrives last. If a hint was lost on the way, data that keeps arriving makes the PE tell
//! the node again.
//!
//! This costs nothing until the messages of a rank have reached marks that are set here: a length and a number of bytes
//! at which the limits are checked.

use crate::net::{Data, Kind, Packet};
use crate::pe::core::Core;
use crate::pe::unexpected::{Pool, Told};

/// Bytes of the pool that a PE uses without ever looking whether some can be given back.
const SMALL_POOL: usize = 16 << 20;
/// Packets with data from a node that was told to send none, after which it is told again: more than
/// can have been under way.
const PATIENCE: u32 = 1024;

impl Core {
    /// The unexpected messages of a rank here have reached a mark.
    #[cold]
    pub(crate) fn mind_unexpected(&mut self, rank: u32) {
        let (limit, from, id) = (self.options.unexpected, self.receiving_from, self.id);
        let (shared, near) = (self.shared, self.shared.is_near(from));
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        let bytes = state.unexpected_bytes();
        self.used.unexpected = self.used.unexpected.max((bytes, rank));
        if bytes <= limit {
            let room = (limit - bytes) / 2;
            state.unexpected.set_marks(room);
            state.flow.alarm = state.flow.pooled + room;
            return;
        }
        state.unexpected.mark_all();
        state.flow.alarm = 0;
        if !state.flow.held {
            state.flow.held = true;
            tracing::debug!(rank, bytes, "takes no more unexpected messages");
        }
        shared.location_entry(rank).hold();
        if near || from == id {
            return;
        }
        let node = shared.node_of(from);
        let told = &mut state.flow.told;
        match told.iter_mut().find(|told| shared.node_of(told.pe) == node) {
            Some(told) if told.since < PATIENCE => told.since += 1,
            Some(told) => {
                told.since = 0;
                let told = *told;
                self.tell_hold(rank, told, true);
            }
            None => {
                let new = Told { by: id, pe: from, since: 0 };
                told.push(new);
                self.tell_hold(rank, new, true);
            }
        }
    }

    /// A rank here has taken an unexpected message: a mark was reached, or it is held.
    #[cold]
    pub(crate) fn mind_taken(&mut self, rank: u32) {
        let limit = self.options.unexpected;
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        state.unexpected.shrink();
        if state.flow.held && state.unexpected_bytes() <= limit / 2 {
            self.shared.location_entry(rank).release();
            state.flow.held = false;
            let told = std::mem::take(&mut state.flow.told);
            self.end_hold(rank, told);
            self.mind_unexpected(rank);
        }
    }

    /// A rank is not held any more: nodes that were told otherwise are told.
    pub(crate) fn end_hold(&mut self, rank: u32, told: Vec<Told>) {
        for told in told {
            self.tell_hold(rank, told, false);
        }
    }

    fn tell_hold(&mut self, rank: u32, told: Told, held: bool) {
        let mut control = Packet::new(Kind::Hold, rank, told.by);
        control.wants_finish = held;
        control.data = Data::words([u64::from(told.pe), 0, 0]);
        if told.by == self.id {
            self.learn_hold(&control);
        } else {
            // SAFETY: nothing lies beside this kind.
            unsafe { self.net.send(told.by as usize, &control, std::ptr::null()) };
        }
    }

    /// It is said whether a rank is held, to this PE or by way of it.
    pub(crate) fn learn_hold(&mut self, packet: &Packet) {
        let pe = packet.data.word(0) as u32;
        if pe != self.id {
            // SAFETY: nothing lies beside this kind.
            return unsafe { self.net.send(pe as usize, packet, std::ptr::null()) };
        }
        // It may have come to this node meanwhile, where it is known better.
        let shared = self.shared;
        if shared.has_near(packet.from) {
            return;
        }
        if packet.wants_finish {
            shared.location_entry(packet.from).hold_unless(|pe| shared.is_near(pe));
        } else {
            shared.location_entry(packet.from).release();
        }
    }

    /// The pool has handed out a block.
    #[inline]
    pub(super) fn pool_grew(&mut self) {
        // SAFETY: the pool is this PE's.
        let bytes = unsafe { (*(*self.pool).heap.get()).bytes };
        if bytes > self.pool_marks.high {
            let high = bytes.max(SMALL_POOL);
            self.pool_marks = Pool { high: 2 * high, low: if bytes < high { 0 } else { high / 4 } };
        }
    }

    /// Frees what others have freed of the PE's memory.
    #[inline]
    pub(super) fn drain_pool(&mut self) {
        // SAFETY: the pool is this PE's.
        unsafe {
            if !(*self.pool).remote.is_empty() {
                vrt_slot::hooks::drain_remote(self.pool);
            }
        }
    }

    /// A block of the pool was given back.
    #[inline]
    pub(super) fn pool_shrank(&mut self) {
        // SAFETY: the pool is this PE's.
        let bytes = unsafe { (*(*self.pool).heap.get()).bytes };
        if bytes < self.pool_marks.low {
            self.trim_pool();
        }
    }

    /// Gives pages back that the pool does not need, if most of what it had is free. For a PE that
    /// has nothing else to do, too: others may have freed what ranks took along that have moved.
    #[cold]
    pub(crate) fn trim_pool(&mut self) {
        self.drain_pool();
        if self.pool_marks.low == 0 {
            return;
        }
        // SAFETY: the pool is this PE's.
        unsafe {
            let bytes = (*(*self.pool).heap.get()).bytes;
            if bytes < self.pool_marks.low {
                self.pool_marks = Pool::default();
                let given = vrt_slot::live::give_back(self.pool);
                tracing::debug!(bytes, given, "memory of unexpected messages is given back");
            }
        }
    }
}
