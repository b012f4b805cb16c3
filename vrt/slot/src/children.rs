//! Waiting for children of this process that end by themselves or were killed.

use std::ffi::c_int;
use std::io;

use crate::sys;

/// Waits until a child has ended, whatever signals arrive meanwhile. Returns its status as `waitpid` does; `None`: the
/// child does not exist.
pub fn wait_for(child: libc::pid_t, options: c_int) -> Option<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is writable.
        match unsafe { libc::waitpid(child, &raw mut status, options) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            ended => return (ended == child).then_some(status),
        }
    }
}

/// Kills a child and waits until it has gone.
pub fn end(child: libc::pid_t) {
    sys::kill(child, libc::SIGKILL);
    wait_for(child, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Plain;

    #[test]
    #[cfg_attr(miri, ignore = "it starts a program")]
    #[expect(clippy::zombie_processes, reason = "`wait_for` waits for it")]
    fn children_are_waited_for_in_spite_of_signals() {
        extern "C" fn nothing(_: c_int) {}
        let mut action = libc::sigaction::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        // SAFETY: a handler that does nothing, for a signal that no other test uses.
        unsafe { libc::sigaction(libc::SIGURG, &raw const action, std::ptr::null_mut()) };
        let this = sys::pthread_self();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let id = child.id() as libc::pid_t;
        let interrupts = std::thread::spawn(move || {
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_millis(2));
                // SAFETY: `this` exists: it joins this thread.
                unsafe { libc::pthread_kill(this, libc::SIGURG) };
            }
            child.kill().unwrap();
        });
        let status = wait_for(id, 0);
        assert_eq!(status.map(|status| libc::WTERMSIG(status)), Some(libc::SIGKILL));
        interrupts.join().unwrap();
        assert_eq!(wait_for(id, 0), None, "it is gone");
    }
}
