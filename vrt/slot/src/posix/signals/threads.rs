//! The signals of threads that ranks start: each has its own mask, and signals for itself.

use std::sync::atomic::Ordering;

use super::tables::{ThreadSignals, caller, existing, of_slot, slot_of_caller};
use crate::{heap_word, image, sys};

/// The caller starts a thread, which gets its mask. Returns null if signals are the process's.
pub(crate) fn thread_is_made() -> *mut ThreadSignals {
    let Some(caller) = caller() else { return std::ptr::null_mut() };
    let blocked = caller.thread.blocked.load(Ordering::SeqCst);
    let thread = heap_word::runtime_heap(|| Box::into_raw(Box::new(ThreadSignals::new(blocked))));
    caller.signals.locked(|| {
        // SAFETY: just made: nobody else knows it yet.
        unsafe { (*thread).next.set(caller.signals.threads.load(Ordering::Relaxed)) };
        caller.signals.threads.store(thread, Ordering::Release);
    });
    thread
}

/// The thread that the caller has started has this identity, if it still exists.
pub(crate) fn thread_is_known(thread: *mut ThreadSignals, identity: usize) {
    let Some(caller) = existing().filter(|_| !thread.is_null()) else { return };
    caller.signals.locked(|| {
        let is_it = |of: &&ThreadSignals| std::ptr::eq(*of, thread);
        if let Some(thread) = caller.signals.threads().find(is_it) {
            thread.identity.store(identity, Ordering::Relaxed);
        }
    });
}

/// The thread begins: signals that are already pending for it are delivered.
pub(crate) fn thread_begins() {
    let Some(caller) = existing() else { return };
    let thread = caller.thread;
    thread.identity.store(image::identity_of_thread(), Ordering::Relaxed);
    thread.number.store(sys::gettid() as u32, Ordering::SeqCst);
    caller.deliver(std::ptr::null_mut());
}

/// A thread has ended, or was not created. Signals pending for it alone are lost, as in any process.
///
/// # Safety
/// Null, or what `thread_is_made` has made for it, which it does not use any more.
pub(crate) unsafe fn thread_ends(thread: *mut ThreadSignals) {
    let signals = slot_of_caller().and_then(of_slot);
    let Some(signals) = signals.filter(|_| !thread.is_null()) else { return };
    signals.locked(|| {
        // SAFETY: P2, and P1: this is inside the lock.
        unsafe {
            let mut at = signals.threads.load(Ordering::Relaxed);
            if at == thread {
                signals.threads.store((*thread).next.get(), Ordering::Release);
            }
            while !at.is_null() {
                if (*at).next.get() == thread {
                    (*at).next.set((*thread).next.get());
                }
                at = (*at).next.get();
            }
        }
    });
    // SAFETY: a box of `thread_is_made`, says the caller. Nobody finds it any more: who was about to does so with the lock.
    drop(unsafe { heap_word::runtime_heap(|| Box::from_raw(thread)) });
}
