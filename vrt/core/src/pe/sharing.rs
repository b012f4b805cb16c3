//! Long copies between PEs of a node, in which both ends take part.
//!
//! The receiver's PE copies a long message directly from the sender's buffer. The sender waits for that, and very often
//! its PE has nothing else to do. So the receiver's PE announces the copy in a packet, and if the other PE processes
//! that while something is left, it takes its share, from the other end ([`Claims`]):
//!
//! ```text
//! receiver's PE: begin, tell the other -> copy from the front ----> all claimed -> wait -> done
//! sender's PE:        (packet comes) ----> copy from the back ----> all claimed
//! ```
//!
//! Correctness does not depend on this help: a busy PE processes the packet late and finds nothing to do. The
//! receiver's PE does nothing else meanwhile, so neither the receiver nor the waiting sender moves away.

use std::ops::Range;

use vrt_shm::MOST_PIECES;
use vrt_slot::Arena;

use crate::net::shared::Idleness;
use crate::net::{Data, Kind, Packet};
use crate::pe::core::Core;

/// Messages this long are worth telling another PE of: to copy half of one takes some times as long as the packet.
pub(super) const SHARED: usize = 32 << 10;
/// Messages this long are worth waking it.
const WORTH_WAKING: usize = 1 << 20;
/// Bytes of a piece, if there are not too many.
const PIECE: usize = 4 << 10;

/// A copy that is shared.
#[derive(Clone, Copy)]
struct SharedCopy {
    from: *const u8,
    to: *mut u8,
    len: usize,
}

impl SharedCopy {
    fn piece(&self) -> usize {
        let mut piece = PIECE;
        while self.len.div_ceil(piece) > MOST_PIECES as usize {
            piece *= 2;
        }
        piece
    }

    fn pieces(&self) -> u32 {
        self.len.div_ceil(self.piece()) as u32
    }

    /// # Safety
    /// The buffers are valid for the length and do not overlap, and nobody else uses these pieces of `to`.
    unsafe fn copy(&self, pieces: &Range<u32>) {
        let begin = pieces.start as usize * self.piece();
        let end = (pieces.end as usize * self.piece()).min(self.len);
        // SAFETY: as the caller promises.
        unsafe {
            std::ptr::copy_nonoverlapping(self.from.add(begin), self.to.add(begin), end - begin);
        }
    }
}

impl Core {
    /// Copies a message from the buffer of a sender who waits to that of its receive, with the help of the sender's PE
    /// if that pays.
    ///
    /// # Safety
    /// The buffers are valid for the length. They may overlap: a message to oneself.
    pub(super) unsafe fn copy_message(
        &mut self,
        packet: &Packet,
        from: *const u8,
        to: *mut u8,
        len: usize,
    ) {
        match self.helper(packet, to, len) {
            // SAFETY: as the caller promises; a rank of another PE is another one.
            Some(helper) => unsafe { self.share_copy(helper, SharedCopy { from, to, len }) },
            // SAFETY: as the caller promises.
            None => unsafe { std::ptr::copy(from, to, len) },
        }
    }

    /// The PE that could help with a copy.
    fn helper(&self, packet: &Packet, to: *mut u8, len: usize) -> Option<u32> {
        if len < SHARED || packet.kind != Kind::Rendezvous || self.options.oversubscribed {
            return None;
        }
        let pe = self.shared.location(packet.from).pe()?;
        let is_other = pe != self.id && self.shared.is_near(pe);
        // Its process sees what lies in the arena.
        let is_seen = || Arena::contains(to.addr()) && Arena::contains(to.addr() + len - 1);
        let is_awake = || {
            let idle = &self.shared.pe(pe as usize).idle;
            idle.load(std::sync::atomic::Ordering::Relaxed) == Idleness::Busy as u32
        };
        (is_other && is_seen() && (len >= WORTH_WAKING || is_awake())).then_some(pe)
    }

    /// # Safety
    /// As [`copy_message`](Self::copy_message), of buffers that do not overlap, and `to` lies in the arena.
    unsafe fn share_copy(&mut self, helper: u32, copy: SharedCopy) {
        let claims = &self.block().copying;
        let pieces = copy.pieces();
        let (round, first) = claims.begin(pieces);
        let mut packet = Packet::new(Kind::Help, 0, 0);
        packet.sequence = round;
        packet.request = self.id;
        packet.data =
            Data::words([copy.from.addr() as u64, copy.to.addr() as u64, copy.len as u64]);
        // SAFETY: nothing lies beside the packet.
        unsafe { self.net.try_send(helper as usize, &packet, std::ptr::null()) };
        let mut own = 0;
        let mut part = Some(first);
        while let Some(claimed) = part {
            // SAFETY: as the caller promises; claimed by this PE.
            unsafe { copy.copy(&claimed) };
            own += claimed.len() as u32;
            part = claims.claim_front();
        }
        while !claims.are_finished(own, pieces) {
            std::hint::spin_loop();
        }
    }

    /// Takes part in a copy of another PE, if there is something left of it.
    pub(super) fn help(&mut self, packet: &Packet) {
        let [from, to, len] = [0, 1, 2].map(|i| packet.data.word(i) as usize);
        let copy = SharedCopy {
            from: std::ptr::with_exposed_provenance(from),
            to: std::ptr::with_exposed_provenance_mut(to),
            len,
        };
        let claims = &self.shared.pe(packet.request as usize).copying;
        while let Some(claimed) = claims.claim_back(packet.sequence) {
            // SAFETY: the copy is under way, as this PE has claimed a part of it, and goes on until that is done; both
            // buffers lie in the arena, which is mapped at the same address here.
            unsafe { copy.copy(&claimed) };
            claims.finish(claimed.len() as u32);
        }
    }
}
