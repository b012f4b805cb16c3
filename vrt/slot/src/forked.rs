//! Whether this process was forked from one with ranks, and runs no ranks itself.
//!
//! Such a process shares the arena with its parent, and has a copy of the tables of what the parent's ranks hold. It
//! changes neither: it frees no block of the arena, and keeps no accounts. A PE is such a process, too, until it
//! begins; and so is the child that a rank forks, which continues as that rank ([`fork`](crate::calls::fork)).

use std::sync::atomic::{AtomicBool, Ordering};

static IS_COPY: AtomicBool = AtomicBool::new(false);
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process is such a copy.
pub(crate) fn is_copy() -> bool {
    IS_COPY.load(Ordering::Relaxed)
}

/// Sets whether it is.
pub(crate) fn set_copy(is_copy: bool) {
    IS_COPY.store(is_copy, Ordering::Relaxed);
}

/// Whether this process is one that a rank has forked, and continues as that rank.
#[inline]
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Marks it as such a child.
pub(crate) fn set_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    set_copy(true);
}
