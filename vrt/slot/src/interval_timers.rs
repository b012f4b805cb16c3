//! Timers that ranks which run images have of the system (`alarm`, `setitimer`). A process has one of each
//! kind; each rank gets one of its own (`timer_create`), whose signal says whose it is and becomes that rank's
//! (`signals`). A rank stays on its PE while it has set one.

use std::ffi::{c_int, c_uint, c_void};

use crate::external::{ends, holds};
use crate::held::Kind;
use crate::interpose::Real;
use crate::{Arena, SlotId, signals};

/// What the timers of a rank count, and the signal of each: `ITIMER_REAL`, `ITIMER_VIRTUAL`, `ITIMER_PROF`. The
/// system does not tell apart what a thread does itself and what it does for it.
const KINDS: [(libc::clockid_t, c_int); 3] = [
    (libc::CLOCK_MONOTONIC, libc::SIGALRM),
    (libc::CLOCK_THREAD_CPUTIME_ID, libc::SIGVTALRM),
    (libc::CLOCK_THREAD_CPUTIME_ID, libc::SIGPROF),
];

/// What a signal of a timer bears: the slot of its rank.
extern "C" fn on_timer(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a description, with the value that the timer was made with.
    let slot = unsafe { (*info).si_value().sival_ptr } as usize;
    let Some(arena) = Arena::current().filter(|arena| slot < arena.layout.slots) else { return };
    // SAFETY: the rank is pinned to this PE by its timer; the kernel gave the rest.
    unsafe { signals::came_for(arena.header(SlotId(slot as u32)), signal, info, context) };
}

/// By which number a rank's timer is known among what ranks hold.
fn key(slot: u32, which: usize) -> usize {
    slot as usize * KINDS.len() + which + 1
}

/// A timer of the running rank, made for its PE.
fn made(slot: u32, which: usize) -> Option<libc::timer_t> {
    let (clock, signal) = KINDS[which];
    // SAFETY: the handler is this module's; zeros are valid descriptions, which are filled in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_timer as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as c_int;
        event.sigev_signo = signal;
        event.sigev_value.sival_ptr = slot as usize as *mut c_void;
        let mut timer: libc::timer_t = std::ptr::null_mut();
        (libc::syscall(libc::SYS_timer_create, clock, &raw mut event, &raw mut timer) == 0)
            .then_some(timer)
    }
}

fn to_spec(time: &libc::timeval) -> libc::timespec {
    libc::timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1000 }
}

fn to_value(time: &libc::timespec) -> libc::timeval {
    // What is left of a microsecond is not nothing.
    libc::timeval { tv_sec: time.tv_sec, tv_usec: (time.tv_nsec + 999) / 1000 }
}

unsafe extern "C" fn setitimer(
    which: c_int,
    new: *const libc::itimerval,
    old: *mut libc::itimerval,
) -> c_int {
    static REAL: Real = Real::new(c"setitimer");
    type Function =
        unsafe extern "C" fn(c_int, *const libc::itimerval, *mut libc::itimerval) -> c_int;
    let kind = usize::try_from(which).ok().filter(|which| *which < KINDS.len());
    // SAFETY: the program gives a time, or null.
    let (Some(slot), Some(signals), Some(kind), Some(time)) =
        (signals::slot(), signals::signals(), kind, unsafe { new.as_ref() })
    else {
        // SAFETY: libc's function of this name has this type, and the caller keeps its contract.
        return unsafe {
            std::mem::transmute::<*mut c_void, Function>(REAL.get())(which, new, old)
        };
    };
    let (own, key) = (slot.id().0, key(slot.id().0, kind));
    let is_set = time.it_value.tv_sec != 0 || time.it_value.tv_usec != 0;
    let timer = &signals.timers[kind];
    if is_set && timer.get().is_none() {
        timer.set(made(own, kind));
        if timer.get().is_none() {
            return signals::fail(libc::EAGAIN);
        }
        holds(Kind::Timer, key);
    }
    // SAFETY: zeros are valid times; the timer is the rank's, and the program gives room for a time, or null.
    unsafe {
        let mut before: libc::itimerspec = std::mem::zeroed();
        if let Some(made) = timer.get() {
            let spec = libc::itimerspec {
                it_interval: to_spec(&time.it_interval),
                it_value: to_spec(&time.it_value),
            };
            libc::syscall(libc::SYS_timer_settime, made, 0, &raw const spec, &raw mut before);
            if !is_set {
                libc::syscall(libc::SYS_timer_delete, made);
                timer.set(None);
                ends(Kind::Timer, key);
            }
        }
        if let Some(old) = old.as_mut() {
            old.it_interval = to_value(&before.it_interval);
            old.it_value = to_value(&before.it_value);
        }
    }
    0
}

unsafe extern "C" fn getitimer(which: c_int, now: *mut libc::itimerval) -> c_int {
    let kind = usize::try_from(which).ok().filter(|which| *which < KINDS.len());
    let (Some(kind), false) = (kind, now.is_null()) else { return signals::fail(libc::EINVAL) };
    let timer = signals::signals().and_then(|signals| signals.timers[kind].get());
    // SAFETY: zeros are valid times; the timer is the rank's, and the program gives room for a time.
    unsafe {
        let mut spec: libc::itimerspec = std::mem::zeroed();
        if let Some(timer) = timer {
            libc::syscall(libc::SYS_timer_gettime, timer, &raw mut spec);
        }
        (*now).it_interval = to_value(&spec.it_interval);
        (*now).it_value = to_value(&spec.it_value);
    }
    0
}

unsafe extern "C" fn alarm(seconds: c_uint) -> c_uint {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let time = libc::timeval { tv_sec: seconds.into(), tv_usec: 0 };
    let new = libc::itimerval { it_interval: none, it_value: time };
    let mut old = libc::itimerval { it_interval: none, it_value: none };
    // SAFETY: pointers to locals.
    unsafe { setitimer(libc::ITIMER_REAL as c_int, &raw const new, &raw mut old) };
    old.it_value.tv_sec as c_uint + c_uint::from(old.it_value.tv_usec > 0)
}

/// What is here in the place of libc's functions of these names.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        "setitimer" => setitimer as *const (),
        "getitimer" => getitimer as *const (),
        "alarm" => alarm as *const (),
        _ => return None,
    })
}
