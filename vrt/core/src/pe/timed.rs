//! Requests that are done when a time has passed, or when their PE has nothing else to do.

use std::cmp::Reverse;
use std::time::Duration;

use crate::pe::core::Core;
use crate::pe::requests::Request;
use crate::pe::timers::monotonic;

impl Core {
    /// Starts a timer of the running rank; its request is done when `duration` has passed.
    pub(crate) fn start_timer(&mut self, duration: Duration) -> u32 {
        let far = Duration::from_secs(60 * 60 * 24 * 365);
        self.start_timer_at(monotonic() + duration.min(far).as_nanos() as u64)
    }

    /// Starts a timer of the running rank whose request is done when [`monotonic`] says so much.
    pub(crate) fn start_timer_at(&mut self, deadline: u64) -> u32 {
        let request = self.running().new_request(Request::send());
        self.timers.heap.push(Reverse((deadline, self.current, request)));
        request
    }

    /// Starts a timer of the running rank whose request is done when its PE has nothing else to do.
    pub(crate) fn start_timer_for_idleness(&mut self) -> u32 {
        let request = self.running().new_request(Request::send());
        self.timers.for_idleness.push_back((self.current, request));
        request
    }

    /// There is nothing else to do: finishes the oldest timer that waits for that. False if there is none.
    pub(super) fn give_idleness(&mut self) -> bool {
        let oldest = self.timers.for_idleness.pop_front();
        if let Some((rank, request)) = oldest {
            self.complete(rank, request);
        }
        oldest.is_some()
    }

    /// Ends a timer of the running rank, whose outcome was not taken.
    pub(crate) fn cancel_timer(&mut self, request: u32) {
        let rank = self.current;
        self.timers.heap.retain(|Reverse((_, of, number))| (*of, *number) != (rank, request));
        self.timers.for_idleness.retain(|it| *it != (rank, request));
        let state = self.running();
        state.request_mut(request).done = true;
        state.take_if_done(request);
    }

    /// Finishes the timers whose time has come; returns the time until the next one.
    pub(crate) fn run_timers(&mut self) -> Option<Duration> {
        loop {
            let Reverse((deadline, rank, request)) = *self.timers.heap.peek()?;
            let now = monotonic();
            if deadline > now {
                return Some(Duration::from_nanos(deadline - now));
            }
            self.timers.heap.pop();
            self.complete(rank, request);
        }
    }

    pub(crate) fn has_timers(&self) -> bool {
        !self.timers.heap.is_empty()
    }
}
