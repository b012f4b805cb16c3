//! The transport to PEs that share no memory with this one.
//!
//! Packets are collected by destination and sent together as a *batch*; packets to one PE keep
//! their order. Long message data is sent separately, as a *transfer* from its source to its
//! destination: the receiving side expects it under a number, sends the number in its
//! `ClearToSend`, and the sending side sends the data under that number.
//!
//! A waiting PE must poll: there are no wake-ups.

use crate::net::{CELL, Packet};

/// A transport between PEs that share no memory. Its errors end the job, which cannot run without it.
pub trait Remote {
    /// Adds a packet and its payload to a PE's batch; false when there is no room now.
    fn send(&mut self, pe: usize, packet: &Packet, payload: &[u8]) -> bool;

    /// Sends the current batch of a PE, to which something was sent just now; but only once
    /// between two calls of [`flush`](Self::flush), as more may follow.
    fn flush_lane(&mut self, pe: usize);

    /// Sends the current batches of all PEs.
    fn flush(&mut self);

    /// Makes progress; returns whether a batch has arrived or a transfer has completed.
    fn is_ready(&mut self) -> bool;

    /// Takes the next batch that has arrived.
    fn take(&mut self) -> Option<Batch>;

    /// Returns a batch that has been read to the transport.
    fn give_back(&mut self, batch: Batch);

    /// Expects a transfer to `at`. Returns the number under which it must be sent, never 0, or
    /// `None` when too many transfers are expected already.
    ///
    /// # Safety
    /// `len` bytes at `at` are writable, and not accessed otherwise, until the transfer has completed.
    unsafe fn expect(&mut self, at: *mut u8, len: u64, of: Transfer) -> Option<u32>;

    /// Sends a transfer that a PE expects under a number.
    ///
    /// # Safety
    /// `len` bytes at `at` are readable until the transfer has completed.
    unsafe fn transfer(&mut self, pe: usize, number: u32, at: *const u8, len: u64, of: Transfer);

    /// The next completed transfer.
    fn take_done(&mut self) -> Option<Transfer>;

    /// Whether a send has not completed, or a transfer is expected.
    fn is_busy(&self) -> bool;

    /// Packets sent and received so far.
    fn counts(&self) -> (u64, u64);
}

/// The request that a transfer serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The rank of the job whose request it is; it stays on its PE until the transfer is done.
    pub(crate) rank: u32,
    /// Number of the request in that rank.
    pub(crate) request: u32,
}

/// Packets that have arrived together; the first one contains their number.
#[derive(Debug)]
pub struct Batch {
    /// The sending PE.
    pub from: u32,
    /// Their address, until the batch is returned.
    pub start: *const u8,
}

impl Batch {
    /// Calls `f` with each packet and the address of the data that follows it.
    ///
    /// # Safety
    /// The batch was taken from a transport and has not been returned yet, and contains what a PE
    /// of this job has put into it.
    #[inline]
    pub unsafe fn for_each(&self, mut f: impl FnMut(&Packet, *const u8)) {
        let mut at = self.start;
        // SAFETY: each packet lies in a cell of its own, as the sender has written it, and what is
        // beside it in the cells that follow; as many follow as the first one says.
        unsafe {
            for _ in 0..*in_batch(at) {
                let packet = &*at.cast::<Packet>();
                f(packet, at.add(CELL));
                at = at.add(cells_of(packet.payload()));
            }
        }
    }
}

/// The number of packets in a batch: stored between its first packet and the data that follows.
#[inline(always)]
pub fn in_batch(start: *const u8) -> *mut u32 {
    const { assert!(CELL >= size_of::<Packet>() + size_of::<u32>()) };
    start.wrapping_add(size_of::<Packet>()).cast_mut().cast()
}

/// Bytes that a packet takes in a batch, followed by this much data.
#[inline]
pub fn cells_of(payload: usize) -> usize {
    CELL + payload.next_multiple_of(CELL)
}
