//! Pending signals: what each carries, in order of arrival.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sets::{FIRST_REAL_TIME, bit};
use crate::sys::{self, Plain};

/// What a signal carries: the part of `siginfo_t` that a sender provides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Info {
    pub(crate) signal: c_int,
    /// Its cause (`SI_USER`, `SI_QUEUE`, `SI_TIMER`, `CLD_EXITED`, ..).
    pub(crate) code: c_int,
    /// The sender and its user, or the child's; for a timer, its number and its overrun count.
    pub(crate) pid: libc::pid_t,
    pub(crate) uid: libc::uid_t,
    /// How the child ended.
    pub(crate) status: c_int,
    /// The value that it was sent with.
    pub(crate) value: usize,
}

impl Info {
    /// Sent by the calling process to itself.
    pub(crate) fn sent(signal: c_int, code: c_int, value: usize) -> Info {
        let pid = std::process::id() as libc::pid_t;
        Info { signal, code, pid, uid: sys::getuid(), value, status: 0 }
    }

    /// In the form for programs.
    pub(super) fn described(&self) -> libc::siginfo_t {
        /// The fields after the first three numbers, for a signal that was sent and for a child's.
        #[repr(C)]
        struct Sent {
            head: [c_int; 4],
            pid: c_int,
            uid: u32,
            value: usize,
        }
        const { assert!(size_of::<Sent>() <= size_of::<libc::siginfo_t>()) };
        let mut info = libc::siginfo_t::zeroed();
        (info.si_signo, info.si_code) = (self.signal, self.code);
        // SAFETY: a description is longer, and as strictly aligned; these are numbers, where the kernel has them.
        let sent = unsafe { &mut *(&raw mut info).cast::<Sent>() };
        (sent.pid, sent.uid) = (self.pid, self.uid);
        sent.value = match self.signal == libc::SIGCHLD && self.code > 0 {
            true => self.status as u32 as usize,
            false => self.value,
        };
        info
    }
}

/// Signals pending for one thread or for all threads of a rank.
#[derive(Debug)]
pub(super) struct Pending {
    /// Changed with the lock, and read without it.
    set: AtomicU64,
    queue: [Info; Pending::MOST],
    len: usize,
}

impl Pending {
    /// The most that are stored with their data.
    const MOST: usize = 64;

    pub(super) const fn new() -> Pending {
        let none = Info { signal: 0, code: 0, pid: 0, uid: 0, status: 0, value: 0 };
        Pending { set: AtomicU64::new(0), queue: [none; Pending::MOST], len: 0 }
    }

    /// Which signals are pending, for callers that need not have the lock.
    pub(super) fn set_of(this: &UnsafeCell<Pending>) -> u64 {
        // SAFETY: of what others may change now only this atomic is referred to.
        unsafe { (*this.get()).set.load(Relaxed) }
    }

    fn has(&self, signals: u64) -> u64 {
        self.set.load(Relaxed) & signals
    }

    /// Adds one; returns false if there is no room for one that must be counted. For signals that are not real-time,
    /// the first one represents all.
    pub(super) fn add(&mut self, info: Info) -> bool {
        let is_counted = info.signal >= FIRST_REAL_TIME;
        if !is_counted && self.has(bit(info.signal)) != 0 {
            return true;
        }
        if self.len == Pending::MOST {
            if is_counted {
                return false;
            }
        } else {
            self.queue[self.len] = info;
            self.len += 1;
        }
        self.set.store(self.has(!0) | bit(info.signal), Relaxed);
        true
    }

    /// Takes the first of those with the lowest number in a set.
    pub(super) fn take(&mut self, wanted: u64) -> Option<Info> {
        let ready = self.has(wanted);
        if ready == 0 {
            return None;
        }
        let signal = ready.trailing_zeros() as c_int + 1;
        let there = &self.queue[..self.len];
        let Some(at) = there.iter().position(|info| info.signal == signal) else {
            self.set.store(self.has(!bit(signal)), Relaxed);
            return Some(Info { signal, ..Info::default() });
        };
        let info = self.queue[at];
        self.queue.copy_within(at + 1..self.len, at);
        self.len -= 1;
        if !self.queue[..self.len].iter().any(|info| info.signal == signal) {
            self.set.store(self.has(!bit(signal)), Relaxed);
        }
        Some(info)
    }

    /// Removes those of a timer, by its number.
    pub(super) fn forget_timer(&mut self, signal: c_int, number: c_int) {
        let is_its = |info: &Info| {
            info.signal == signal && info.code == libc::SI_TIMER && info.pid == number
        };
        let mut left = 0;
        for at in 0..self.len {
            if !is_its(&self.queue[at]) {
                self.queue[left] = self.queue[at];
                left += 1;
            }
        }
        let is_gone = left < self.len;
        self.len = left;
        if is_gone && !self.queue[..left].iter().any(|info| info.signal == signal) {
            self.set.store(self.has(!bit(signal)), Relaxed);
        }
    }

    /// Removes all of one kind.
    pub(super) fn forget(&mut self, signal: c_int) {
        while self.take(bit(signal)).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(signal: c_int, value: usize) -> Info {
        Info { signal, value, ..Info::default() }
    }

    fn taken(pending: &mut Pending, wanted: u64) -> Vec<(c_int, usize)> {
        let next = || pending.take(wanted).map(|info| (info.signal, info.value));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn one_of_the_old_signals_stands_for_all_and_real_time_signals_are_counted() {
        let real_time = FIRST_REAL_TIME + 1;
        let mut pending = Pending::new();
        for value in 0..3 {
            assert!(pending.add(one(real_time, value)) && pending.add(one(libc::SIGUSR1, value)));
        }
        let all = [(libc::SIGUSR1, 0), (real_time, 0), (real_time, 1), (real_time, 2)];
        assert_eq!(taken(&mut pending, !0), all);
        assert_eq!(pending.has(!0), 0);
    }

    #[test]
    fn only_what_is_wanted_is_taken_or_forgotten() {
        let mut pending = Pending::new();
        for signal in [libc::SIGTERM, libc::SIGUSR2, 64, libc::SIGHUP] {
            assert!(pending.add(one(signal, 7)));
        }
        assert_eq!(
            taken(&mut pending, bit(64) | bit(libc::SIGTERM)),
            [(libc::SIGTERM, 7), (64, 7)]
        );
        pending.forget(libc::SIGUSR2);
        assert_eq!(taken(&mut pending, !0), [(libc::SIGHUP, 7)]);
    }

    #[test]
    fn what_a_timer_has_sent_is_forgotten_with_it() {
        let of_timer = |pid| Info { code: libc::SI_TIMER, pid, ..one(40, pid as usize) };
        let mut pending = Pending::new();
        for info in [of_timer(1), one(40, 9), of_timer(2), of_timer(1)] {
            assert!(pending.add(info));
        }
        pending.forget_timer(40, 1);
        assert_eq!(taken(&mut pending, !0), [(40, 9), (40, 2)]);
        assert!(pending.add(of_timer(3)));
        pending.forget_timer(40, 3);
        assert_eq!(pending.has(!0), 0);
    }

    #[test]
    fn a_full_queue_refuses_what_is_counted_and_loses_nothing_else() {
        let mut pending = Pending::new();
        assert!((0..Pending::MOST).all(|value| pending.add(one(40, value))));
        assert!(!pending.add(one(40, 99)) && pending.add(one(libc::SIGUSR1, 5)));
        assert_eq!(pending.take(bit(libc::SIGUSR1)).map(|info| info.value), Some(0));
        assert_eq!(taken(&mut pending, !0).len(), Pending::MOST);
    }
}
