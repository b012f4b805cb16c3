//! `vrt`'s own timers. A timer is a request number and a deadline, so it can move with its rank.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::pe::Engine;
use crate::pe::ranks::Request;

/// Running timers, the earliest first: deadline, rank, request.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32, u32)>>,
}

impl Engine {
    /// Starts a timer of the running rank; its request is done when `duration` has passed.
    pub(crate) fn start_timer(&mut self, duration: Duration) -> u32 {
        let request = self.running().new_request(Request::send());
        let far = Duration::from_secs(60 * 60 * 24 * 365);
        let deadline = Instant::now() + duration.min(far);
        self.timers.heap.push(Reverse((deadline, self.current, request)));
        request
    }

    /// Finishes the timers whose time has come; returns the time until the next one.
    pub(crate) fn run_timers(&mut self) -> Option<Duration> {
        loop {
            let Reverse((deadline, rank, request)) = *self.timers.heap.peek()?;
            let now = Instant::now();
            if deadline > now {
                return Some(deadline - now);
            }
            self.timers.heap.pop();
            self.complete(rank, request);
        }
    }

    pub(crate) fn has_timers(&self) -> bool {
        !self.timers.heap.is_empty()
    }
}
