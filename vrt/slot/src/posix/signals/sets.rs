//! Signals as numbers and sets, and what a program has set for one.

use std::ffi::c_int;

use crate::sys::Plain;

pub(super) const COUNT: usize = 65;
/// The kernel's first real-time signal; libc keeps the first two for itself.
pub(super) const FIRST_REAL_TIME: c_int = 32;

/// The handling of a signal.
#[derive(Clone, Copy)]
pub(super) struct Action {
    pub(super) handler: usize,
    pub(super) flags: c_int,
    pub(super) mask: u64,
}

impl Action {
    pub(super) const DEFAULT: Action = Action { handler: libc::SIG_DFL, flags: 0, mask: 0 };

    pub(super) fn is_handler(&self) -> bool {
        !matches!(self.handler, libc::SIG_DFL | libc::SIG_IGN)
    }

    /// Whether a signal that is not blocked is dropped.
    pub(super) fn drops(&self, signal: c_int) -> bool {
        self.handler == libc::SIG_IGN
            || self.handler == libc::SIG_DFL && is_ignored_by_default(signal)
    }
}

pub(super) fn bit(signal: c_int) -> u64 {
    1 << ((signal - 1) as u32 & 63)
}

/// Whether a number is that of a signal for which a program may have a handler.
pub(super) fn is_handled(signal: c_int) -> bool {
    is_signal(signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP
}

pub(super) fn is_signal(signal: c_int) -> bool {
    (1..COUNT as c_int).contains(&signal)
}

pub(super) fn is_ignored_by_default(signal: c_int) -> bool {
    [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT].contains(&signal)
}

/// The first 64 signals of a set, which are all that exist.
pub(super) fn word_of(set: &libc::sigset_t) -> u64 {
    // Its lowest bit is signal 1. The two that nothing can block are left out.
    // SAFETY: a set is an array of words.
    let word = unsafe { std::ptr::from_ref(set).cast::<u64>().read() };
    word & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP))
}

/// Signals as a set.
pub(super) fn set_of(word: u64) -> libc::sigset_t {
    let mut set = libc::sigset_t::zeroed();
    // SAFETY: a set is an array of words.
    unsafe { (&raw mut set).cast::<u64>().write(word) };
    set
}
