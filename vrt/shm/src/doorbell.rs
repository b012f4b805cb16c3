//! How an idle PE sleeps and how others wake it.
//!
//! ```text
//! sleeper                                waker
//!   state = ASLEEP                         publish work (a ring cell)
//!   heavy fence                            light fence
//!   look for work once more                state == AWAKE ? done
//!   futex wait while state == ASLEEP       state = AWAKE, futex wake (or write the eventfd)
//!   state = AWAKE
//! ```
//!
//! The two fences order "work published" against "state read" on one side and "state written"
//! against "work looked for" on the other: one of the two always sees the other (Dekker), so no
//! wake-up is lost. A waker pays two loads when the PE is awake.
//!
//! A full fence waits until what was published has left the processor, which takes as long as the
//! message itself. So if the system supports it, the sleeper pays for both: its heavy fence is
//! `membarrier` (`GLOBAL_EXPEDITED`), a full fence on every processor that runs a registered
//! process, and the light fence of a registered waker is only a compiler fence. A sleeper publishes
//! in its doorbell that it does so; a waker that is not registered, or finds that the sleeper does
//! not, uses a full fence.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, compiler_fence};

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
    /// 1: the sleeper's fence is one of all registered processes.
    heavy: AtomicU32,
}

/// Whether this process takes part in other processes' heavy fences.
#[cfg(not(loom))]
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Makes this process take part in other processes' heavy fences, if the system supports that. Its wake-ups are cheaper
/// then.
#[cfg(not(loom))]
pub fn register() {
    let can = membarrier(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
    REGISTERED.store(can, Ordering::Relaxed);
}

#[cfg(not(loom))]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

impl Doorbell {
    /// The doorbell of an awake PE.
    #[cfg(loom)]
    pub fn new() -> Self {
        Doorbell { state: AtomicU32::new(AWAKE), heavy: AtomicU32::new(0) }
    }

    /// Makes the sleeper's fences heavy from now on, if the system supports that.
    #[cfg(not(loom))]
    pub fn make_heavy(&self) {
        let can = membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED);
        self.heavy.store(u32::from(can), Ordering::Relaxed);
    }

    /// Announces that the caller is about to sleep. It must look for work once more after this, and call
    /// [`awake`](Self::awake) in any case before it continues. `false`: a wake-up may be missed this time, because the
    /// system has refused the fence, so the caller must look again after a while.
    #[inline]
    #[must_use]
    pub fn announce(&self, how: Sleep) -> bool {
        let state = match how {
            Sleep::Futex => ASLEEP,
            Sleep::Event => ASLEEP_ON_EVENT,
        };
        self.state.store(state, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // The kernel may have no memory for it, or the next one may have. Who rings goes on without a fence: it
        // may have read `heavy` just now.
        #[cfg(not(loom))]
        if self.heavy.load(Ordering::Relaxed) != 0 {
            return membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED);
        }
        true
    }

    /// The sleeper continues.
    #[inline]
    pub fn awake(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Whether it has been rung since [`announce`](Self::announce).
    #[inline]
    pub fn has_rung(&self) -> bool {
        self.state.load(Ordering::Acquire) == AWAKE
    }

    /// Wakes the sleeper if it sleeps; to be called after the work was published. Returns how it sleeps if the caller
    /// has to wake it: exactly one of several wakers gets this result.
    #[inline]
    pub fn ring(&self) -> Option<Sleep> {
        self.fence_of_waker();
        if self.state.load(Ordering::Relaxed) == AWAKE {
            return None;
        }
        match self.state.swap(AWAKE, Ordering::AcqRel) {
            ASLEEP => Some(Sleep::Futex),
            ASLEEP_ON_EVENT => Some(Sleep::Event),
            _ => None,
        }
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn fence_of_waker(&self) {
        if REGISTERED.load(Ordering::Relaxed) && self.heavy.load(Ordering::Relaxed) != 0 {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    #[cfg(loom)]
    fn fence_of_waker(&self) {
        fence(Ordering::SeqCst);
    }

    /// Sleeps in the futex until it is rung or `timeout` has passed.
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
