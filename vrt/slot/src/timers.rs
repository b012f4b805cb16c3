//! System timers of ranks that run images: `alarm` and `setitimer`, of which a process has one of each kind, and those
//! of `timer_create`. Each is a kernel timer for the PE's thread, whose nudge identifies the timer, and becomes the
//! rank's signal (`signals`). A rank is pinned while it has one.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

use crate::accounts::{ends, holds};
use crate::held::Kind;
use crate::interpose::Real;
use crate::signals::kernel::{self, Bears};
use crate::signals::{self, Info};
use crate::{SlotHeader, libc_threads};

/// The clocks of a rank's timers, and the signal of each: `ITIMER_REAL`, `ITIMER_VIRTUAL`, `ITIMER_PROF`. The system
/// does not distinguish a thread's user time from its system time.
const KINDS: [(libc::clockid_t, c_int); 3] = [
    (libc::CLOCK_MONOTONIC, libc::SIGALRM),
    (libc::CLOCK_THREAD_CPUTIME_ID, libc::SIGVTALRM),
    (libc::CLOCK_THREAD_CPUTIME_ID, libc::SIGPROF),
];

/// The most timers of a rank: those above, and those of `timer_create`.
const MOST: usize = KINDS.len() + 32;

/// The timers of a rank.
pub(crate) struct Timers([Timer; MOST]);

/// A timer, if it exists.
#[derive(Default)]
struct Timer {
    is_made: AtomicBool,
    /// The kernel's number.
    number: AtomicI32,
    /// The signal that it sends; 0: none.
    signal: AtomicI32,
    value: AtomicUsize,
    /// How often it has expired since that was last added to the pending signals.
    run_off: AtomicU32,
    /// Its signal is pending; how many more times it has expired, and had when the last one was taken.
    waits: AtomicBool,
    missed: AtomicU32,
    overrun: AtomicU32,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers(std::array::from_fn(|_| Timer::default()))
    }
}

impl Timer {
    fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Acquire)
    }

    /// The kernel's timer, in the form of its system calls.
    fn kernels(&self) -> libc::timer_t {
        self.number.load(Ordering::Relaxed) as usize as libc::timer_t
    }

    /// Becomes the kernel's timer `made`.
    fn begin(&self, made: libc::timer_t, signal: c_int, value: usize) {
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
    fn end(&self) {
        if self.is_made.swap(false, Ordering::AcqRel) {
            // SAFETY: the rank's own timer.
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

/// The rank of a slot has ended, and with it its timers.
pub(crate) fn end(slot: &SlotHeader) {
    // SAFETY: null, or the rank's signals in its heap, which is there still.
    if let Some(signals) = unsafe { slot.signals.get().as_ref() } {
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
    static REAL: Real = Real::new(c"setitimer");
    type Function =
        unsafe extern "C" fn(c_int, *const libc::itimerval, *mut libc::itimerval) -> c_int;
    let kind = usize::try_from(which).ok().filter(|which| *which < KINDS.len());
    // SAFETY: the program gives a time, or null.
    let (Some(slot), Some(caller), Some(kind), Some(time)) =
        (signals::slot_of_caller(), signals::caller(), kind, unsafe { new.as_ref() })
    else {
        // SAFETY: libc's function of this name has this type, and the caller keeps its contract.
        return unsafe {
            std::mem::transmute::<*mut c_void, Function>(REAL.get())(which, new, old)
        };
    };
    let (own, key) = (slot.id().0, key(slot.id().0, kind));
    let is_set = time.it_value.tv_sec != 0 || time.it_value.tv_usec != 0;
    let timer = &caller.signals.timers.0[kind];
    if is_set && !timer.is_made() {
        let (clock, signal) = KINDS[kind];
        let Some(made) = kernel::timer(clock, Bears::Timer(own, kind as u32)) else {
            return signals::fail(libc::EAGAIN);
        };
        timer.begin(made, signal, 0);
        holds(Kind::Timer, key);
    }
    // SAFETY: zeros are valid times; the timer is the rank's, and the program gives room for a time, or null.
    unsafe {
        let mut before: libc::itimerspec = std::mem::zeroed();
        if timer.is_made() {
            let spec = libc::itimerspec {
                it_interval: to_spec(&time.it_interval),
                it_value: to_spec(&time.it_value),
            };
            let made = timer.kernels();
            libc::syscall(libc::SYS_timer_settime, made, 0, &raw const spec, &raw mut before);
            if !is_set {
                caller.collect();
                timer.end();
                ends(Kind::Timer, key);
            }
        }
        if let Some(old) = old.as_mut() {
            old.it_interval = to_value(&before.it_interval);
            old.it_value = to_value(&before.it_value);
        }
    }
    // Once it is set anew, there is no tick any more of what it was.
    caller.deliver(std::ptr::null_mut());
    0
}

unsafe extern "C" fn getitimer(which: c_int, now: *mut libc::itimerval) -> c_int {
    let kind = usize::try_from(which).ok().filter(|which| *which < KINDS.len());
    let (Some(kind), false) = (kind, now.is_null()) else { return signals::fail(libc::EINVAL) };
    let caller = signals::existing();
    let timer = caller.map(|caller| &caller.signals.timers.0[kind]);
    // SAFETY: zeros are valid times; the timer is the rank's, and the program gives room for a time.
    unsafe {
        let mut spec: libc::itimerspec = std::mem::zeroed();
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
    // SAFETY: pointers to locals.
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
    // SAFETY: pointers to locals.
    unsafe { setitimer(libc::ITIMER_REAL as c_int, &raw const new, &raw mut old) };
    old.it_value.tv_sec as c_uint * SECOND + old.it_value.tv_usec as c_uint
}

/// POSIX `timer_create`. It returns the kernel's number, as libc's does, so the other functions accept it.
pub(crate) unsafe extern "C" fn timer_create(
    clock: libc::clockid_t,
    event: *mut libc::sigevent,
    place: *mut libc::timer_t,
) -> c_int {
    static REAL: Real = Real::new(c"timer_create");
    type Function =
        unsafe extern "C" fn(libc::clockid_t, *mut libc::sigevent, *mut libc::timer_t) -> c_int;
    // SAFETY: null, or the caller's description.
    let asked = unsafe { event.as_ref() };
    if asked.is_some_and(|event| event.sigev_notify == libc::SIGEV_THREAD) {
        return libc_threads::refuse_timer();
    }
    let (Some(slot), Some(caller)) = (signals::slot_of_caller(), signals::caller()) else {
        // SAFETY: libc's function of this name has this type, and the caller keeps its contract.
        return unsafe {
            std::mem::transmute::<*mut c_void, Function>(REAL.get())(clock, event, place)
        };
    };
    let signal = match asked.map(|event| (event.sigev_notify, event.sigev_signo)) {
        None => libc::SIGALRM,
        Some((libc::SIGEV_NONE, _)) => 0,
        Some((libc::SIGEV_SIGNAL | libc::SIGEV_THREAD_ID, signal @ 1..=64)) => signal,
        Some(_) => return signals::fail(libc::EINVAL),
    };
    let clock = match clock {
        libc::CLOCK_PROCESS_CPUTIME_ID => libc::CLOCK_THREAD_CPUTIME_ID,
        clock => clock,
    };
    let timers = &caller.signals.timers.0;
    let Some(which) = (KINDS.len()..MOST).find(|which| !timers[*which].is_made()) else {
        return signals::fail(libc::EAGAIN);
    };
    let own = slot.id().0;
    let Some(made) = kernel::timer(clock, Bears::Timer(own, which as u32)) else {
        return signals::fail(libc::EINVAL);
    };
    let value = asked.map_or(made as usize, |event| event.sigev_value.sival_ptr as usize);
    timers[which].begin(made, signal, value);
    holds(Kind::Timer, key(own, which));
    // SAFETY: the caller gives room for it.
    unsafe { place.write(made) };
    0
}

/// The timer of `timer_create` that a program names.
fn named(timer: libc::timer_t) -> Option<(&'static Timer, usize)> {
    let (slot, caller) = (signals::slot_of_caller()?, signals::existing()?);
    let of_kernel = timer as usize;
    let mut all = caller.signals.timers.0.iter().enumerate().skip(KINDS.len());
    let (which, timer) =
        all.find(|(_, timer)| timer.is_made() && timer.kernels() as usize == of_kernel)?;
    Some((timer, key(slot.id().0, which)))
}

unsafe extern "C" fn timer_delete(timer: libc::timer_t) -> c_int {
    static REAL: Real = Real::new(c"timer_delete");
    type Function = unsafe extern "C" fn(libc::timer_t) -> c_int;
    if let (Some((timer, key)), Some(caller)) = (named(timer), signals::existing()) {
        timer.end();
        ends(Kind::Timer, key);
        let (signal, number) =
            (timer.signal.load(Ordering::Relaxed), timer.number.load(Ordering::Relaxed));
        caller.signals.forget_timer(signal, number);
        return 0;
    }
    // SAFETY: libc's function of this name has this type, and the caller keeps its contract.
    unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(timer) }
}

unsafe extern "C" fn timer_getoverrun(timer: libc::timer_t) -> c_int {
    static REAL: Real = Real::new(c"timer_getoverrun");
    type Function = unsafe extern "C" fn(libc::timer_t) -> c_int;
    if let Some((timer, _)) = named(timer) {
        return timer.overrun.load(Ordering::Relaxed).min(c_int::MAX as u32) as c_int;
    }
    // SAFETY: libc's function of this name has this type, and the caller keeps its contract.
    unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(timer) }
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
