//! The runtime's share of a PE's time.
//!
//! A switch takes one time stamp, so the time attributed to a rank includes the switch to it, and its calls. How much
//! that is can be determined by a thread beside the PE's, if there is one: it samples, while the PE is not idle,
//! whether a rank's code or the runtime's runs. So an unobserved job executes no extra instruction.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Looks that have found a rank's code, and that have found the runtime's.
static RANKS: AtomicU64 = AtomicU64::new(0);
static RUNTIME: AtomicU64 = AtomicU64::new(0);

/// What is to be done when somebody asks what the PE of this process does.
static WHEN_ASKED: OnceLock<fn()> = OnceLock::new();

/// Has `f` called each time that the state of this process's PE is requested: the shares may be requested next time.
pub fn when_asked(f: fn()) {
    // Of two PEs in one process both say the same.
    let _ = WHEN_ASKED.set(f);
}

pub(super) fn somebody_asks() {
    if let Some(f) = WHEN_ASKED.get() {
        f();
    }
}

/// Counts a sample of the PE of this process.
pub fn count_look(runs_rank: bool) {
    let of = if runs_rank { &RANKS } else { &RUNTIME };
    of.fetch_add(1, Ordering::Relaxed);
}

/// How often somebody has looked.
pub(super) fn looks() -> u64 {
    RANKS.load(Ordering::Relaxed) + own_looks()
}

/// How many of them have found the runtime.
pub(super) fn own_looks() -> u64 {
    RUNTIME.load(Ordering::Relaxed)
}

/// The runtime's part of the time that is booked to ranks; 0 if nobody has looked.
pub(super) fn of_runtime() -> f64 {
    own_looks() as f64 / looks().max(1) as f64
}
