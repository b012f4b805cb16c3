//! Suspends the rank inside a call that is not `vrt`'s.

use std::time::Duration;

use crate::error::Site;
use crate::pe;
use vrt_slot::{foreign, fork, rank, signals};

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

/// What has ended a wait that a signal may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// The awaited event has happened.
    Over,
    /// The time has elapsed.
    Late,
    /// A handler of the caller's signal has run.
    Signal,
}

/// Nanoseconds after which a wait without an end of its own looks again: with a time it is no deadlock, as somebody
/// may send a signal.
pub(super) const FAR: u64 = 3_600_000_000_000;

/// Waits until `is_over` or the deadline (by [`pe::monotonic`]) has come, or a handler of the caller's was called,
/// which is done here; looks again after `pause` nanoseconds at the latest. Who cannot be suspended waits with its
/// thread. `takes` are signals that `is_over` takes itself.
pub(super) fn wait_for(
    call: &'static str,
    takes: u64,
    deadline: Option<u64>,
    pause: u64,
    mut is_over: impl FnMut() -> bool,
) -> WaitEnd {
    let look = signals::Look::begin(takes);
    let before = signals::counts().unwrap_or_default();
    drop(look);
    let mut over = false;
    loop {
        let look = signals::Look::begin(takes);
        let until = deadline.unwrap_or(u64::MAX).min(pe::monotonic().saturating_add(pause));
        let ready = || {
            over = is_over();
            over || signals::is_deliverable()
        };
        match may_suspend() {
            true => suspend_until(call, None, Some(until), ready),
            false => wait_in_kernel(until, ready),
        };
        drop(look);
        let error = signals::errno();
        signals::deliver();
        if over {
            signals::fail(error);
            return WaitEnd::Over;
        }
        if signals::counts().is_some_and(|now| now.handled != before.handled) {
            return WaitEnd::Signal;
        }
        if deadline.is_some_and(|deadline| deadline <= pe::monotonic()) {
            return WaitEnd::Late;
        }
    }
}

/// Waits with the calling thread.
fn wait_in_kernel(until: u64, mut is_over: impl FnMut() -> bool) -> bool {
    loop {
        let seen = signals::came();
        if is_over() {
            return true;
        }
        let now = pe::monotonic();
        if now >= until {
            return false;
        }
        signals::wait_in_kernel(seen, until - now);
    }
}

/// Suspends the rank for a moment, or lets its thread sleep.
pub fn pause_briefly() {
    const MOMENT: u64 = 1_000_000;
    match may_suspend() {
        true => sleep_until("pthread_exit", pe::monotonic().saturating_add(MOMENT)),
        false => std::thread::sleep(Duration::from_nanos(MOMENT)),
    }
}

/// Suspends the rank for a time.
pub(super) fn sleep_until(call: &'static str, deadline: u64) {
    suspend_until(call, None, Some(deadline), || false);
}
