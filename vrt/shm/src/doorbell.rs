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
//!
//! **Marks.** A PE to which many send would have to look at every ring. From then on it asks for marks
//! ([`Doorbell::ask_for_marks`]): who rings it after sending sets the bit of its ring, and the PE looks
//! only at rings whose bits are set.
//!
//! ```text
//! receiver                               sender
//!   taken = marks.swap(0)                  publish work (a ring cell)
//!   look at the rings in `taken`           light fence
//!                                          state has MARKED ? marks |= own bit, light fence
//! ```
//!
//! The bit is set after the cell was published, and cleared before the ring is read, so a cell that the
//! receiver overlooks has its bit set again. A sender that finds no MARKED has published its cell before the
//! heavy fence of `ask_for_marks`: the receiver looks at all rings once after it. A PE that asks costs each of
//! its senders an atomic instruction per message, any other PE nothing: MARKED is in the word that a sender
//! reads in any case.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, compiler_fence};

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const ASLEEP_ON_EVENT: u32 = 2;
/// The bits of the states above.
const SLEEP: u32 = ASLEEP | ASLEEP_ON_EVENT;
/// Beside them: the PE has asked for marks. Only the PE itself changes it.
const MARKED: u32 = 4;

/// How a PE goes to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// In the futex of the doorbell.
    Futex,
    /// Outside, for example in `epoll_wait`: the waker must use the sleeper's event descriptor.
    Event,
}

/// The word a PE sleeps on, and the marks of its rings; valid when zeroed (awake, without marks).
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Doorbell {
    state: AtomicU32,
    /// 1: the sleeper's fence is one of all registered processes.
    heavy: AtomicU32,
    marks: Marks,
}

/// Bits of rings, on another cache line: senders that set them do not disturb those that only look at the state.
#[derive(Debug)]
#[repr(align(64))]
struct Marks(AtomicU64);

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
        Doorbell {
            state: AtomicU32::new(AWAKE),
            heavy: AtomicU32::new(0),
            marks: Marks(AtomicU64::new(0)),
        }
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
        // Nobody else changes it while the PE is awake.
        let marked = self.state.load(Ordering::Relaxed) & MARKED;
        self.state.store(state | marked, Ordering::Relaxed);
        self.fence_of_sleeper()
    }

    /// `false`: the system has refused the fence. The kernel may have no memory for it, or the next one may have. Who
    /// rings goes on without a fence: it may have read `heavy` just now.
    fn fence_of_sleeper(&self) -> bool {
        fence(Ordering::SeqCst);
        #[cfg(not(loom))]
        if self.heavy.load(Ordering::Relaxed) != 0 {
            return membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED);
        }
        true
    }

    /// Has those who send from now on mark their rings. The PE, which is awake, must look at all rings once after this.
    /// `false`: it did not work, because the system has refused the fence; nothing has changed.
    #[must_use]
    pub fn ask_for_marks(&self) -> bool {
        self.state.fetch_or(MARKED, Ordering::Relaxed);
        let works = self.fence_of_sleeper();
        if !works {
            self.state.fetch_and(!MARKED, Ordering::Relaxed);
        }
        works
    }

    /// Whether a ring is marked.
    #[inline]
    pub fn has_marks(&self) -> bool {
        self.marks.0.load(Ordering::Acquire) != 0
    }

    /// The rings that were marked since the last call, a bit each; all that was sent there before is seen.
    #[inline]
    pub fn take_marks(&self) -> u64 {
        if self.has_marks() { self.marks.0.swap(0, Ordering::AcqRel) } else { 0 }
    }

    /// The sleeper continues.
    #[inline]
    pub fn awake(&self) {
        self.state.fetch_and(MARKED, Ordering::Relaxed);
    }

    /// Whether it has been rung since [`announce`](Self::announce).
    #[inline]
    pub fn has_rung(&self) -> bool {
        self.state.load(Ordering::Acquire) & SLEEP == AWAKE
    }

    /// Wakes the sleeper if it sleeps; to be called after the work was published, in anything but a ring. Returns how it
    /// sleeps if the caller has to wake it: exactly one of several wakers gets this result.
    #[inline]
    pub fn ring(&self) -> Option<Sleep> {
        self.fence_of_waker();
        self.wake_from(self.state.load(Ordering::Relaxed))
    }

    /// The same after something was sent in the ring of this PE.
    #[inline]
    pub fn ring_for(&self, sender: u32) -> Option<Sleep> {
        self.fence_of_waker();
        let mut state = self.state.load(Ordering::Relaxed);
        if state == AWAKE {
            return None;
        }
        if state & MARKED != 0 {
            self.marks.0.fetch_or(1 << Doorbell::mark_of(sender), Ordering::Release);
            // It may have gone to sleep before it saw the mark.
            self.fence_of_waker();
            state = self.state.load(Ordering::Relaxed);
        }
        self.wake_from(state)
    }

    /// The number of the bit that stands for the rings of a sender.
    #[inline]
    pub fn mark_of(sender: u32) -> usize {
        (sender % u64::BITS) as usize
    }

    #[inline]
    fn wake_from(&self, state: u32) -> Option<Sleep> {
        if state & SLEEP == AWAKE {
            return None;
        }
        match self.state.fetch_and(MARKED, Ordering::AcqRel) & SLEEP {
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
        let asleep = ASLEEP | self.state.load(Ordering::Relaxed) & MARKED;
        // SAFETY: the word is a live, aligned u32; FUTEX_WAIT without the PRIVATE flag works
        // across processes; every outcome (woken, value changed, interrupted, time-out) is a
        // reason for the caller to look again.
        unsafe {
            libc::syscall(libc::SYS_futex, self.word(), libc::FUTEX_WAIT, asleep, timeout);
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
