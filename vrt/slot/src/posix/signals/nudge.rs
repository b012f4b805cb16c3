//! The *nudge*: how a thread is made to check for its rank's signals, now, or again in a moment. [`kernel`](super::kernel)
//! has the handler.

use std::ffi::{c_int, c_long, c_void};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::arena::{Arena, SlotHeader};
use crate::posix::interpose::real;
use crate::runtime::RUNTIME;
use crate::sys::Plain;
use crate::{forked, heap_word, sys};

/// The number of the nudge. The last number is the watchdog's.
pub(crate) fn number() -> c_int {
    libc::SIGRTMAX() - 1
}

/// How long until a rank that is in the runtime is nudged again, in nanoseconds; and the interval after this many
/// repetitions.
const AGAIN: c_long = 40_000;
const AT_LAST: c_long = 1_000_000;
const SOON: u32 = 200;
/// How often ranks were nudged again since a rank last ran its handlers.
static TIMES: AtomicU32 = AtomicU32::new(0);

/// The PE's thread.
static THREAD: AtomicI32 = AtomicI32::new(0);
/// The timer that nudges again, and the slots of the ranks concerned.
static RETRY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static HAS_RETRY: AtomicBool = AtomicBool::new(false);
static RETRY_FOR: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// What a nudge carries: nothing, or something for the rank of a slot. Numbers of slots are less than 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bears {
    /// A timer of a rank, by its index in the table.
    Timer(u32, u32),
    /// A signal that a child of a rank has sent to it.
    Signal(u32, u32),
    /// Nothing.
    Nothing,
}

impl Bears {
    const TIMER: usize = 1 << 62;
    const SIGNAL: usize = 2 << 62;

    pub(crate) fn word(self) -> usize {
        let word = |slot: u32, what: u32| (what as usize) << 32 | slot as usize;
        match self {
            Bears::Timer(slot, which) => Bears::TIMER | word(slot, which),
            Bears::Signal(slot, signal) => Bears::SIGNAL | word(slot, signal),
            Bears::Nothing => 0,
        }
    }

    pub(super) fn of(word: usize) -> Bears {
        let (slot, what) = (word as u32, (word >> 32) as u32 & 0x3fff_ffff);
        match word & (3 << 62) {
            Bears::TIMER => Bears::Timer(slot, what),
            Bears::SIGNAL => Bears::Signal(slot, what),
            _ => Bears::Nothing,
        }
    }

    pub(super) fn slot(self) -> Option<&'static SlotHeader> {
        let (Bears::Timer(slot, _) | Bears::Signal(slot, _)) = self else { return None };
        Arena::current()?.slot(slot)
    }
}

/// A system call, bypassing what is interposed in front of libc's.
///
/// # Safety
/// The call may be made with these arguments.
pub(super) unsafe fn system_call(number: c_long, [a, b, c, d]: [usize; 4]) -> c_long {
    type Function = unsafe extern "C-unwind" fn(c_long, ...) -> c_long;
    // SAFETY: S4; the rest says the caller.
    unsafe { real!(of_process c"syscall", Function)(number, a, b, c, d) }
}

/// Wakes threads that wait there.
pub(super) fn wake_waiting(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let arguments = [word.as_ptr() as usize, operation as usize, c_int::MAX as usize, 0];
    // SAFETY: the kernel wakes who waits at the word, and does not read it.
    unsafe { system_call(libc::SYS_futex, arguments) };
}

/// Interrupts a thread of this process, by the kernel's number.
pub(super) fn nudge(thread: u32) {
    let arguments = [process::id() as usize, thread as usize, number() as usize, 0];
    // SAFETY: the call takes numbers.
    unsafe { system_call(libc::SYS_tgkill, arguments) };
}

/// Interrupts the calling thread.
pub(super) fn nudge_self() {
    nudge(sys::gettid() as u32);
}

/// The kernel's number of the PE's thread.
pub(super) fn thread() -> c_int {
    THREAD.load(Ordering::Relaxed)
}

/// Interrupts the PE's thread.
pub(super) fn nudge_pe() {
    nudge(thread() as u32);
}

/// Whether the caller is the PE's thread.
pub(super) fn is_on_thread() -> bool {
    thread() == sys::gettid()
}

/// Makes a rank check for its signals if it does not check itself just now.
pub(super) fn nudge_rank(slot: &SlotHeader) {
    wake();
    if heap_word::pe_of_thread() != 0 {
        return nudge_again(slot);
    }
    remember(slot);
    nudge_pe();
}

/// Makes the PE resume ranks that have signals.
pub(super) fn wake() {
    if let Some(runtime) = RUNTIME.get().filter(|_| !forked::is_child()) {
        (runtime.signalled)();
    }
}

/// The next nudge also concerns the rank of a slot.
pub(super) fn remember(slot: &SlotHeader) {
    let own = std::ptr::from_ref(slot) as usize;
    let is_there = |place: &&AtomicUsize| {
        let now = place.compare_exchange(0, own, Ordering::SeqCst, Ordering::SeqCst);
        now.is_ok() || now == Err(own)
    };
    // If there is no room, the rank is found when it is nudged for one of those.
    let _: Option<&AtomicUsize> = RETRY_FOR.iter().find(is_there);
}

/// The rank of a slot is nudged again in a moment, if it has not checked by then.
pub(super) fn nudge_again(slot: &SlotHeader) {
    remember(slot);
    if HAS_RETRY.load(Ordering::Acquire) {
        let mut spec = libc::itimerspec::zeroed();
        let is_soon = TIMES.fetch_add(1, Ordering::Relaxed) < SOON;
        spec.it_value.tv_nsec = if is_soon { AGAIN } else { AT_LAST };
        let timer = RETRY.load(Ordering::Relaxed) as usize;
        // SAFETY: the kernel reads `spec`, for the timer that `make_retry` has made.
        unsafe { system_call(libc::SYS_timer_settime, [timer, 0, (&raw const spec) as usize, 0]) };
    }
}

/// Makes a system timer that nudges the PE's thread, with this purpose. `None`: the system has no more timers.
pub(crate) fn timer(clock: libc::clockid_t, bears: Bears) -> Option<libc::timer_t> {
    let mut event = libc::sigevent::zeroed();
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_notify_thread_id = THREAD.load(Ordering::Relaxed);
    event.sigev_signo = number();
    event.sigev_value.sival_ptr = bears.word() as *mut c_void;
    // The kernel's numbers of timers are of this length.
    let mut made: c_int = 0;
    let arguments = [clock as usize, (&raw mut event) as usize, (&raw mut made) as usize, 0];
    // SAFETY: the kernel reads `event` and writes `made`.
    let status = unsafe { system_call(libc::SYS_timer_create, arguments) };
    (status == 0).then_some(made as usize as libc::timer_t)
}

/// The slots of the ranks that the next nudge also concerns, which are no longer remembered.
pub(super) fn take_remembered() -> [Option<&'static SlotHeader>; RETRY_FOR.len()] {
    let take = |place: &AtomicUsize| match place.load(Ordering::Relaxed) {
        0 => None,
        // SAFETY: null, or what `remember` has put there: a header (S1).
        _ => unsafe { (place.swap(0, Ordering::SeqCst) as *const SlotHeader).as_ref() },
    };
    std::array::from_fn(|at| take(&RETRY_FOR[at]))
}

/// A rank is about to run its handlers.
pub(super) fn has_succeeded() {
    TIMES.store(0, Ordering::Relaxed);
}

/// Whether [`begin`] was called: this process responds to nudges.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

pub(super) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// Nudges are for the calling thread, which is the PE's.
pub(super) fn begin() {
    HAS_BEGUN.store(true, Ordering::Relaxed);
    THREAD.store(sys::gettid(), Ordering::Relaxed);
}

/// The same in a child that a rank has forked, to whose only thread they go. Timers are not inherited.
pub(super) fn begin_child() {
    HAS_RETRY.store(false, Ordering::Relaxed);
    THREAD.store(sys::gettid(), Ordering::Relaxed);
    make_retry();
}

/// Makes the timer that nudges again.
pub(super) fn make_retry() {
    if let Some(timer) = timer(libc::CLOCK_MONOTONIC, Bears::Nothing) {
        RETRY.store(timer, Ordering::Relaxed);
        HAS_RETRY.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_nudge_bears_is_read_back() {
        for bears in
            [Bears::Timer(0, 0), Bears::Timer(u32::MAX, 35), Bears::Signal(7, 64), Bears::Nothing]
        {
            assert_eq!(Bears::of(bears.word()), bears);
        }
    }
}
