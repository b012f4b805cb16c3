//! Measures how long messages to and from other nodes keep a PE busy.
//!
//! The running time of ranks includes the transport: they send, and between two of them the PE receives. So the cost of
//! a message to another node must be measured in the transport. Polls that find nothing do not count: they are made
//! when there is nothing else to do.

use crate::cycles;
use crate::net::Packet;
use crate::net::remote::{Batch, Remote, Transfer};

/// The way to other nodes, with a clock.
pub(super) struct Clocked {
    way: Box<dyn Remote>,
    /// Cycles spent in it.
    cycles: u64,
}

impl Clocked {
    pub(super) fn new(way: Box<dyn Remote>) -> Clocked {
        Clocked { way, cycles: 0 }
    }

    /// Cycles in it so far.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }

    pub(super) fn into_way(self) -> Box<dyn Remote> {
        self.way
    }

    #[inline]
    fn clocked<T>(&mut self, call: impl FnOnce(&mut dyn Remote) -> T) -> T {
        let began = cycles::now();
        let result = call(&mut *self.way);
        self.cycles = self.cycles.wrapping_add(cycles::now().wrapping_sub(began));
        result
    }
}

impl Remote for Clocked {
    fn send(&mut self, pe: usize, packet: &Packet, payload: &[u8]) -> bool {
        self.clocked(|way| way.send(pe, packet, payload))
    }

    fn flush_lane(&mut self, pe: usize) {
        self.clocked(|way| way.flush_lane(pe));
    }

    fn flush(&mut self) {
        self.clocked(|way| way.flush());
    }

    fn is_ready(&mut self) -> bool {
        let before = self.cycles;
        let ready = self.clocked(|way| way.is_ready());
        if !ready {
            self.cycles = before;
        }
        ready
    }

    fn take(&mut self) -> Option<Batch> {
        self.clocked(|way| way.take())
    }

    fn give_back(&mut self, batch: Batch) {
        self.clocked(|way| way.give_back(batch));
    }

    unsafe fn expect(&mut self, at: *mut u8, len: u64, of: Transfer) -> Option<u32> {
        // SAFETY: as the caller promises.
        self.clocked(|way| unsafe { way.expect(at, len, of) })
    }

    unsafe fn transfer(&mut self, pe: usize, number: u32, at: *const u8, len: u64, of: Transfer) {
        // SAFETY: as the caller promises.
        self.clocked(|way| unsafe { way.transfer(pe, number, at, len, of) });
    }

    fn take_done(&mut self) -> Option<Transfer> {
        self.clocked(|way| way.take_done())
    }

    fn is_busy(&self) -> bool {
        self.way.is_busy()
    }

    fn counts(&self) -> (u64, u64) {
        self.way.counts()
    }
}
