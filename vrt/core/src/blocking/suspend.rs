//! Suspending the rank inside a call that is not `vrt`'s.

use crate::error::Site;
use crate::pe;
use vrt_slot::{foreign, fork, rank};

/// Whether the caller is a rank that can be suspended in the middle of whatever it does.
pub(super) fn may_suspend() -> bool {
    pe::in_rank() && !std::thread::panicking() && !foreign::is_inside_tokio() && !fork::is_child()
}

/// Suspends the rank until `is_over` or the deadline (by [`pe::monotonic`]) has come; `is_over` is
/// asked whenever something has woken the rank. Returns whether it is over. `lock` is the word of a
/// lock or condition that the rank waits for, with which it cannot be moved.
pub(super) fn suspend_until(
    call: &'static str,
    lock: Option<usize>,
    deadline: Option<u64>,
    mut is_over: impl FnMut() -> bool,
) -> bool {
    let mut timer = deadline.map(|at| pe::with(|pe| pe.engine.start_timer_at(at)));
    let over = loop {
        if is_over() {
            break true;
        }
        let late = pe::with(|pe| {
            let state = pe.engine.running();
            if timer.is_some_and(|timer| state.take_if_done(timer).is_some()) {
                return true;
            }
            state.blocked.lock = lock;
            state.await_request(None, Site { call, location: None }.wait(None));
            false
        });
        if late {
            timer = None;
            break false;
        }
        rank::suspend_and_resume();
    };
    pe::with(|pe| {
        if let Some(timer) = timer {
            pe.engine.cancel_timer(timer);
        }
        let state = pe.engine.running();
        state.blocked.lock = None;
        // A future that the rank was polling may have come to its end meanwhile, and nobody was
        // told: whoever waits next looks again.
        state.notified = true;
    });
    over
}

/// Suspends the rank for a time.
pub(super) fn sleep_until(call: &'static str, deadline: u64) {
    suspend_until(call, None, Some(deadline), || false);
}
