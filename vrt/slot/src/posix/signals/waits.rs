//! Waiting with signals, for code that suspends ranks or waits with their threads: waits that a signal ends, and waits
//! that consume signals.
//!
//! A wait that a signal may end looks like this: [`counts`]; wait until [`is_deliverable`]; [`deliver`]; was a handler
//! called since? A suspended rank declares by [`Look`] that it checks for signals itself.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use super::nudge::system_call;
use super::sets::word_of;
use super::tables::{caller, existing, slot_of_caller};
use crate::image;
use crate::posix::interpose::real;

/// How many handlers have run on the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All handlers.
    pub handled: u32,
    /// Those after which calls that could continue end nevertheless (no `SA_RESTART`).
    pub interrupting: u32,
}

/// The handlers that have run on the calling thread so far; `None` if programs' signals are the process's.
pub fn counts() -> Option<Counts> {
    let caller = existing()?;
    Some(Counts {
        handled: caller.thread.handled.load(Ordering::Relaxed),
        interrupting: caller.thread.interrupting.load(Ordering::Relaxed),
    })
}

/// Whether the caller is a rank that runs an image, or a thread of one.
pub fn are_own() -> bool {
    slot_of_caller().is_some()
}

/// Whether a signal is pending for the calling thread that it has not blocked.
pub fn is_deliverable() -> bool {
    existing().is_some_and(|caller| {
        caller.collect();
        caller.signals.is_deliverable(caller.thread)
    })
}

/// Runs the calling thread's handlers for pending signals that are not blocked.
pub fn deliver() {
    if let Some(caller) = existing() {
        caller.deliver(std::ptr::null_mut());
    }
}

/// While it lives, the calling thread checks for signals itself, and takes those of a set.
#[derive(Debug)]
pub struct Look(());

impl Look {
    /// Begins to check.
    pub fn begin(set: u64) -> Look {
        if let Some(caller) = caller() {
            caller.thread.waits_for.store(set, Ordering::SeqCst);
            caller.thread.looks.store(true, Ordering::Relaxed);
        }
        Look(())
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        if let Some(caller) = existing() {
            caller.thread.waits_for.store(0, Ordering::SeqCst);
            caller.thread.looks.store(false, Ordering::Relaxed);
        }
    }
}

/// Takes one signal of a set out of those pending for the calling thread; returns its number. `info`, if given,
/// receives its data.
///
/// # Safety
/// `info` is null, or there is room for it.
pub unsafe fn take(set: u64, info: *mut libc::siginfo_t) -> Option<c_int> {
    let taken = existing()?.take(set)?;
    if !info.is_null() {
        // SAFETY: there is room, says the caller.
        unsafe { info.write(taken.described()) };
    }
    Some(taken.signal)
}

/// Whether one of a set is pending for the calling thread.
pub fn is_waiting(set: u64) -> bool {
    existing().is_some_and(|caller| {
        caller.collect();
        caller.signals.waiting_for(caller.thread) & set != 0
    })
}

/// A set of signals as a word.
///
/// # Safety
/// Null, or a set.
pub unsafe fn word(set: *const libc::sigset_t) -> Option<u64> {
    // SAFETY: null, or readable, says the caller.
    unsafe { set.as_ref() }.map(word_of)
}

/// Gives the calling thread another mask; returns the previous one.
pub fn exchange_mask(mask: u64) -> u64 {
    caller().map_or(0, |caller| caller.thread.blocked.swap(mask, Ordering::SeqCst))
}

/// How many signals have arrived for the calling thread.
pub fn came() -> u32 {
    existing().map_or(0, |caller| caller.thread.came.load(Ordering::SeqCst))
}

/// Waits with the thread until something arrives that was not counted in `seen`, up to a limit (in nanoseconds).
pub fn wait_in_kernel(seen: u32, most: u64) {
    let Some(caller) = existing() else { return };
    let time = libc::timespec {
        tv_sec: (most / 1_000_000_000) as libc::time_t,
        tv_nsec: (most % 1_000_000_000) as libc::c_long,
    };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let (word, time) = (caller.thread.came.as_ptr() as usize, (&raw const time) as usize);
    // SAFETY: the kernel reads the word, which is this thread's (P2), and the time.
    let wait = || unsafe {
        system_call(libc::SYS_futex, [word, operation as usize, seen as usize, time]);
    };
    match is_thread() {
        true => where_cancelled(wait),
        false => wait(),
    }
}

/// Whether the caller is a thread that a rank has started.
pub fn is_thread() -> bool {
    image::base_of_thread().is_some()
}

/// Runs `f` as libc runs a call that is a cancellation point.
fn where_cancelled(f: impl FnOnce()) {
    type Function = unsafe extern "C-unwind" fn(c_int, *mut c_int) -> c_int;
    const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;
    let set = real!(c"pthread_setcanceltype", Function);
    let mut before = 0;
    // SAFETY: S4; `before` is writable. If the thread is cancelled, all in between is unwound.
    unsafe {
        set(PTHREAD_CANCEL_ASYNCHRONOUS, &raw mut before);
        f();
        set(before, std::ptr::null_mut());
    }
}

/// The calling thread's mask.
pub fn mask() -> u64 {
    existing().map_or(0, |caller| caller.thread.blocked.load(Ordering::SeqCst))
}
