//! Whether this process was forked from one with ranks, and runs none of its own.
//!
//! Such a process shares the arena with its parent, and has a copy of the tables of what the parent's
//! ranks hold. It changes neither: it gives no block of the arena back, and keeps no accounts. A PE is
//! such a process, too, until it begins; and so is the child that a rank forks, which goes on as that rank
//! ([`fork`](super::fork)).

use std::sync::atomic::{AtomicBool, Ordering};

static IS_COPY: AtomicBool = AtomicBool::new(false);
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process is such a copy.
pub(crate) fn is_copy() -> bool {
    IS_COPY.load(Ordering::Relaxed)
}

/// Says whether it is.
pub(crate) fn set_copy(is_copy: bool) {
    IS_COPY.store(is_copy, Ordering::Relaxed);
}

/// Whether this process is one that a rank has forked, and goes on as that rank.
#[inline]
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Says that it is.
pub(crate) fn set_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    set_copy(true);
}
