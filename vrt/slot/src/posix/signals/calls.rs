//! The libc functions by which programs set the handling of signals, and raise them.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long, c_void};
use std::os::unix::process::parent_id;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use super::deliver::by_default;
use super::pending::{Info, Pending};
use super::sets::{Action, bit, is_handled, is_signal, set_of, word_of};
use super::tables::{Caller, For, ThreadSignals, caller, existing, slot_of_caller};
use super::{jumps, kernel, nudge};
use crate::posix::errno::fail;
use crate::posix::image_thread;
use crate::posix::interpose::real;
use crate::sys::Plain;
use crate::{forked, report, sys};

/// Calls libc's own function with this name and type, for a caller of the function in front of it.
macro_rules! libcs {
    ($name:literal, fn($($ty:ty),* $(,)?) -> $ret:ty, $($arg:expr),*) => {{
        // SAFETY: S4.
        unsafe { real!($name, unsafe extern "C-unwind" fn($($ty),*) -> $ret)($($arg),*) }
    }};
}

/// A child that a rank has forked informs its kernel, too.
fn tell_childs_kernel(caller: Caller, signals: impl Iterator<Item = c_int>) {
    if forked::is_child() {
        signals.for_each(|signal| kernel::follow(caller, signal));
    }
}

unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let Some(caller) = caller() else {
        return libcs!(
            c"sigaction",
            fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int,
            signal,
            new,
            old
        );
    };
    let is_asked = new.is_null() && is_signal(signal);
    if !is_handled(signal) && !is_asked {
        return fail(libc::EINVAL);
    }
    // SAFETY: S4: an action, or null.
    let new = unsafe { new.as_ref() }.map(|new| Action {
        handler: new.sa_sigaction,
        flags: new.sa_flags,
        mask: word_of(&new.sa_mask),
    });
    let before = match new {
        Some(new) => caller.set_action(signal, new),
        None => caller.signals.action(signal),
    };
    // SAFETY: S4: room for an action, or null.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = libc::sigaction::zeroed();
        (old.sa_sigaction, old.sa_flags) = (before.handler, before.flags);
        old.sa_mask = set_of(before.mask);
    }
    0
}

impl Caller {
    /// Sets the handling of a signal; returns the previous one. Signals that arrived before are handled in the previous
    /// way: they may still be pending, if they arrived while the rank was in the runtime.
    fn set_action(self, signal: c_int, action: Action) -> Action {
        self.deliver(std::ptr::null_mut());
        let before = self.signals.action(signal);
        self.signals.set_action(signal, action);
        if action.drops(signal) {
            // What waits is dropped, also what is blocked.
            self.signals.locked(|| {
                // SAFETY: P1: this is inside the lock.
                let forget = |of: &UnsafeCell<Pending>| unsafe { (*of.get()).forget(signal) };
                forget(&self.signals.pending);
                self.signals.threads().for_each(|thread| forget(&thread.pending));
            });
        }
        tell_childs_kernel(self, std::iter::once(signal));
        before
    }

    /// Blocks these from now on. Runs the handlers of signals that arrived before, and of pending ones that are not
    /// among them.
    fn set_blocked(self, blocked: u64) {
        self.deliver(std::ptr::null_mut());
        let before = self.thread.blocked.swap(blocked, Ordering::SeqCst);
        let changed = before ^ blocked;
        tell_childs_kernel(self, (1..=64).filter(|signal| changed & bit(*signal) != 0));
        self.deliver(std::ptr::null_mut());
    }
}

/// # Safety
/// As for C's `signal`: the handler may be called with the signal's number.
unsafe fn set_handler(signal: c_int, handler: usize, flags: c_int) -> usize {
    let (mut new, mut old) = (libc::sigaction::zeroed(), libc::sigaction::zeroed());
    (new.sa_sigaction, new.sa_flags) = (handler, flags);
    // SAFETY: `new` is readable, `old` writable; the handler may be called, says the caller.
    match unsafe { sigaction(signal, &raw const new, &raw mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

unsafe extern "C-unwind" fn signal(signal: c_int, handler: usize) -> usize {
    // SAFETY: S4: a handler.
    unsafe { set_handler(signal, handler, libc::SA_RESTART) }
}

unsafe extern "C-unwind" fn sysv_signal(signal: c_int, handler: usize) -> usize {
    // SAFETY: S4: a handler.
    unsafe { set_handler(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
}

/// The value by which `sigset` blocks a signal, and reports one that was blocked.
const SIG_HOLD: usize = 2;

unsafe extern "C-unwind" fn sigset(signal: c_int, handler: usize) -> usize {
    let Some(caller) = caller().filter(|_| is_handled(signal)) else {
        fail(libc::EINVAL);
        return libc::SIG_ERR;
    };
    let blocked = caller.thread.blocked.load(Ordering::SeqCst);
    let before = if handler == SIG_HOLD {
        caller.set_blocked(blocked | bit(signal));
        caller.signals.action(signal)
    } else {
        let before = caller.set_action(signal, Action { handler, flags: 0, mask: 0 });
        caller.set_blocked(blocked & !bit(signal));
        before
    };
    if blocked & bit(signal) != 0 { SIG_HOLD } else { before.handler }
}

unsafe extern "C-unwind" fn sighold(signal: c_int) -> c_int {
    change_blocked(signal, |blocked| blocked | bit(signal))
}

unsafe extern "C-unwind" fn sigrelse(signal: c_int) -> c_int {
    change_blocked(signal, |blocked| blocked & !bit(signal))
}

fn change_blocked(signal: c_int, change: impl FnOnce(u64) -> u64) -> c_int {
    let Some(caller) = caller().filter(|_| is_handled(signal)) else { return fail(libc::EINVAL) };
    caller.set_blocked(change(caller.thread.blocked.load(Ordering::SeqCst)));
    0
}

unsafe extern "C-unwind" fn sigignore(signal: c_int) -> c_int {
    // SAFETY: `SIG_IGN` calls nothing.
    if unsafe { set_handler(signal, libc::SIG_IGN, 0) } == libc::SIG_ERR { -1 } else { 0 }
}

unsafe extern "C-unwind" fn siginterrupt(signal: c_int, interrupts: c_int) -> c_int {
    let Some(caller) = caller().filter(|_| is_handled(signal)) else { return fail(libc::EINVAL) };
    // A handler may be in place for one signal only.
    caller.deliver(std::ptr::null_mut());
    let before = caller.signals.action(signal);
    let flags = match interrupts {
        0 => before.flags | libc::SA_RESTART,
        _ => before.flags & !libc::SA_RESTART,
    };
    caller.set_action(signal, Action { flags, ..before });
    0
}

/// BSD's masks, which have 32 signals.
unsafe extern "C-unwind" fn sigblock(mask: c_int) -> c_int {
    set_mask(|before| before | u64::from(mask as u32))
}

unsafe extern "C-unwind" fn sigsetmask(mask: c_int) -> c_int {
    set_mask(|before| before & !u64::from(u32::MAX) | u64::from(mask as u32))
}

unsafe extern "C-unwind" fn siggetmask() -> c_int {
    set_mask(|before| before)
}

fn set_mask(change: impl FnOnce(u64) -> u64) -> c_int {
    let Some(caller) = caller() else { return fail(libc::EINVAL) };
    let before = caller.thread.blocked.load(Ordering::SeqCst);
    let never = bit(libc::SIGKILL) | bit(libc::SIGSTOP);
    caller.set_blocked(change(before) & !never);
    before as u32 as c_int
}

unsafe extern "C-unwind" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let Some(caller) = caller() else {
        return libcs!(
            c"sigprocmask",
            fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int,
            how,
            set,
            old
        );
    };
    let before = caller.thread.blocked.load(Ordering::SeqCst);
    // SAFETY: S4: a set, or null.
    let new = match unsafe { set.as_ref() }.map(word_of) {
        Some(set) => match how {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return fail(libc::EINVAL),
        },
        None => before,
    };
    if !old.is_null() {
        // SAFETY: S4: room for a set.
        unsafe { old.write(set_of(before)) };
    }
    caller.set_blocked(new);
    0
}

unsafe extern "C-unwind" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    if slot_of_caller().is_none() {
        // SAFETY: S4.
        return unsafe { libc::pthread_sigmask(how, set, old) };
    }
    // The number of the error is the result.
    // SAFETY: S4: it takes the same.
    if unsafe { sigprocmask(how, set, old) } == 0 { 0 } else { libc::EINVAL }
}

unsafe extern "C" fn sigpending(set: *mut libc::sigset_t) -> c_int {
    let pending = existing().map_or(0, |caller| {
        caller.collect();
        let blocked = caller.thread.blocked.load(Ordering::SeqCst);
        caller.signals.waiting_for(caller.thread) & blocked
    });
    // SAFETY: S4: room for a set.
    unsafe { set.write(set_of(pending)) };
    0
}

/// Sends a signal to the calling rank, or a thread of it, and runs the handlers that are then pending for the caller.
fn send(caller: Caller, whom: For<'_>, info: Info) -> Result<(), c_int> {
    if caller.signals.post(caller.slot, whom, info) == Some(false) {
        return Err(libc::EAGAIN);
    }
    caller.deliver(std::ptr::null_mut());
    Ok(())
}

/// Ends the process as a signal without a possible handler does, or stops it.
fn is_beyond(signal: c_int) -> bool {
    signal == libc::SIGKILL || signal == libc::SIGSTOP
}

/// A fault that is raised without a handler must end the job like a real one: with a backtrace.
fn is_plain_fault(caller: Option<Caller>, signal: c_int) -> bool {
    let is_fault =
        [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL].contains(&signal);
    is_fault
        && caller.is_none_or(|caller| {
            let is_blocked = caller.thread.blocked.load(Ordering::SeqCst) & bit(signal) != 0;
            caller.signals.action(signal).handler == libc::SIG_DFL && !is_blocked
        })
}

/// Raises a signal in the calling thread. `None`: it is not one of a rank's, or the system must raise it.
fn raise_here(signal: c_int, code: c_int, value: usize) -> Option<Result<(), c_int>> {
    slot_of_caller()?;
    if is_beyond(signal) || is_plain_fault(existing(), signal) {
        return None;
    }
    if !is_signal(signal) {
        return Some(Err(libc::EINVAL));
    }
    let Some(caller) = caller() else {
        by_default(signal);
        return Some(Ok(()));
    };
    Some(send(caller, For::Thread(caller.thread), Info::sent(signal, code, value)))
}

/// Signals the calling rank, as a process signals itself. `None`: as for [`raise_here`].
fn signal_rank(signal: c_int, code: c_int, value: usize) -> Option<Result<(), c_int>> {
    slot_of_caller()?;
    if is_beyond(signal) || is_plain_fault(existing(), signal) {
        return None;
    }
    match signal {
        0 => return Some(Ok(())),
        signal if !is_signal(signal) => return Some(Err(libc::EINVAL)),
        _ => {}
    }
    let Some(caller) = caller() else {
        by_default(signal);
        return Some(Ok(()));
    };
    Some(send(caller, For::Rank, Info::sent(signal, code, value)))
}

/// Signals a thread of the calling rank, found by `is_it`. `None`: the thread does not exist.
fn signal_thread(
    caller: Caller,
    info: Info,
    is_it: impl Fn(&ThreadSignals) -> bool,
) -> Option<Result<(), c_int>> {
    let post = || {
        let thread = caller.signals.threads().find(|thread| is_it(thread))?;
        if info.signal == 0 {
            return Some(true);
        }
        Some(caller.signals.post_locked(caller.slot, For::Thread(thread), info))
    };
    match caller.signals.locked(post).flatten()? {
        false => return Some(Err(libc::EAGAIN)),
        true => caller.deliver(std::ptr::null_mut()),
    }
    Some(Ok(()))
}

/// The return value of functions that report errors in `errno`.
fn status_of(result: Result<(), c_int>) -> c_int {
    result.map_or_else(fail, |()| 0)
}

unsafe extern "C-unwind" fn raise(signal: c_int) -> c_int {
    match raise_here(signal, libc::SI_TKILL, 0) {
        Some(result) => status_of(result),
        None => libcs!(c"raise", fn(c_int) -> c_int, signal),
    }
}

/// Whether a process number is that of the rank.
fn is_own(process: libc::pid_t) -> bool {
    slot_of_caller().is_some() && process == process::id() as libc::pid_t
}

/// A child that a rank has forked signals its parent: that is the rank, but the child knows only its PE's number.
fn signal_parent(process: libc::pid_t, signal: c_int) -> Option<c_int> {
    let is_parent = forked::is_child() && process == parent_id() as libc::pid_t;
    let slot = slot_of_caller().filter(|_| is_parent && is_handled(signal))?;
    let bears = nudge::Bears::Signal(slot.id().0, signal as u32);
    let value = libc::sigval { sival_ptr: bears.word() as *mut c_void };
    // SAFETY: the call takes numbers; the parent is a PE, whose `on_nudge` expects such a word.
    let status = unsafe { libc::sigqueue(process, nudge::number(), value) };
    Some(status)
}

unsafe extern "C-unwind" fn kill(process: libc::pid_t, signal: c_int) -> c_int {
    if is_own(process)
        && let Some(result) = signal_rank(signal, libc::SI_USER, 0)
    {
        return status_of(result);
    }
    if let Some(status) = signal_parent(process, signal) {
        return status;
    }
    libcs!(c"kill", fn(libc::pid_t, c_int) -> c_int, process, signal)
}

unsafe extern "C-unwind" fn sigqueue(
    process: libc::pid_t,
    signal: c_int,
    value: libc::sigval,
) -> c_int {
    if is_own(process)
        && let Some(result) = signal_rank(signal, libc::SI_QUEUE, value.sival_ptr as usize)
    {
        return status_of(result);
    }
    if let Some(status) = signal_parent(process, signal) {
        return status;
    }
    libcs!(c"sigqueue", fn(libc::pid_t, c_int, libc::sigval) -> c_int, process, signal, value)
}

/// Signals a thread of the rank by libc's identity. `None`: no thread of the rank has it.
fn signal_identity(
    thread: libc::pthread_t,
    signal: c_int,
    code: c_int,
    value: usize,
) -> Option<Result<(), c_int>> {
    let slot = slot_of_caller()?;
    if thread == image_thread::pthread_self() && signal != 0 {
        return raise_here(signal, code, value);
    }
    if !(0..=64).contains(&signal) {
        return Some(Err(libc::EINVAL));
    }
    let info = Info::sent(signal, code, value);
    let is_main = thread as usize == slot.thread_pointer.get();
    let caller = caller()?;
    signal_thread(caller, info, |of| match std::ptr::eq(of, &raw const caller.signals.main) {
        true => is_main,
        false => of.identity.load(Ordering::Relaxed) == thread as usize,
    })
}

unsafe extern "C-unwind" fn pthread_kill(thread: libc::pthread_t, signal: c_int) -> c_int {
    match signal_identity(thread, signal, libc::SI_TKILL, 0) {
        Some(result) => result.err().unwrap_or(0),
        None if slot_of_caller().is_some() && !is_beyond(signal) && signal != libc::SIGABRT => {
            libc::ESRCH
        }
        None => libcs!(c"pthread_kill", fn(libc::pthread_t, c_int) -> c_int, thread, signal),
    }
}

unsafe extern "C-unwind" fn pthread_sigqueue(
    thread: libc::pthread_t,
    signal: c_int,
    value: libc::sigval,
) -> c_int {
    match signal_identity(thread, signal, libc::SI_QUEUE, value.sival_ptr as usize) {
        Some(result) => result.err().unwrap_or(0),
        None if slot_of_caller().is_some() => libc::ESRCH,
        None => libcs!(
            c"pthread_sigqueue",
            fn(libc::pthread_t, c_int, libc::sigval) -> c_int,
            thread,
            signal,
            value
        ),
    }
}

/// Signals a thread by the kernel's number. `None`: it is in another process.
pub(crate) fn signal_number(process: libc::pid_t, number: c_int, signal: c_int) -> Option<c_int> {
    if !is_own(process) {
        return None;
    }
    if number == sys::gettid() && signal != 0 {
        return raise_here(signal, libc::SI_TKILL, 0).map(status_of);
    }
    if !(0..=64).contains(&signal) {
        return Some(fail(libc::EINVAL));
    }
    let is_main = number == nudge::thread();
    let caller = caller()?;
    let found =
        signal_thread(caller, Info::sent(signal, libc::SI_TKILL, 0), |of| {
            match std::ptr::eq(of, &raw const caller.signals.main) {
                true => is_main,
                false => of.number.load(Ordering::Relaxed) == number as u32,
            }
        });
    Some(found.map_or_else(|| fail(libc::ESRCH), status_of))
}

unsafe extern "C-unwind" fn tgkill(
    process: libc::pid_t,
    number: libc::pid_t,
    signal: c_int,
) -> c_int {
    match signal_number(process, number, signal) {
        Some(status) => status,
        None => {
            libcs!(c"tgkill", fn(libc::pid_t, libc::pid_t, c_int) -> c_int, process, number, signal)
        }
    }
}

/// The system calls that send signals, by number. `None`: it is none of these, or does not concern only the rank.
pub(crate) fn by_number(number: c_long, [a, b, c]: [usize; 3]) -> Option<c_long> {
    slot_of_caller()?;
    let status = match number {
        libc::SYS_kill if is_own(a as libc::pid_t) => {
            status_of(signal_rank(b as c_int, libc::SI_USER, 0)?)
        }
        libc::SYS_tgkill => signal_number(a as libc::pid_t, b as c_int, c as c_int)?,
        libc::SYS_tkill => signal_number(process::id() as c_int, a as c_int, b as c_int)?,
        _ => return None,
    };
    Some(status.into())
}

unsafe extern "C-unwind" fn abort() -> ! {
    if let Some(caller) = existing()
        && caller.signals.action(libc::SIGABRT).is_handler()
    {
        let blocked = caller.thread.blocked.load(Ordering::SeqCst);
        caller.thread.blocked.store(blocked & !bit(libc::SIGABRT), Ordering::SeqCst);
        let info = Info::sent(libc::SIGABRT, libc::SI_TKILL, 0);
        // The handler may leave by a jump; else the job ends.
        let _ = send(caller, For::Thread(caller.thread), info);
    }
    // The runtime hears of the signal; its text names the rank.
    process::abort()
}

/// Linux's `signalfd`: the kernel does not have the signals of a rank.
unsafe extern "C" fn signalfd(
    descriptor: c_int,
    mask: *const libc::sigset_t,
    flags: c_int,
) -> c_int {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    let Some(slot) = slot_of_caller() else {
        return libcs!(
            c"signalfd",
            fn(c_int, *const libc::sigset_t, c_int) -> c_int,
            descriptor,
            mask,
            flags
        );
    };
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        report::say(format_args!(
            "rank {}: signalfd is not supported (ENOSYS): a rank's signals are not the kernel's; use sigwaitinfo",
            slot.rank.get()
        ));
    }
    fail(libc::ENOSYS)
}

/// The replacement for libc's function of this name.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        "sigaction" | "__sigaction" => sigaction as *const (),
        "signal" | "bsd_signal" | "ssignal" => signal as *const (),
        "sysv_signal" | "__sysv_signal" => sysv_signal as *const (),
        "sigset" => sigset as *const (),
        "sighold" => sighold as *const (),
        "sigrelse" => sigrelse as *const (),
        "sigignore" => sigignore as *const (),
        "siginterrupt" => siginterrupt as *const (),
        "sigblock" => sigblock as *const (),
        "sigsetmask" => sigsetmask as *const (),
        "siggetmask" => siggetmask as *const (),
        "raise" | "gsignal" => raise as *const (),
        "kill" => kill as *const (),
        "sigqueue" => sigqueue as *const (),
        "pthread_kill" => pthread_kill as *const (),
        "pthread_sigqueue" => pthread_sigqueue as *const (),
        "tgkill" => tgkill as *const (),
        "abort" => abort as *const (),
        "signalfd" => signalfd as *const (),
        "sigprocmask" => sigprocmask as *const (),
        "pthread_sigmask" => pthread_sigmask as *const (),
        "sigpending" => sigpending as *const (),
        _ => return jumps::provided(name),
    })
}
