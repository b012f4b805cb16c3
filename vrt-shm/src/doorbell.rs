//! How an idle PE sleeps and how others wake it.
//!
//! ```text
//! sleeper                                waker
//!   state = ASLEEP                         publish work (a ring cell)
//!   fence(SeqCst)                          fence(SeqCst)
//!   look for work once more                state == AWAKE ? done
//!   futex wait while state == ASLEEP       state = AWAKE, futex wake (or write the eventfd)
//!   state = AWAKE
//! ```
//!
//! The two fences order "work published" against "state read" on one side and "state written"
//! against "work looked for" on the other: one of the two always sees the other (Dekker), so no
//! wake-up is lost. A waker pays one load when the PE is awake.

use crate::sync::{AtomicU32, Ordering, fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const ASLEEP_ON_EVENT: u32 = 2;

/// How a PE goes to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// In the futex of the doorbell.
    Futex,
    /// Outside, for example in `epoll_wait`: the waker must use the sleeper's event descriptor.
    Event,
}

/// The word a PE sleeps on; valid when zeroed (awake).
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Doorbell {
    state: AtomicU32,
}

impl Doorbell {
    /// An awake PE's doorbell.
    #[cfg(loom)]
    pub fn new() -> Self {
        Doorbell { state: AtomicU32::new(AWAKE) }
    }

    /// Announces that the caller is about to sleep. It must look for work once more after this,
    /// and call [`awake`](Self::awake) in any case before it goes on.
    #[inline]
    pub fn announce(&self, how: Sleep) {
        let state = match how {
            Sleep::Futex => ASLEEP,
            Sleep::Event => ASLEEP_ON_EVENT,
        };
        self.state.store(state, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The sleeper goes on.
    #[inline]
    pub fn awake(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Whether somebody has rung since [`announce`](Self::announce).
    #[inline]
    pub fn has_rung(&self) -> bool {
        self.state.load(Ordering::Acquire) == AWAKE
    }

    /// Wakes the sleeper if it sleeps; to be called after the work was published. Returns how it
    /// sleeps when the caller has to wake it: exactly one of several wakers is told so.
    #[inline]
    pub fn ring(&self) -> Option<Sleep> {
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == AWAKE {
            return None;
        }
        match self.state.swap(AWAKE, Ordering::AcqRel) {
            ASLEEP => Some(Sleep::Futex),
            ASLEEP_ON_EVENT => Some(Sleep::Event),
            _ => None,
        }
    }

    /// Sleeps in the futex until somebody rings or `timeout` has passed.
    #[cfg(not(loom))]
    pub fn wait(&self, timeout: Option<std::time::Duration>) {
        let timeout = timeout.map(|t| libc::timespec {
            tv_sec: t.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(t.subsec_nanos() as i32),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word is a live, aligned u32; FUTEX_WAIT without the PRIVATE flag works
        // across processes; every outcome (woken, value changed, interrupted, time-out) is a
        // reason for the caller to look again.
        unsafe {
            libc::syscall(libc::SYS_futex, self.word(), libc::FUTEX_WAIT, ASLEEP, timeout);
        }
    }

    /// The system call that goes with [`Sleep::Futex`] from [`ring`](Self::ring).
    #[cfg(not(loom))]
    pub fn wake(&self) {
        // SAFETY: as in `wait`.
        unsafe {
            libc::syscall(libc::SYS_futex, self.word(), libc::FUTEX_WAKE, 1);
        }
    }

    #[cfg(not(loom))]
    fn word(&self) -> *const u32 {
        self.state.as_ptr()
    }
}

#[cfg(loom)]
impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}
