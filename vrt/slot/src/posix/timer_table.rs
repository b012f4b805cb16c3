//! The timers of a rank: which exist, how often each has expired, and what it has sent. Part of the rank's signals.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

use crate::posix::signals::pending::Info;

/// The clocks of a rank's timers, and the signal of each: `ITIMER_REAL`, `ITIMER_VIRTUAL`, `ITIMER_PROF`. The system
/// does not distinguish a thread's user time from its system time.
pub(super) const KINDS: [(libc::clockid_t, c_int); 3] = [
    (libc::CLOCK_MONOTONIC, libc::SIGALRM),
    (libc::CLOCK_THREAD_CPUTIME_ID, libc::SIGVTALRM),
    (libc::CLOCK_THREAD_CPUTIME_ID, libc::SIGPROF),
];

/// The most timers of a rank: those above, and those of `timer_create`.
pub(super) const MOST: usize = KINDS.len() + 32;

/// The timers of a rank.
pub(crate) struct Timers(pub(super) [Timer; MOST]);

/// A timer, if it exists.
#[derive(Default)]
pub(super) struct Timer {
    is_made: AtomicBool,
    /// The kernel's number.
    pub(super) number: AtomicI32,
    /// The signal that it sends; 0: none.
    pub(super) signal: AtomicI32,
    value: AtomicUsize,
    /// How often it has expired since that was last added to the pending signals.
    run_off: AtomicU32,
    /// Its signal is pending; how many more times it has expired, and had when the last one was taken.
    waits: AtomicBool,
    missed: AtomicU32,
    pub(super) overrun: AtomicU32,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers(std::array::from_fn(|_| Timer::default()))
    }
}

impl Timer {
    pub(super) fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Acquire)
    }

    /// The kernel's timer, in the form of its system calls.
    pub(super) fn kernels(&self) -> libc::timer_t {
        self.number.load(Ordering::Relaxed) as usize as libc::timer_t
    }

    /// Becomes the kernel's timer `made`.
    pub(super) fn begin(&self, made: libc::timer_t, signal: c_int, value: usize) {
        self.number.store(made as usize as c_int, Ordering::Relaxed);
        self.signal.store(signal, Ordering::Relaxed);
        self.value.store(value, Ordering::Relaxed);
        for counter in [&self.run_off, &self.missed, &self.overrun] {
            counter.store(0, Ordering::Relaxed);
        }
        self.waits.store(false, Ordering::Relaxed);
        self.is_made.store(true, Ordering::Release);
    }

    /// Deletes it.
    pub(super) fn end(&self) {
        if self.is_made.swap(false, Ordering::AcqRel) {
            // SAFETY: the call takes a number; `begin` has set it to that of a timer of the rank's.
            unsafe { libc::syscall(libc::SYS_timer_delete, self.kernels()) };
        }
    }
}

impl Timers {
    /// A nudge has reported one. In a handler.
    pub(crate) fn has_run_off(&self, which: u32) {
        if let Some(timer) = self.0.get(which as usize).filter(|timer| timer.is_made()) {
            timer.run_off.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Posts the signals of expired timers, with the lock of the rank's signals.
    pub(crate) fn collect(&self, mut post: impl FnMut(Info) -> bool) {
        for (which, timer) in self.0.iter().enumerate().filter(|(_, timer)| timer.is_made()) {
            let times = match timer.run_off.load(Ordering::SeqCst) {
                0 => continue,
                _ => timer.run_off.swap(0, Ordering::SeqCst),
            };
            if timer.waits.swap(true, Ordering::Relaxed) {
                timer.missed.fetch_add(times, Ordering::Relaxed);
                continue;
            }
            timer.missed.store(times - 1, Ordering::Relaxed);
            /// The kernel's own code, for `setitimer`.
            const SI_KERNEL: c_int = 0x80;
            let signal = timer.signal.load(Ordering::Relaxed);
            let posted = match which < KINDS.len() {
                true => Info { signal, code: SI_KERNEL, ..Info::default() },
                false => Info {
                    signal,
                    code: libc::SI_TIMER,
                    pid: timer.number.load(Ordering::Relaxed),
                    value: timer.value.load(Ordering::Relaxed),
                    ..Info::default()
                },
            };
            // Those of `setitimer` are not asked how often.
            if signal == 0 || !post(posted) || which < KINDS.len() {
                timer.waits.store(false, Ordering::Relaxed);
            }
        }
    }

    /// The signal of a timer is taken: stores the overrun count.
    pub(crate) fn is_taken(&self, info: &mut Info) {
        let it =
            |timer: &&Timer| timer.is_made() && timer.number.load(Ordering::Relaxed) == info.pid;
        if let Some(timer) = self.0[KINDS.len()..].iter().find(it) {
            let missed = timer.missed.swap(0, Ordering::Relaxed);
            timer.overrun.store(missed, Ordering::Relaxed);
            timer.waits.store(false, Ordering::Relaxed);
            info.uid = missed;
        }
    }

    /// A child has none of its parent's timers.
    pub(crate) fn forget(&self) {
        self.0.iter().for_each(|timer| timer.is_made.store(false, Ordering::Relaxed));
    }
}
