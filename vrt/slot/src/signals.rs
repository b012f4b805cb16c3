//! Signals of ranks that run images: each rank has handlers of its own, as a process has.
//!
//! The kernel knows one table of handlers for a PE, which is the runtime's. What a program sets is kept in
//! the rank's heap, so it moves along; what it raises finds its handler there:
//!
//! | signal | the rank's handler is called |
//! |---|---|
//! | `raise`, `kill` and `pthread_kill` to itself, `abort` | at once, as a function |
//! | a fault (`SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`) | by the runtime's handler, on its stack, before it says what happened |
//! | a timer (`alarm`, `setitimer`), which pins the rank | at once if the rank runs, else when it runs next |
//! | `SIGPIPE`, of a write of its own | at once |
//! | from another process | never: it is the PE's |
//!
//! A signal that a handler is running for, or that the rank has blocked, is kept until then. What has no
//! handler does what the system does without one.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use crate::hooks::{self, heap_in_use};
use crate::interpose::Real;
use crate::{Arena, SlotHeader, forked, image, image_thread, report};

const COUNT: usize = 65;
type Handler = unsafe extern "C" fn(c_int);
type HandlerWithInfo = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The signals of a rank.
pub(crate) struct Signals {
    /// What is done about each, by its number.
    actions: [UnsafeCell<libc::sigaction>; COUNT],
    /// Those that wait until they are not blocked any more, a bit for each.
    blocked: Cell<u64>,
    pending: Cell<u64>,
    /// Its timers (`interval_timers`), each made when it is first set.
    pub(crate) timers: [Cell<Option<libc::timer_t>>; 3],
}

fn bit(signal: c_int) -> u64 {
    1 << (signal as u32 & 63)
}

/// Whether a number is a signal's for which a program may have a handler.
fn is_handled(signal: c_int) -> bool {
    (1..COUNT as c_int).contains(&signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP
}

/// The running rank's slot, if it runs an image.
pub(crate) fn slot() -> Option<&'static SlotHeader> {
    image::program()?;
    let slot = heap_in_use();
    // SAFETY: the heap in use is the running rank's, whose header stays mapped.
    let slot = (!slot.is_null()).then(|| unsafe { &*slot })?;
    (slot.thread_pointer.get() != 0).then_some(slot)
}

/// The signals of the running rank, if it has set something about them.
fn existing() -> Option<&'static Signals> {
    // SAFETY: null, or what `signals` has put into the rank's heap, which stays as long as the rank.
    unsafe { slot()?.signals.get().as_ref() }
}

/// The signals of the running rank.
pub(crate) fn signals() -> Option<&'static Signals> {
    let slot = slot()?;
    if slot.signals.get().is_null() {
        // SAFETY: all zero is the default action.
        let actions = [const { UnsafeCell::new(unsafe { std::mem::zeroed() }) }; COUNT];
        let timers = [const { Cell::new(None) }; 3];
        let (blocked, pending) = (Cell::new(0), Cell::new(0));
        let new = Box::new(Signals { actions, blocked, pending, timers });
        slot.signals.set(Box::into_raw(new));
    }
    existing()
}

impl Signals {
    fn action(&self, signal: c_int) -> libc::sigaction {
        // SAFETY: only the rank itself writes it, and no reference to it is kept.
        unsafe { *self.actions[signal as usize].get() }
    }

    fn set_action(&self, signal: c_int, action: libc::sigaction) {
        // SAFETY: as above.
        unsafe { *self.actions[signal as usize].get() = action };
    }

    /// Calls the handler of a signal, or keeps the signal while it is blocked. False if there is no handler.
    ///
    /// # Safety
    /// Both pointers are what the kernel gave for it, or null.
    unsafe fn deliver(
        &self,
        signal: c_int,
        info: *mut libc::siginfo_t,
        context: *mut c_void,
    ) -> bool {
        let action = self.action(signal);
        match action.sa_sigaction {
            libc::SIG_DFL => return false,
            libc::SIG_IGN => return true,
            _ => {}
        }
        if self.blocked.get() & bit(signal) != 0 {
            self.pending.set(self.pending.get() | bit(signal));
            return true;
        }
        let before = self.blocked.get();
        let own = if action.sa_flags & libc::SA_NODEFER != 0 { 0 } else { bit(signal) };
        self.blocked.set(before | own | first_word(&action.sa_mask));
        // SAFETY: as the caller promises.
        unsafe { self.call(action, signal, info, context) };
        self.blocked.set(before);
        true
    }

    /// Calls a handler.
    ///
    /// # Safety
    /// As [`deliver`](Self::deliver).
    unsafe fn call(
        &self,
        action: libc::sigaction,
        signal: c_int,
        info: *mut libc::siginfo_t,
        context: *mut c_void,
    ) {
        // SAFETY: the program's own handler, of the kind that its flags say; zeros are a valid action, a valid
        // description of a signal and of registers.
        unsafe {
            if action.sa_flags & libc::SA_RESETHAND != 0 {
                self.set_action(signal, std::mem::zeroed());
            }
            if action.sa_flags & libc::SA_SIGINFO == 0 {
                std::mem::transmute::<usize, Handler>(action.sa_sigaction)(signal);
                return;
            }
            let handler = std::mem::transmute::<usize, HandlerWithInfo>(action.sa_sigaction);
            let mut own_info: libc::siginfo_t = std::mem::zeroed();
            (own_info.si_signo, own_info.si_code) = (signal, libc::SI_TKILL);
            let mut registers = MaybeUninit::<libc::ucontext_t>::zeroed();
            let info = if info.is_null() { &raw mut own_info } else { info };
            let context = match context.is_null() {
                true => registers.as_mut_ptr().cast(),
                false => context,
            };
            handler(signal, info, context);
        }
    }

    /// Calls handlers for what waits and is not blocked.
    fn deliver_pending(&self) {
        loop {
            let ready = self.pending.get() & !self.blocked.get();
            if ready == 0 {
                return;
            }
            let signal = match ready.trailing_zeros() as c_int {
                0 => 64,
                signal => signal,
            };
            self.pending.set(self.pending.get() & !bit(signal));
            // SAFETY: the kernel gave nothing.
            if !unsafe { self.deliver(signal, std::ptr::null_mut(), std::ptr::null_mut()) } {
                by_default(signal);
            }
        }
    }
}

/// The part of a set of signals that says which of the first 64 are in it: 64 is bit 0 here.
fn first_word(set: &libc::sigset_t) -> u64 {
    // SAFETY: a set is longer than a word; its lowest bit is signal 1.
    let word = unsafe { std::ptr::from_ref(set).cast::<u64>().read() };
    word.rotate_left(1)
}

/// What the system does about a signal without a handler.
fn by_default(signal: c_int) {
    const IGNORED: [c_int; 4] = [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT];
    /// What a shell says of a program that a signal has ended.
    const SIGNALLED: c_int = 128;
    if IGNORED.contains(&signal) {
        return;
    }
    if forked::is_child() {
        // SAFETY: plain calls: the process ends as it would have without handlers.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
            // It is blocked.
            libc::_exit(SIGNALLED + signal);
        }
    }
    let rank = hooks::current_rank().unwrap_or_default();
    report::say(format_args!(
        "rank {rank}: signal {signal}, for which it has no handler; ending the job"
    ));
    report::end_job(SIGNALLED + signal)
}

/// A fault of the running rank has come to the runtime's handler: calls the rank's, if it has one.
/// Returns whether it had; then the access is tried again.
///
/// # Safety
/// In the handler of the signal, with what the kernel gave.
pub unsafe fn handle_fault(
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) -> bool {
    // A rank that has spoiled its stack may have spoiled what is above it, too.
    let is_in_slot = |signals: usize| {
        Arena::contains(signals)
            && signals.is_multiple_of(align_of::<Signals>())
            && slot().map(SlotHeader::id) == Arena::current().map(|arena| arena.slot_at(signals))
    };
    if !slot().is_some_and(|slot| is_in_slot(slot.signals.get() as usize)) {
        return false;
    }
    let Some(signals) = existing() else { return false };
    let action = signals.action(signal);
    // A handler of libgfortran's prints less than the runtime does.
    let is_of_library = image::module_at(action.sa_sigaction)
        .is_some_and(|(_, module)| module.name.starts_with("libgfortran"));
    if matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) || is_of_library {
        return false;
    }
    // SAFETY: the kernel's set of signals of this thread. The handler may leave by a jump, and others run then:
    // so nothing stays blocked.
    unsafe {
        let mut own = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigaddset(&raw mut own, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const own, std::ptr::null_mut());
        signals.call(action, signal, info, context);
    }
    true
}

/// This process is to run images: it hears of their writes to pipes that nobody reads, which the runtime ignores.
pub fn begin() {
    unsafe extern "C" fn on_pipe(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        let slot = heap_in_use();
        if slot.is_null() {
            return;
        }
        // SAFETY: the kernel gave both; the running rank's slot.
        unsafe {
            let is_heard = existing().is_some_and(|signals| signals.deliver(signal, info, context));
            if !is_heard {
                by_default(signal);
            }
        }
    }
    // SAFETY: zeros are a valid action; a handler of the type that the flags say.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_pipe as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGPIPE, &raw const action, std::ptr::null_mut());
    }
}

/// A signal has come for the rank of a slot, which this thread runs if any does.
///
/// # Safety
/// In the handler of the signal, with what the kernel gave.
pub(crate) unsafe fn came_for(
    slot: *mut SlotHeader,
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: headers stay mapped; nobody else uses the rank's signals now.
    unsafe {
        let Some(signals) = (*slot).signals.get().as_ref() else { return };
        if heap_in_use() != slot {
            signals.pending.set(signals.pending.get() | bit(signal));
            (*slot).has_signal.set(true);
        } else if !signals.deliver(signal, info, context) {
            by_default(signal);
        }
    }
}

/// The rank of a slot, which is about to run on this thread, has signals that wait.
#[cold]
#[inline(never)]
pub(crate) fn deliver_late(slot: &SlotHeader) {
    slot.has_signal.set(false);
    if let Some(signals) = existing() {
        signals.deliver_pending();
    }
}

/// Says in `errno` why a call has failed.
pub(crate) fn fail(error: c_int) -> c_int {
    set_errno(error);
    -1
}

/// Sets what the program finds in `errno`.
fn set_errno(error: c_int) {
    static REAL: Real = Real::new(c"__errno_location");
    type Location = unsafe extern "C" fn() -> *mut c_int;
    // SAFETY: libc's function, the rank's own or the process's; the place is the thread's.
    unsafe { *std::mem::transmute::<*mut c_void, Location>(REAL.get())() = error };
}

unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    static REAL: Real = Real::new(c"sigaction");
    type Function =
        unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    let Some(signals) = signals() else {
        // SAFETY: libc's function of this name has this type; the caller keeps its contract.
        return unsafe {
            std::mem::transmute::<*mut c_void, Function>(REAL.get())(signal, new, old)
        };
    };
    if !is_handled(signal) {
        return fail(libc::EINVAL);
    }
    let before = signals.action(signal);
    // SAFETY: the program gives actions, or null.
    unsafe {
        if let Some(new) = new.as_ref() {
            signals.set_action(signal, *new);
        }
        if !old.is_null() {
            old.write(before);
        }
    }
    0
}

unsafe fn set_handler(signal: c_int, handler: usize, flags: c_int) -> usize {
    // SAFETY: all zero is a valid action.
    let (mut new, mut old): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    (new.sa_sigaction, new.sa_flags) = (handler, flags);
    // SAFETY: pointers to locals.
    match unsafe { sigaction(signal, &raw const new, &raw mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { set_handler(signal, handler, libc::SA_RESTART) }
}

unsafe extern "C" fn sysv_signal(signal: c_int, handler: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { set_handler(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
}

unsafe extern "C" fn raise(signal: c_int) -> c_int {
    let signals = existing();
    let in_table = (1..COUNT as c_int).contains(&signal);
    if let (Some(signals), true) = (signals, in_table) {
        // SAFETY: the kernel gave nothing.
        if unsafe { signals.deliver(signal, std::ptr::null_mut(), std::ptr::null_mut()) } {
            return 0;
        }
    }
    let is_ours = slot().is_some() && in_table;
    let is_fault =
        [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL].contains(&signal);
    if is_ours && !is_fault && signal != libc::SIGKILL && signal != libc::SIGSTOP {
        by_default(signal);
        return 0;
    }
    static REAL: Real = Real::new(c"raise");
    type Function = unsafe extern "C" fn(c_int) -> c_int;
    // SAFETY: libc's function of this name has this type.
    unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(signal) }
}

unsafe extern "C" fn kill(process: libc::pid_t, signal: c_int) -> c_int {
    // SAFETY: plain calls.
    unsafe {
        if slot().is_some() && process == libc::getpid() && signal != 0 {
            return raise(signal);
        }
        static REAL: Real = Real::new(c"kill");
        type Function = unsafe extern "C" fn(libc::pid_t, c_int) -> c_int;
        std::mem::transmute::<*mut c_void, Function>(REAL.get())(process, signal)
    }
}

unsafe extern "C" fn pthread_kill(thread: libc::pthread_t, signal: c_int) -> c_int {
    // SAFETY: plain calls; the caller gives a thread.
    unsafe {
        if slot().is_some() && thread == image_thread::pthread_self() && signal != 0 {
            return raise(signal);
        }
        static REAL: Real = Real::new(c"pthread_kill");
        type Function = unsafe extern "C" fn(libc::pthread_t, c_int) -> c_int;
        std::mem::transmute::<*mut c_void, Function>(REAL.get())(thread, signal)
    }
}

unsafe extern "C" fn abort() -> ! {
    if let Some(signals) = existing() {
        // SAFETY: the kernel gave nothing.
        unsafe { signals.deliver(libc::SIGABRT, std::ptr::null_mut(), std::ptr::null_mut()) };
    }
    // SAFETY: raises the signal, which the runtime hears of; its text names the rank.
    unsafe { libc::abort() }
}

unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    let Some(signals) = signals() else {
        static REAL: Real = Real::new(c"sigprocmask");
        type Function =
            unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;
        // SAFETY: libc's function of this name has this type; the caller keeps its contract.
        return unsafe { std::mem::transmute::<*mut c_void, Function>(REAL.get())(how, set, old) };
    };
    let before = signals.blocked.get();
    // SAFETY: the program gives sets, or null; a set is longer than a word.
    unsafe {
        if let Some(set) = set.as_ref() {
            let set = first_word(set);
            signals.blocked.set(match how {
                libc::SIG_BLOCK => before | set,
                libc::SIG_UNBLOCK => before & !set,
                libc::SIG_SETMASK => set,
                _ => return fail(libc::EINVAL),
            });
        }
        if !old.is_null() {
            old.write(std::mem::zeroed());
            old.cast::<u64>().write(before.rotate_right(1));
        }
    }
    signals.deliver_pending();
    0
}

unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    old: *mut libc::sigset_t,
) -> c_int {
    if slot().is_none() {
        // SAFETY: as the caller promises; a thread that a rank has started has a mask of its own.
        return unsafe { libc::pthread_sigmask(how, set, old) };
    }
    // SAFETY: as the caller promises. The number of the error is the result.
    if unsafe { sigprocmask(how, set, old) } == 0 { 0 } else { libc::EINVAL }
}

unsafe extern "C" fn sigpending(set: *mut libc::sigset_t) -> c_int {
    // SAFETY: the program gives room for a set, which is longer than a word.
    unsafe {
        set.write(std::mem::zeroed());
        let pending = existing().map_or(0, |signals| signals.pending.get());
        set.cast::<u64>().write(pending.rotate_right(1));
    }
    0
}

/// What is here in the place of libc's functions of these names.
pub fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        "sigaction" | "__sigaction" => sigaction as *const (),
        "signal" | "bsd_signal" | "ssignal" => signal as *const (),
        "sysv_signal" | "__sysv_signal" => sysv_signal as *const (),
        "raise" | "gsignal" => raise as *const (),
        "kill" => kill as *const (),
        "pthread_kill" => pthread_kill as *const (),
        "abort" => abort as *const (),
        "sigprocmask" => sigprocmask as *const (),
        "pthread_sigmask" => pthread_sigmask as *const (),
        "sigpending" => sigpending as *const (),
        _ => return None,
    })
}
