//! System timers of ranks that run images: `alarm` and `setitimer`, of which a process has one of each kind, and those
//! of `timer_create`. Each is a kernel timer for the PE's thread, whose nudge identifies the timer, and becomes the
//! rank's signal (`signals`). A rank is pinned while it has one.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use crate::arena::SlotHeader;
use crate::held::Kind;
use crate::posix::errno::fail;
use crate::posix::interpose::real;
use crate::posix::libc_threads;
use crate::posix::signals::nudge::{self, Bears};
use crate::posix::signals::tables::{caller, existing, of_slot, slot_of_caller};
use crate::posix::timer_table::{KINDS, MOST, Timer};
use crate::register::{self, hold};
use crate::sys::Plain;

/// The rank of a slot has ended, and with it its timers.
pub(crate) fn end(slot: &SlotHeader) {
    if let Some(signals) = of_slot(slot) {
        signals.timers.0.iter().for_each(Timer::end);
    }
}

/// The key of a rank's timer among what ranks hold.
fn key(slot: u32, which: usize) -> usize {
    slot as usize * MOST + which + 1
}

fn to_spec(time: &libc::timeval) -> libc::timespec {
    libc::timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1000 }
}

fn to_value(time: &libc::timespec) -> libc::timeval {
    // What is left of a microsecond is not nothing.
    libc::timeval { tv_sec: time.tv_sec, tv_usec: (time.tv_nsec + 999) / 1000 }
}

unsafe extern "C-unwind" fn setitimer(
    which: c_int,
    new: *const libc::itimerval,
    old: *mut libc::itimerval,
) -> c_int {
    type Function =
        unsafe extern "C" fn(c_int, *const libc::itimerval, *mut libc::itimerval) -> c_int;
    let kind = usize::try_from(which).ok().filter(|which| *which < KINDS.len());
    // SAFETY: S4: a time, or null.
    let (Some(slot), Some(caller), Some(kind), Some(time)) =
        (slot_of_caller(), caller(), kind, unsafe { new.as_ref() })
    else {
        // SAFETY: S4.
        return unsafe { real!(c"setitimer", Function)(which, new, old) };
    };
    let (own, key) = (slot.id().0, key(slot.id().0, kind));
    let is_set = time.it_value.tv_sec != 0 || time.it_value.tv_usec != 0;
    let timer = &caller.signals.timers.0[kind];
    if is_set && !timer.is_made() {
        let (clock, signal) = KINDS[kind];
        let Some(made) = nudge::timer(clock, Bears::Timer(own, kind as u32)) else {
            return fail(libc::EAGAIN);
        };
        timer.begin(made, signal, 0);
        hold(Kind::Timer, key);
    }
    let mut before = libc::itimerspec::zeroed();
    if timer.is_made() {
        let spec = libc::itimerspec {
            it_interval: to_spec(&time.it_interval),
            it_value: to_spec(&time.it_value),
        };
        let made = timer.kernels();
        // SAFETY: the kernel's timer of this number reads `spec` and writes `before`.
        unsafe {
            libc::syscall(libc::SYS_timer_settime, made, 0, &raw const spec, &raw mut before)
        };
        if !is_set {
            caller.collect();
            timer.end();
            register::take(Kind::Timer, key);
        }
    }
    // SAFETY: S4: room for a time, or null.
    if let Some(old) = unsafe { old.as_mut() } {
        old.it_interval = to_value(&before.it_interval);
        old.it_value = to_value(&before.it_value);
    }
    // Once it is set anew, there is no tick any more of what it was.
    caller.deliver(std::ptr::null_mut());
    0
}

unsafe extern "C" fn getitimer(which: c_int, now: *mut libc::itimerval) -> c_int {
    let kind = usize::try_from(which).ok().filter(|which| *which < KINDS.len());
    let (Some(kind), false) = (kind, now.is_null()) else { return fail(libc::EINVAL) };
    let timer = existing().map(|caller| &caller.signals.timers.0[kind]);
    let mut spec = libc::itimerspec::zeroed();
    // SAFETY: the kernel's timer writes `spec`; `now` has room for a time (S4).
    unsafe {
        if let Some(timer) = timer.filter(|timer| timer.is_made()) {
            libc::syscall(libc::SYS_timer_gettime, timer.kernels(), &raw mut spec);
        }
        (*now).it_interval = to_value(&spec.it_interval);
        (*now).it_value = to_value(&spec.it_value);
    }
    0
}

unsafe extern "C-unwind" fn alarm(seconds: c_uint) -> c_uint {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let time = libc::timeval { tv_sec: seconds.into(), tv_usec: 0 };
    let new = libc::itimerval { it_interval: none, it_value: time };
    let mut old = libc::itimerval { it_interval: none, it_value: none };
    // SAFETY: `new` is readable, `old` writable.
    unsafe { setitimer(libc::ITIMER_REAL as c_int, &raw const new, &raw mut old) };
    old.it_value.tv_sec as c_uint + c_uint::from(old.it_value.tv_usec > 0)
}

/// The old `ualarm`.
unsafe extern "C-unwind" fn ualarm(first: c_uint, then: c_uint) -> c_uint {
    const SECOND: c_uint = 1_000_000;
    let time = |length: c_uint| libc::timeval {
        tv_sec: (length / SECOND).into(),
        tv_usec: (length % SECOND).into(),
    };
    let new = libc::itimerval { it_interval: time(then), it_value: time(first) };
    let mut old = libc::itimerval { it_interval: time(0), it_value: time(0) };
    // SAFETY: `new` is readable, `old` writable.
    unsafe { setitimer(libc::ITIMER_REAL as c_int, &raw const new, &raw mut old) };
    old.it_value.tv_sec as c_uint * SECOND + old.it_value.tv_usec as c_uint
}

/// POSIX `timer_create`. It returns the kernel's number, as libc's does, so the other functions accept it.
pub(crate) unsafe extern "C" fn timer_create(
    clock: libc::clockid_t,
    event: *mut libc::sigevent,
    place: *mut libc::timer_t,
) -> c_int {
    type Function =
        unsafe extern "C" fn(libc::clockid_t, *mut libc::sigevent, *mut libc::timer_t) -> c_int;
    // SAFETY: S4: null, or a description.
    let asked = unsafe { event.as_ref() };
    if asked.is_some_and(|event| event.sigev_notify == libc::SIGEV_THREAD) {
        return libc_threads::refuse_timer();
    }
    let (Some(slot), Some(caller)) = (slot_of_caller(), caller()) else {
        // SAFETY: S4.
        return unsafe { real!(c"timer_create", Function)(clock, event, place) };
    };
    let signal = match asked.map(|event| (event.sigev_notify, event.sigev_signo)) {
        None => libc::SIGALRM,
        Some((libc::SIGEV_NONE, _)) => 0,
        Some((libc::SIGEV_SIGNAL | libc::SIGEV_THREAD_ID, signal @ 1..=64)) => signal,
        Some(_) => return fail(libc::EINVAL),
    };
    let clock = match clock {
        libc::CLOCK_PROCESS_CPUTIME_ID => libc::CLOCK_THREAD_CPUTIME_ID,
        clock => clock,
    };
    let timers = &caller.signals.timers.0;
    let Some(which) = (KINDS.len()..MOST).find(|which| !timers[*which].is_made()) else {
        return fail(libc::EAGAIN);
    };
    let own = slot.id().0;
    let Some(made) = nudge::timer(clock, Bears::Timer(own, which as u32)) else {
        return fail(libc::EINVAL);
    };
    let value = asked.map_or(made as usize, |event| event.sigev_value.sival_ptr as usize);
    timers[which].begin(made, signal, value);
    hold(Kind::Timer, key(own, which));
    // SAFETY: S4: room for a timer.
    unsafe { place.write(made) };
    0
}

/// The timer of `timer_create` that a program names.
fn named(timer: libc::timer_t) -> Option<(&'static Timer, usize)> {
    let (slot, caller) = (slot_of_caller()?, existing()?);
    let of_kernel = timer as usize;
    let mut all = caller.signals.timers.0.iter().enumerate().skip(KINDS.len());
    let (which, timer) =
        all.find(|(_, timer)| timer.is_made() && timer.kernels() as usize == of_kernel)?;
    Some((timer, key(slot.id().0, which)))
}

unsafe extern "C" fn timer_delete(timer: libc::timer_t) -> c_int {
    if let (Some((timer, key)), Some(caller)) = (named(timer), existing()) {
        timer.end();
        register::take(Kind::Timer, key);
        let (signal, number) =
            (timer.signal.load(Ordering::Relaxed), timer.number.load(Ordering::Relaxed));
        caller.signals.forget_timer(signal, number);
        return 0;
    }
    // SAFETY: S4.
    unsafe { real!(c"timer_delete", unsafe extern "C" fn(libc::timer_t) -> c_int)(timer) }
}

unsafe extern "C" fn timer_getoverrun(timer: libc::timer_t) -> c_int {
    if let Some((timer, _)) = named(timer) {
        return timer.overrun.load(Ordering::Relaxed).min(c_int::MAX as u32) as c_int;
    }
    // SAFETY: S4.
    unsafe { real!(c"timer_getoverrun", unsafe extern "C" fn(libc::timer_t) -> c_int)(timer) }
}

/// The replacement for libc's function of this name.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        "setitimer" => setitimer as *const (),
        "getitimer" => getitimer as *const (),
        "alarm" => alarm as *const (),
        "ualarm" => ualarm as *const (),
        "timer_create" => timer_create as *const (),
        "timer_delete" => timer_delete as *const (),
        "timer_getoverrun" => timer_getoverrun as *const (),
        _ => return None,
    })
}
