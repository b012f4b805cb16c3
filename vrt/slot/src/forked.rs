//! Whether this process was forked from one with ranks, and runs none of its own.
//!
//! Such a process shares the arena with its parent, and has a copy of the tables of what the parent's
//! ranks hold. It changes neither: it gives no block of the arena back, and keeps no accounts. A PE is
//! such a process, too, until it begins.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_COPY: AtomicBool = AtomicBool::new(false);

/// Whether this process is such a copy.
pub(crate) fn is_copy() -> bool {
    IS_COPY.load(Ordering::Relaxed)
}

/// Says whether it is.
pub(crate) fn set_copy(is_copy: bool) {
    IS_COPY.store(is_copy, Ordering::Relaxed);
}
