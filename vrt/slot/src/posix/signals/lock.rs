//! The lock of a rank's signals. A signal handler may run on the thread that holds it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use vrt_load::thread_pointer;

/// A lock that knows its holder: 0, or the holder's thread pointer.
#[derive(Debug)]
pub(super) struct Lock {
    holder: AtomicUsize,
    /// A handler has run in between, and must be repeated.
    is_missed: AtomicBool,
}

impl Lock {
    pub(super) const fn new() -> Lock {
        Lock { holder: AtomicUsize::new(0), is_missed: AtomicBool::new(false) }
    }

    /// Runs `f`, which only reads and writes memory, with the lock. `None` if the caller is a handler that has
    /// interrupted the holder: then the kernel's signal is repeated when the holder is done.
    pub(super) fn with<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let own = thread_pointer::get();
        while let Err(holder) =
            self.holder.compare_exchange_weak(0, own, Ordering::Acquire, Ordering::Relaxed)
        {
            if holder == own {
                self.is_missed.store(true, Ordering::Relaxed);
                return None;
            }
            std::hint::spin_loop();
        }
        let result = f();
        self.holder.store(0, Ordering::Release);
        if self.is_missed.swap(false, Ordering::Relaxed) {
            super::nudge::nudge_self();
        }
        Some(result)
    }
}
