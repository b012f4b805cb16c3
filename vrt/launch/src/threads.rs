//! Threads that a PE has beside its own: they take no signals, for these are the PE's thread's.

use std::mem::MaybeUninit;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Thread;

/// The thread that has begun last, until whoever started it has seen that.
static BEGUN: Mutex<Option<Thread>> = Mutex::new(None);
static BEGINS: Condvar = Condvar::new();

/// Starts a thread and waits until it has begun. `None`: none can be made.
///
/// A thread takes a reference to its own handle when it begins. Were that later than the PE looks at what is counted
/// (`vrt_slot::external::counted`), that would take it for something of a rank's and search all of them for it,
/// each time that somebody asks what keeps them here.
pub(super) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Option<Thread> {
    let begin = move || {
        *BEGUN.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current());
        BEGINS.notify_all();
        run();
    };
    without_signals(|| {
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(128 << 10);
        thread.spawn(begin).ok()?;
        let begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = BEGINS.wait_while(begun, |begun| begun.is_none());
        begun.unwrap_or_else(PoisonError::into_inner).take()
    })
}

/// Runs `f` with all signals blocked, as a thread that it starts has them then.
pub(super) fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the first call writes the set that the second reads.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = f();
    // SAFETY: the call above has written what was before: it cannot fail with this `how`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_thread_has_begun_when_it_was_started() {
        let (tell, told) = channel();
        let run = move || {
            let mut mask = MaybeUninit::uninit();
            // SAFETY: writes the set that is read then.
            let is_blocked = unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
                libc::sigismember(mask.as_ptr(), libc::SIGTERM)
            };
            tell.send((std::thread::current().id(), is_blocked)).unwrap();
        };
        let thread = start("vrt-begins", run).unwrap();
        assert_eq!(thread.name(), Some("vrt-begins"));
        assert_eq!(told.recv().unwrap(), (thread.id(), 1));
        assert!(BEGUN.lock().unwrap().is_none());
    }
}
