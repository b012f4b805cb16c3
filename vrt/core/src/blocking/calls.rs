//! The blocking C functions, interposed in front of libc's.
//!
//! Calls that cannot suspend a rank, and calls with wrong arguments, are passed on to libc.

use std::ffi::{c_int, c_long, c_uint, c_void};

use crate::blocking::futex::{self, clock, futex};
use crate::blocking::suspend::{FAR, WaitEnd, may_suspend, sleep_until, wait_for};
use crate::blocking::system::{
    MICROSECOND, MILLISECOND, SECOND, length, length_of, libcs, past_others_signals,
    to_milliseconds, with_mask,
};
use crate::pe;
use vrt_slot::external::system_calls::by_number;
use vrt_slot::external::threads::lets_go_of;
use vrt_slot::interpose::{InFront, Real};
use vrt_slot::rank;
use vrt_slot::signals;
use vrt_slot::sys;

/// The functions here that are interposed in front of libc's, for code that binds programs to them.
pub fn in_front() -> impl Iterator<Item = &'static InFront> {
    of_processes().iter().chain(super::signals::in_front())
}

fn of_processes() -> &'static [InFront] {
    macro_rules! functions {
        ($($name:ident),*) => {
            &[$(InFront {
                name: stringify!($name),
                meaning: "suspends",
                address: $name as *const (),
            }),*]
        };
    }
    static ALL: &[InFront] = functions!(
        syscall,
        nanosleep,
        clock_nanosleep,
        usleep,
        sleep,
        poll,
        ppoll,
        select,
        pselect,
        pthread_join
    );
    ALL
}

/// `sched_yield` for a program that has its own thread-locals. (Libraries of Rust programs call it in the middle of
/// operations on thread-locals that the ranks of a PE share, so they use libc's.)
pub const SCHED_YIELD: InFront =
    InFront { name: "sched_yield", meaning: "suspends", address: sched_yield as *const () };

extern "C" fn sched_yield() -> c_int {
    if !may_suspend() {
        return sys::sched_yield();
    }
    let others_run = pe::with(|pe| {
        let others_run = !pe.would_yield_to_nobody();
        if others_run {
            pe.engine.yield_current();
        }
        others_run
    });
    if others_run {
        rank::suspend_and_resume();
        // A future that the rank was polling may be done, and nobody was told.
        pe::with(|pe| pe.engine.running().notified = true);
    }
    0
}

/// Nanoseconds between two looks whether a thread has ended: the first, and the longest.
const FIRST_PAUSE: u64 = 100_000;
const LAST_PAUSE: u64 = 5_000_000;
/// How long a thread is waited for before the rank is suspended, in nanoseconds.
const PATIENCE: u64 = 1_000_000;

/// C `syscall`. A rank that waits for a futex is suspended; other calls are interpreted for what ranks hold. The
/// variable arguments are passed like the fixed ones that are declared here; those that a call does not have are
/// ignored.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if number == libc::SYS_futex {
        let call = futex::Call {
            address: a,
            operation: b as c_int,
            value: c as u32,
            time: d,
            second: e,
            third: f as u32,
        };
        // SAFETY: C1.
        return unsafe { futex(call) };
    }
    // SAFETY: C1.
    unsafe { by_number(number, [a, b, c, d, e, f]) }
}

/// Whether calls of the caller are ended by handlers that the runtime calls.
fn has_handlers() -> bool {
    signals::counts().is_some()
}

/// Whether the caller waits as a rank does; a thread that a rank has started may be cancelled in libc's calls.
fn waits_here() -> bool {
    may_suspend() || has_handlers() && !signals::is_thread()
}

/// Suspends the rank for a time, or until a handler has run: what is left then, at least 1.
fn sleep_for(call: &'static str, length: u64) -> u64 {
    let until = pe::monotonic().saturating_add(length);
    if !has_handlers() {
        sleep_until(call, until);
        return 0;
    }
    match wait_for(call, 0, Some(until), FAR, || false) {
        WaitEnd::Signal => until.saturating_sub(pe::monotonic()).max(1),
        WaitEnd::Over | WaitEnd::Late => 0,
    }
}

/// Suspends the rank for a time, if there is one and a rank that can be; what is left if a handler has ended it.
fn has_slept(call: &'static str, length: Option<u64>) -> Option<u64> {
    let length = length.filter(|_| waits_here())?;
    Some(sleep_for(call, length))
}

/// What a call returns that has slept.
fn slept(left: u64) -> c_int {
    if left == 0 { 0 } else { signals::fail(libc::EINTR) }
}

fn to_timespec(nanoseconds: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanoseconds / SECOND) as libc::time_t,
        tv_nsec: (nanoseconds % SECOND) as c_long,
    }
}

/// POSIX `nanosleep`. A rank is suspended for the time.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn nanosleep(
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    // SAFETY: C1: a time, or null.
    if let Some(rest) = has_slept("nanosleep", unsafe { length(time) }) {
        // SAFETY: C1: room for a time, or null.
        if let Some(left) = unsafe { left.as_mut() }.filter(|_| rest > 0) {
            *left = to_timespec(rest);
        }
        return slept(rest);
    }
    libcs!(c"nanosleep", fn(*const libc::timespec, *mut libc::timespec) -> c_int, time, left)
}

/// POSIX `clock_nanosleep`. A rank is suspended for the time, or until the clock reaches it.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn clock_nanosleep(
    which: libc::clockid_t,
    flags: c_int,
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    const NAME: &str = "clock_nanosleep";
    let known =
        [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME, libc::CLOCK_BOOTTIME, libc::CLOCK_TAI];
    // SAFETY: C1: a time, or null.
    if let Some(length) = unsafe { length(time) }
        && known.contains(&which)
        && waits_here()
    {
        if flags & libc::TIMER_ABSTIME == 0 {
            let rest = sleep_for(NAME, length);
            // SAFETY: C1: room for a time, or null.
            if let Some(left) = unsafe { left.as_mut() }.filter(|_| rest > 0) {
                *left = to_timespec(rest);
            }
            return if rest > 0 { libc::EINTR } else { 0 };
        }
        // The clock may have been set meanwhile, or the rank be on another machine.
        while clock(which) < length {
            if sleep_for(NAME, length - clock(which).min(length)) > 0 {
                return libc::EINTR;
            }
        }
        return 0;
    }
    libcs!(
        c"clock_nanosleep",
        fn(libc::clockid_t, c_int, *const libc::timespec, *mut libc::timespec) -> c_int,
        which,
        flags,
        time,
        left
    )
}

/// The old `usleep`. A rank is suspended for the time.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn usleep(time: c_uint) -> c_int {
    if let Some(left) = has_slept("usleep", Some(u64::from(time) * MICROSECOND)) {
        return slept(left);
    }
    libcs!(c"usleep", fn(c_uint) -> c_int, time)
}

/// POSIX `sleep`. A rank is suspended for the time.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn sleep(seconds: c_uint) -> c_uint {
    if let Some(left) = has_slept("sleep", Some(u64::from(seconds) * SECOND)) {
        return (left / SECOND) as c_uint;
    }
    libcs!(c"sleep", fn(c_uint) -> c_uint, seconds)
}

/// POSIX `poll`. A rank that polls no descriptors, only a timeout, is suspended for that time.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn poll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    milliseconds: c_int,
) -> c_int {
    let length = u64::try_from(milliseconds).ok().map(|length| length * MILLISECOND);
    if count == 0
        && let Some(left) = has_slept("poll", length)
    {
        return slept(left);
    }
    past_others_signals(length, |left| {
        let left = left.map_or(milliseconds, to_milliseconds);
        libcs!(c"poll", fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int, fds, count, left)
    })
}

/// Linux's `ppoll`. A rank that polls no descriptors, only a timeout, is suspended for that time.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn ppoll(
    fds: *mut libc::pollfd,
    count: libc::nfds_t,
    time: *const libc::timespec,
    signals: *const libc::sigset_t,
) -> c_int {
    let ask = |time, signals| {
        libcs!(
            c"ppoll",
            fn(
                *mut libc::pollfd,
                libc::nfds_t,
                *const libc::timespec,
                *const libc::sigset_t,
            ) -> c_int,
            fds,
            count,
            time,
            signals
        )
    };
    // SAFETY: C1: a time and a set, or null.
    unsafe { asked_with_mask("ppoll", count == 0, time, signals, ask) }
}

/// What `ppoll` and `pselect` do with a time and a mask of signals: a rank that asks for nothing is suspended for
/// the time, others `ask` the system.
///
/// # Safety
/// Each is readable or null.
unsafe fn asked_with_mask(
    name: &'static str,
    nothing: bool,
    time: *const libc::timespec,
    signals: *const libc::sigset_t,
    ask: impl Fn(*const libc::timespec, *const libc::sigset_t) -> c_int,
) -> c_int {
    // SAFETY: readable or null, says the caller.
    let (length, mask) = unsafe { (length(time), signals::word(signals)) };
    with_mask(signals, mask, |signals| {
        if nothing
            && signals.is_null()
            && let Some(left) = has_slept(name, length)
        {
            return slept(left);
        }
        past_others_signals(length, |left| {
            let left = left.map(to_timespec);
            ask(left.as_ref().map_or(time, std::ptr::from_ref), signals)
        })
    })
}

/// POSIX `select`. A rank that selects among no descriptors, only a timeout, is suspended for that time.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(super) unsafe extern "C" fn select(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    except: *mut libc::fd_set,
    time: *mut libc::timeval,
) -> c_int {
    let nothing = count == 0 || (read.is_null() && write.is_null() && except.is_null());
    // SAFETY: C1: a time, or null.
    if nothing && let Some(left) = has_slept("select", unsafe { length_of(time) }) {
        let left_of = to_timespec(left);
        let (tv_sec, tv_usec) = (left_of.tv_sec, left_of.tv_nsec / MICROSECOND as c_long);
        // As Linux does it: what is left of the time.
        // SAFETY: C1: a time that may be written, and not null, as it has a length.
        unsafe { *time = libc::timeval { tv_sec, tv_usec } };
        return slept(left);
    }
    // What is left of the time stands there already when it is called again.
    past_others_signals(None, |_| {
        libcs!(
            c"select",
            fn(
                c_int,
                *mut libc::fd_set,
                *mut libc::fd_set,
                *mut libc::fd_set,
                *mut libc::timeval,
            ) -> c_int,
            count,
            read,
            write,
            except,
            time
        )
    })
}

/// POSIX `pselect`. A rank that selects among nothing for a time is suspended for it.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    except: *mut libc::fd_set,
    time: *const libc::timespec,
    signals: *const libc::sigset_t,
) -> c_int {
    let nothing = count == 0 || (read.is_null() && write.is_null() && except.is_null());
    let ask = |time, signals| {
        libcs!(
            c"pselect",
            fn(
                c_int,
                *mut libc::fd_set,
                *mut libc::fd_set,
                *mut libc::fd_set,
                *const libc::timespec,
                *const libc::sigset_t,
            ) -> c_int,
            count,
            read,
            write,
            except,
            time,
            signals
        )
    };
    // SAFETY: C1: a time and a set, or null.
    unsafe { asked_with_mask("pselect", nothing, time, signals, ask) }
}

unsafe extern "C" {
    fn pthread_tryjoin_np(thread: libc::pthread_t, result: *mut *mut c_void) -> c_int;
    fn pthread_timedjoin_np(
        thread: libc::pthread_t,
        result: *mut *mut c_void,
        until: *const libc::timespec,
    ) -> c_int;
}

/// POSIX `pthread_join`. A rank waits for a short while; then it is suspended, and looks now and
/// then whether the thread has ended.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_join(
    thread: libc::pthread_t,
    result: *mut *mut c_void,
) -> c_int {
    if pe::in_rank() {
        let until = clock(libc::CLOCK_REALTIME) + PATIENCE;
        let until = libc::timespec {
            tv_sec: (until / SECOND) as libc::time_t,
            tv_nsec: (until % SECOND) as c_long,
        };
        // SAFETY: C1.
        let mut status = unsafe { pthread_timedjoin_np(thread, result, &until) };
        let mut pause = FIRST_PAUSE;
        while matches!(status, libc::ETIMEDOUT | libc::EBUSY) && may_suspend() {
            sleep_until("pthread_join", pe::monotonic().saturating_add(pause));
            pause = (pause * 2).min(LAST_PAUSE);
            // SAFETY: C1: nobody else joins a thread that is being joined.
            status = unsafe { pthread_tryjoin_np(thread, result) };
        }
        if !matches!(status, libc::ETIMEDOUT | libc::EBUSY) {
            return status;
        }
    }
    lets_go_of(thread, || {
        libcs!(c"pthread_join", fn(libc::pthread_t, *mut *mut c_void) -> c_int, thread, result)
    })
}
