//! The C functions that wait for signals and children, and others that a signal interrupts, for ranks that run images,
//! which have their own signals. Other programs use libc's functions.

use std::ffi::{c_int, c_void};

use crate::blocking::suspend::{FAR, WaitEnd, wait_for};
use crate::blocking::system::{length, libcs, past_others_signals, to_milliseconds, with_mask};
use crate::pe;
use vrt_slot::external::processes;
use vrt_slot::interpose::{InFront, Real};
use vrt_slot::sys::{self, Plain};
use vrt_slot::{fork, signals};

/// How long until somebody looks again who waits for a child of which the runtime does not know, in nanoseconds.
const PAUSE: u64 = 10_000_000;

/// The functions here that are defined in front of libc's, for who binds programs to them.
pub(super) fn in_front() -> &'static [InFront] {
    macro_rules! functions {
        ($($name:literal: $function:ident),*) => {
            &[$(InFront {
                name: $name,
                meaning: "suspends",
                address: $function as *const (),
            }),*]
        };
    }
    static ALL: &[InFront] = functions!(
        "pause": pause,
        "sigsuspend": sigsuspend,
        "__sigsuspend": sigsuspend,
        "sigpause": sigpause_of_mask,
        "__xpg_sigpause": sigpause,
        "__sigpause": sigpause_of_either,
        "sigwait": sigwait,
        "sigwaitinfo": sigwaitinfo,
        "sigtimedwait": sigtimedwait,
        "wait": wait,
        "waitpid": waitpid,
        "__waitpid": waitpid,
        "wait3": wait3,
        "wait4": wait4,
        "waitid": waitid,
        "epoll_wait": epoll_wait,
        "epoll_pwait": epoll_pwait,
        "sem_timedwait": sem_timedwait,
        "sem_clockwait": sem_clockwait
    );
    ALL
}

/// Waits until a handler has run.
fn wait_for_handler(call: &'static str) -> c_int {
    while wait_for(call, 0, None, FAR, || false) != WaitEnd::Signal {}
    signals::fail(libc::EINTR)
}

unsafe extern "C-unwind" fn pause() -> c_int {
    if !signals::are_own() {
        return libcs!(c"pause", fn() -> c_int,);
    }
    wait_for_handler("pause")
}

unsafe extern "C-unwind" fn sigsuspend(mask: *const libc::sigset_t) -> c_int {
    if !signals::are_own() {
        return libcs!(c"sigsuspend", fn(*const libc::sigset_t) -> c_int, mask);
    }
    // SAFETY: C1: a set.
    let word = unsafe { signals::word(mask) }.unwrap_or(0);
    suspend_with(word)
}

fn suspend_with(mask: u64) -> c_int {
    let before = signals::exchange_mask(mask);
    wait_for_handler("sigsuspend");
    signals::exchange_mask(before);
    signals::deliver();
    signals::fail(libc::EINTR)
}

/// System V's: waits for one signal more than the mask lets through.
unsafe extern "C-unwind" fn sigpause(signal: c_int) -> c_int {
    if !(1..=64).contains(&signal) {
        return signals::fail(libc::EINVAL);
    }
    suspend_with(signals::mask() & !(1 << (signal - 1)))
}

/// BSD's, with a mask of 32 signals.
unsafe extern "C-unwind" fn sigpause_of_mask(mask: c_int) -> c_int {
    suspend_with(u64::from(mask as u32))
}

/// What macros make of both.
unsafe extern "C-unwind" fn sigpause_of_either(signal_or_mask: c_int, is_signal: c_int) -> c_int {
    // SAFETY: both take any number.
    unsafe {
        match is_signal {
            0 => sigpause_of_mask(signal_or_mask),
            _ => sigpause(signal_or_mask),
        }
    }
}

/// Takes a signal of a set, when there is one; the error if none has come.
///
/// # Safety
/// `info` is null, or there is room for it.
unsafe fn take(
    call: &'static str,
    set: u64,
    info: *mut libc::siginfo_t,
    deadline: Option<u64>,
) -> Result<c_int, c_int> {
    loop {
        // SAFETY: null, or room for it, says the caller.
        if let Some(signal) = unsafe { signals::take(set, info) } {
            return Ok(signal);
        }
        match wait_for(call, set, deadline, FAR, || signals::is_waiting(set)) {
            WaitEnd::Over => {}
            WaitEnd::Late => return Err(libc::EAGAIN),
            WaitEnd::Signal => return Err(libc::EINTR),
        }
    }
}

unsafe extern "C-unwind" fn sigwait(set: *const libc::sigset_t, signal: *mut c_int) -> c_int {
    if !signals::are_own() {
        return libcs!(c"sigwait", fn(*const libc::sigset_t, *mut c_int) -> c_int, set, signal);
    }
    // SAFETY: C1: a set, and room for the signal.
    unsafe {
        let set = signals::word(set).unwrap_or(0);
        loop {
            match take("sigwait", set, std::ptr::null_mut(), None) {
                Ok(taken) => {
                    signal.write(taken);
                    return 0;
                }
                // It goes on after handlers.
                Err(libc::EINTR) => {}
                Err(error) => return error,
            }
        }
    }
}

unsafe extern "C-unwind" fn sigwaitinfo(
    set: *const libc::sigset_t,
    info: *mut libc::siginfo_t,
) -> c_int {
    // SAFETY: C1; the time may be null.
    unsafe { sigtimedwait(set, info, std::ptr::null()) }
}

unsafe extern "C-unwind" fn sigtimedwait(
    set: *const libc::sigset_t,
    info: *mut libc::siginfo_t,
    time: *const libc::timespec,
) -> c_int {
    if !signals::are_own() {
        return libcs!(
            c"sigtimedwait",
            fn(*const libc::sigset_t, *mut libc::siginfo_t, *const libc::timespec) -> c_int,
            set,
            info,
            time
        );
    }
    // SAFETY: C1: a set, room for what the signal bears, and a time; the last two may be null.
    unsafe {
        let length = length(time);
        if !time.is_null() && length.is_none() {
            return signals::fail(libc::EINVAL);
        }
        let deadline = length.map(|length| pe::monotonic().saturating_add(length));
        let set = signals::word(set).unwrap_or(0);
        take("sigtimedwait", set, info, deadline).unwrap_or_else(signals::fail)
    }
}

/// Which children are waited for.
#[derive(Clone, Copy)]
enum Children {
    One(libc::pid_t),
    All,
    Group(libc::pid_t),
}

impl Children {
    /// As `waitpid` names them.
    fn of(process: libc::pid_t) -> Children {
        match process {
            -1 => Children::All,
            0 => Children::Group(sys::getpgrp()),
            process if process < 0 => Children::Group(-process),
            process => Children::One(process),
        }
    }

    /// The first answer of `ask` to one of them: `Ok(None)` says that it has not changed, an error that there is no
    /// such child. The error if there is none at all.
    fn find<R>(
        self,
        mut ask: impl FnMut(libc::pid_t) -> Result<Option<R>, c_int>,
    ) -> Option<Result<R, c_int>> {
        if let Children::One(child) = self {
            return ask(child).transpose();
        }
        let mut error = Some(libc::ECHILD);
        let found = processes::find_own(|child| {
            if let Children::Group(group) = self
                && sys::getpgid(child) != group
            {
                return None;
            }
            match ask(child) {
                Ok(answer) => {
                    error = None;
                    answer
                }
                Err(_) => None,
            }
        });
        found.map(Ok).or(error.map(Err))
    }

    /// Waits for one of them.
    fn wait<R>(
        self,
        call: &'static str,
        is_to_wait: bool,
        mut ask: impl FnMut(libc::pid_t) -> Result<Option<R>, c_int>,
    ) -> Result<Option<R>, c_int> {
        let mut found = self.find(&mut ask);
        while found.is_none() && is_to_wait {
            let before = signals::counts().unwrap_or_default().interrupting;
            let ended = wait_for(call, 0, None, PAUSE, || {
                found = self.find(&mut ask);
                found.is_some()
            });
            let now = signals::counts().unwrap_or_default().interrupting;
            if ended == WaitEnd::Signal && now != before {
                return Err(libc::EINTR);
            }
        }
        // Handlers run before the program sees what they tell of.
        signals::deliver();
        found.transpose()
    }
}

/// Whether the caller's children are those of the process, too, or not a rank's.
fn waits_as_process() -> bool {
    !signals::are_own() || fork::is_child()
}

unsafe extern "C-unwind" fn wait4(
    process: libc::pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut libc::rusage,
) -> libc::pid_t {
    let libcs = |process: libc::pid_t, status: *mut c_int, options: c_int| {
        libcs!(
            c"wait4",
            fn(libc::pid_t, *mut c_int, c_int, *mut libc::rusage) -> libc::pid_t,
            process,
            status,
            options,
            usage
        )
    };
    if waits_as_process() {
        return libcs(process, status, options);
    }
    let mut own = 0;
    let is_to_wait = options & libc::WNOHANG == 0;
    let found = Children::of(process).wait("waitpid", is_to_wait, |child| {
        match libcs(child, &raw mut own, options | libc::WNOHANG) {
            -1 => Err(signals::errno()),
            0 => Ok(None),
            child => Ok(Some(child)),
        }
    });
    match found {
        Ok(None) => 0,
        Ok(Some(child)) => {
            if libc::WIFEXITED(own) || libc::WIFSIGNALED(own) {
                processes::is_over(child);
            }
            // SAFETY: C1: room for a status, or null.
            if let Some(status) = unsafe { status.as_mut() } {
                *status = own;
            }
            child
        }
        Err(error) => signals::fail(error),
    }
}

unsafe extern "C-unwind" fn waitpid(
    process: libc::pid_t,
    status: *mut c_int,
    options: c_int,
) -> libc::pid_t {
    // SAFETY: C1; the usage may be null.
    unsafe { wait4(process, status, options, std::ptr::null_mut()) }
}

unsafe extern "C-unwind" fn wait(status: *mut c_int) -> libc::pid_t {
    // SAFETY: C1; the usage may be null.
    unsafe { wait4(-1, status, 0, std::ptr::null_mut()) }
}

unsafe extern "C-unwind" fn wait3(
    status: *mut c_int,
    options: c_int,
    usage: *mut libc::rusage,
) -> libc::pid_t {
    // SAFETY: C1.
    unsafe { wait4(-1, status, options, usage) }
}

unsafe extern "C-unwind" fn waitid(
    kind: libc::idtype_t,
    which: libc::id_t,
    info: *mut libc::siginfo_t,
    options: c_int,
) -> c_int {
    let libcs = |kind: libc::idtype_t, which: libc::id_t, info: *mut libc::siginfo_t, options| {
        libcs!(
            c"waitid",
            fn(libc::idtype_t, libc::id_t, *mut libc::siginfo_t, c_int) -> c_int,
            kind,
            which,
            info,
            options
        )
    };
    let children = match kind {
        libc::P_ALL => Children::All,
        libc::P_PID => Children::One(which as libc::pid_t),
        libc::P_PGID if which == 0 => Children::Group(sys::getpgrp()),
        libc::P_PGID => Children::Group(which as libc::pid_t),
        _ => return libcs(kind, which, info, options),
    };
    if waits_as_process() {
        return libcs(kind, which, info, options);
    }
    let is_to_wait = options & libc::WNOHANG == 0;
    let found = children.wait("waitid", is_to_wait, |child| {
        let mut own = libc::siginfo_t::zeroed();
        let how = options | libc::WNOHANG;
        match libcs(libc::P_PID, child as libc::id_t, &raw mut own, how) {
            0 => {
                // SAFETY: `waitid` has filled it in for a child, or left zeros.
                let has_changed = unsafe { own.si_pid() } != 0;
                Ok(has_changed.then_some(own))
            }
            _ => Err(signals::errno()),
        }
    });
    let own = match found {
        // All zero says that none has changed.
        Ok(found) => found.unwrap_or(libc::siginfo_t::zeroed()),
        Err(error) => return signals::fail(error),
    };
    let is_end = matches!(own.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    if own.si_signo != 0 && is_end && options & libc::WNOWAIT == 0 {
        // SAFETY: `waitid` has filled it in for a child.
        processes::is_over(unsafe { own.si_pid() });
    }
    // SAFETY: C1: room for a description, or null.
    if let Some(info) = unsafe { info.as_mut() } {
        *info = own;
    }
    0
}

unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    milliseconds: c_int,
) -> c_int {
    // SAFETY: C1; the mask may be null.
    unsafe { epoll_pwait(epoll, events, most, milliseconds, std::ptr::null()) }
}

unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    milliseconds: c_int,
    mask: *const libc::sigset_t,
) -> c_int {
    let time = u64::try_from(milliseconds).ok().map(|time| time * 1_000_000);
    let call = |mask: *const libc::sigset_t| {
        past_others_signals(time, |left| {
            let left = left.map_or(milliseconds, to_milliseconds);
            libcs!(
                c"epoll_pwait",
                fn(c_int, *mut libc::epoll_event, c_int, c_int, *const libc::sigset_t) -> c_int,
                epoll,
                events,
                most,
                left,
                mask
            )
        })
    };
    // SAFETY: C1: a set, or null.
    let word = unsafe { signals::word(mask) };
    with_mask(mask, word, call)
}

unsafe extern "C" fn sem_timedwait(semaphore: *mut c_void, until: *const libc::timespec) -> c_int {
    past_others_signals(None, |_| {
        libcs!(c"sem_timedwait", fn(*mut c_void, *const libc::timespec) -> c_int, semaphore, until)
    })
}

unsafe extern "C" fn sem_clockwait(
    semaphore: *mut c_void,
    clock: libc::clockid_t,
    until: *const libc::timespec,
) -> c_int {
    past_others_signals(None, |_| {
        libcs!(
            c"sem_clockwait",
            fn(*mut c_void, libc::clockid_t, *const libc::timespec) -> c_int,
            semaphore,
            clock,
            until
        )
    })
}
