//! What the interposed calls have in common: libc's own functions, times as programs give them, signals meanwhile.

use std::ffi::{c_int, c_long, c_void};

use crate::pe;
use vrt_slot::interpose::Real;
use vrt_slot::signals;

/// Calls libc's own function with this name and type.
macro_rules! libcs {
    ($name:literal, fn($($ty:ty),* $(,)?) -> $ret:ty, $($arg:expr),*) => {{
        static REAL: Real = Real::new($name);
        type Function = unsafe extern "C" fn($($ty),*) -> $ret;
        // SAFETY: C1.
        unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())($($arg),*) }
    }};
}
pub(super) use libcs;

/// Nanoseconds.
pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const MILLISECOND: u64 = 1_000_000;
pub(super) const MICROSECOND: u64 = 1_000;

/// The error of the last call.
pub(super) fn errno() -> c_int {
    signals::errno_of_process().get()
}

/// libc's `syscall`, with as many arguments as any call has.
///
/// # Safety
/// The call may be made with these arguments.
pub(super) unsafe fn real_syscall(number: c_long, arguments: [usize; 6]) -> c_long {
    let [a, b, c, d, e, f] = arguments;
    libcs!(
        c"syscall",
        fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long,
        number,
        a,
        b,
        c,
        d,
        e,
        f
    )
}

/// The length of a time that a program has given, if it is one.
///
/// # Safety
/// Null, or a readable time.
pub(super) unsafe fn length(time: *const libc::timespec) -> Option<u64> {
    // SAFETY: null, or readable, says the caller.
    let time = unsafe { time.as_ref() }?;
    let valid = time.tv_sec >= 0 && (0..SECOND as c_long).contains(&time.tv_nsec);
    valid.then(|| nanoseconds(time))
}

/// What is left of a time, for calls that count so: not less than there is.
pub(super) fn to_milliseconds(nanoseconds: u64) -> c_int {
    c_int::try_from(nanoseconds.div_ceil(MILLISECOND)).unwrap_or(c_int::MAX)
}

/// [`length`] of the other kind of time.
///
/// # Safety
/// Null, or a readable time.
pub(super) unsafe fn length_of(time: *const libc::timeval) -> Option<u64> {
    // SAFETY: null, or readable, says the caller.
    let time = unsafe { time.as_ref() }?;
    let valid = time.tv_sec >= 0 && time.tv_usec >= 0;
    valid.then(|| {
        let seconds = (time.tv_sec as u64).saturating_mul(SECOND);
        seconds.saturating_add((time.tv_usec as u64).saturating_mul(MICROSECOND))
    })
}

/// Makes a call again that has ended for the signal of another rank of the PE. `call` gets what is left of the
/// time, in nanoseconds.
pub(super) fn past_others_signals(
    time: Option<u64>,
    mut call: impl FnMut(Option<u64>) -> c_int,
) -> c_int {
    let Some(before) = signals::counts() else { return call(time) };
    let until = time.map(|time| pe::monotonic().saturating_add(time));
    loop {
        let status = call(until.map(|until| until.saturating_sub(pe::monotonic())));
        let is_others = status == -1
            && signals::errno() == libc::EINTR
            && signals::counts().is_some_and(|now| now.handled == before.handled);
        if !is_others {
            return status;
        }
    }
}

/// Makes a call with another mask, if one is given: `mask`, which is `word` as a word.
pub(super) fn with_mask(
    mask: *const libc::sigset_t,
    word: Option<u64>,
    call: impl FnOnce(*const libc::sigset_t) -> c_int,
) -> c_int {
    let Some(word) = word.filter(|_| signals::are_own()) else { return call(mask) };
    let before = signals::exchange_mask(word);
    let handled = signals::counts();
    signals::deliver();
    let status = match signals::counts() == handled {
        true => call(std::ptr::null()),
        false => signals::fail(libc::EINTR),
    };
    signals::exchange_mask(before);
    let error = signals::errno();
    signals::deliver();
    if status == -1 {
        signals::fail(error);
    }
    status
}

/// Nanoseconds of a time that is not negative.
pub(super) fn nanoseconds(time: &libc::timespec) -> u64 {
    (time.tv_sec as u64).saturating_mul(SECOND).saturating_add(time.tv_nsec as u64)
}
