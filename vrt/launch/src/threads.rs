//! Additional threads of a PE. They block all signals, which are meant for the PE's own thread.

use std::mem::MaybeUninit;
use std::thread::Thread;

use vrt_slot::external::counted;

/// Starts a thread, before the PE begins. `None`: no thread can be created.
pub(super) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Option<Thread> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(128 << 10);
    let thread = without_signals(|| thread.spawn(run)).ok()?.thread().clone();
    counted::leave_out(&thread);
    Some(thread)
}

/// Runs `f` with all signals blocked, which a thread that it starts inherits.
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
    fn a_thread_has_its_name_and_takes_no_signals() {
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
    }
}
