//! `vrt`'s own timers. A timer is a request number and a deadline, so it can move with its rank.
//!
//! Some have no deadline: they end one after another, the oldest first, when their PE has nothing else to do
//! (`pe::idle`), or when their rank has moved.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Nanoseconds of the system's monotonic clock, which is the same in all processes.
pub fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Running timers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// The earliest first: deadline by [`monotonic`], rank, request.
    pub(super) heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Timers that end when there is nothing else to do, the oldest first: rank, request.
    pub(super) for_idleness: VecDeque<(u32, u32)>,
}

impl Timers {
    /// Takes the timers of a rank out: deadline, which is over if it was none, and request.
    pub(crate) fn take_of(&mut self, rank: u32) -> Vec<(u64, u32)> {
        let mut taken = Vec::new();
        self.for_idleness.retain(|(of, request)| {
            if *of == rank {
                taken.push((0, *request));
            }
            *of != rank
        });
        self.heap.retain(|Reverse((deadline, of, request))| {
            if *of == rank {
                taken.push((*deadline, *request));
            }
            *of != rank
        });
        taken
    }

    /// [`take_of`](Self::take_of) with the time left instead of the deadline, for a machine whose
    /// clock is another.
    pub(crate) fn take_relative(&mut self, rank: u32) -> Vec<(u64, u32)> {
        let (now, timers) = (monotonic(), self.take_of(rank));
        timers.into_iter().map(|(deadline, of)| (deadline.saturating_sub(now), of)).collect()
    }

    /// Puts timers in that were taken with the time left.
    pub(crate) fn put_relative(&mut self, rank: u32, timers: &[(u64, u32)]) {
        let now = monotonic();
        let timers: Vec<_> =
            timers.iter().map(|(left, of)| (now.saturating_add(*left), *of)).collect();
        self.put(rank, &timers);
    }

    /// Adds the timers of a rank.
    pub(crate) fn put(&mut self, rank: u32, timers: &[(u64, u32)]) {
        self.heap
            .extend(timers.iter().map(|(deadline, request)| Reverse((*deadline, rank, *request))));
    }
}

impl Timers {
    /// When the next one ends, by [`monotonic`].
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((deadline, _, _))| *deadline)
    }

    /// Whether ranks wait for their PE to have nothing else to do.
    #[inline(always)]
    pub(super) fn await_idleness(&self) -> bool {
        !self.for_idleness.is_empty()
    }
}
