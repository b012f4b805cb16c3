//! What a job's configuration says that its ranks look at.

use std::sync::atomic::{AtomicBool, Ordering};

use vrt_core::pe;
use vrt_launch::Config;

/// Memory that ranks leave in their heaps is reported.
static CHECKS_LEAKS: AtomicBool = AtomicBool::new(false);

/// Ranks are moved.
static IS_BALANCED: AtomicBool = AtomicBool::new(false);

/// Takes over the settings of a job, before it begins.
pub(crate) fn set(config: &Config) {
    CHECKS_LEAKS.store(config.checks_leaks(), Ordering::Relaxed);
    IS_BALANCED.store(config.balances(), Ordering::Relaxed);
}

/// Whether memory that ranks leave in their heaps is reported.
pub(crate) fn checks_leaks() -> bool {
    CHECKS_LEAKS.load(Ordering::Relaxed)
}

/// Whether a rank may be moved to a node that shares no memory with its own.
pub(crate) fn ranks_leave_nodes() -> bool {
    IS_BALANCED.load(Ordering::Relaxed) && pe::with(|pe| pe.engine.shared().nodes() > 1)
}
