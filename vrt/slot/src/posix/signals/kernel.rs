//! How the kernel notifies a PE of signals of its ranks: by one real-time signal, the *nudge*, and by those that only
//! the kernel can raise: for children, broken pipes, faults.
//!
//! A nudge carries nothing, or which timer of a rank has expired, or what a child of a rank has sent. It interrupts the
//! thread that must check. There the handler runs the rank's own handlers, if it has interrupted code of the rank; if
//! it has interrupted the runtime, which must not be left by a jump nor be re-entered, the rank is woken, and a timer
//! of the PE nudges it again a moment later.
//!
//! **No handler on top of another one.** Timers may expire faster than their nudges are handled. So the kernel holds
//! back nudges while the handler checks, and lets them through only while it runs handlers of the rank, which may leave
//! by a jump; after each of them they are held back before it checks again. What arrives in a rank's handler, which
//! blocks its own signal, finds nothing to run. So the frames of the kernel on a stack are as few as in a process.
//!
//! **Interrupted calls.** The kernel continues an interrupted system call after a handler with `SA_RESTART`, as the
//! nudge's is, because it may have been another rank's signal. If one of the rank's own handlers ran that has not
//! requested this, the call ends with `EINTR`: by changing the registers to which the nudge's handler returns, and
//! which point to the instruction that makes the call, with its number.

use std::ffi::{c_int, c_long, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use vrt_load::{find_object, thread_pointer};

use super::children;
use super::deliver::by_default;
use super::nudge::{self, Bears, number, system_call};
use super::pending::Info;
use super::sets::{COUNT, FIRST_REAL_TIME, bit, is_handled, is_signal, set_of};
use super::tables::{Caller, For, Signals, caller, existing, of_slot, slot_of_caller};
use crate::arena::{Arena, SlotHeader};
use crate::heap_word::{self, running};
use crate::posix::errno::{errno, of_process};
use crate::sys::Plain;
use crate::{image, sys};

/// The slot of the rank as which a forked child continues.
static CHILD: AtomicPtr<SlotHeader> = AtomicPtr::new(std::ptr::null_mut());
/// Code that is not a rank's, and the stack of the PE's loop.
static RUNTIME_CODE: OnceLock<Vec<Range<usize>>> = OnceLock::new();
static LOOPS_STACK: OnceLock<Range<usize>> = OnceLock::new();

/// This process is to run images, on the calling thread.
pub fn begin() {
    prepare();
    nudge::begin();
    let held = set_of(bit(number()) | bit(libc::SIGCHLD));
    handle(number(), on_nudge as *const () as usize, 0, held);
    handle(libc::SIGCHLD, on_child as *const () as usize, 0, held);
    // It runs the rank's handler at once, which may leave by a jump.
    handle(libc::SIGPIPE, on_pipe as *const () as usize, libc::SA_NODEFER, set_of(0));
    nudge::make_retry();
}

/// Makes the kernel call one of the handlers below, or the default, for a signal.
fn handle(signal: c_int, handler: usize, flags: c_int, mask: libc::sigset_t) {
    let mut action = libc::sigaction::zeroed();
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | flags;
    action.sa_mask = mask;
    // SAFETY: the handlers below have the type that `SA_SIGINFO` means.
    unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
}

/// This process is a child that a rank has forked: it has no loop, and signals from others are its own.
pub(crate) fn begin_child(slot: &'static SlotHeader) {
    CHILD.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
    nudge::begin_child();
    if let Some(signals) = of_slot(slot) {
        let caller = Caller { slot, signals, thread: &signals.main };
        signals.timers.forget();
        signals.has_one_thread();
        (1..COUNT as c_int).for_each(|signal| follow(caller, signal));
    }
}

/// In a child that a rank has forked: makes the kernel handle a signal as the child's own tables say.
pub(super) fn follow(caller: Caller, signal: c_int) {
    if !is_handled(signal) || signal == number() {
        return;
    }
    let action = caller.signals.action(signal);
    let is_blocked = caller.thread.blocked.load(Ordering::SeqCst) & bit(signal) != 0;
    const FAULTS: [c_int; 5] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];
    let is_fault = FAULTS.contains(&signal);
    if is_fault && !action.is_handler() {
        return;
    }
    let handler = match (action.is_handler(), is_fault) {
        (true, true) => on_fault as *const () as usize,
        (true, false) => on_any as *const () as usize,
        _ if is_blocked => on_any as *const () as usize,
        _ => action.handler,
    };
    // libc keeps its first two for itself.
    let let_through = FAULTS.iter().chain(&[FIRST_REAL_TIME, FIRST_REAL_TIME + 1]);
    let others = let_through.fold(!0, |all, signal| all & !bit(*signal));
    match is_fault {
        true => handle(signal, handler, libc::SA_NODEFER, set_of(0)),
        false => handle(signal, handler, 0, set_of(others)),
    }
}

/// Determines which code is not a rank's, and where the loop's stack is.
fn prepare() {
    heap_word::runtime_heap(|| {
        let mut found: Vec<Range<usize>> = Vec::new();
        find_object(|object| {
            let headers = object.headers().iter();
            let code = headers.filter(|header| {
                header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0
            });
            found.extend(code.map(|header| object.memory(header)));
            // The first one is the runtime; others are ranks' too, if these have no libc of their own.
            (!image::has_libc()).then_some(())
        });
        let _: &Vec<_> = RUNTIME_CODE.get_or_init(|| found);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let stack = maps.lines().find(|line| line.ends_with("[stack]"));
        let range = stack.and_then(|line| line.split_whitespace().next()?.split_once('-'));
        let end = range.and_then(|(_, end)| usize::from_str_radix(end, 16).ok());
        /// The most that it may grow to.
        const MOST: usize = 64 << 20;
        let end = end.unwrap_or(0);
        let _: &Range<usize> = LOOPS_STACK.get_or_init(|| end.saturating_sub(MOST)..end);
    });
    // What is looked up when it is first needed, is known now.
    // SAFETY: the call takes nothing.
    unsafe { system_call(libc::SYS_getpid, [0; 4]) };
    errno();
}

/// Whether the registers of a handler are those of the rank's code that the thread runs.
///
/// # Safety
/// They were supplied by the kernel.
unsafe fn is_in_rank(slot: &SlotHeader, context: *mut c_void) -> bool {
    // SAFETY: S5, says the caller.
    let (pc, sp) = unsafe { registers(context) };
    thread_pointer::get() == slot.thread_pointer.get()
        && !LOOPS_STACK.get().is_some_and(|stack| stack.contains(&sp))
        && !RUNTIME_CODE.get().is_some_and(|code| code.iter().any(|code| code.contains(&pc)))
}

/// Program counter and stack pointer.
///
/// # Safety
/// The registers were supplied by the kernel.
unsafe fn registers(context: *mut c_void) -> (usize, usize) {
    // SAFETY: S5, says the caller.
    unsafe {
        let machine = &(*context.cast::<libc::ucontext_t>()).uc_mcontext;
        #[cfg(target_arch = "x86_64")]
        return (
            machine.gregs[libc::REG_RIP as usize] as usize,
            machine.gregs[libc::REG_RSP as usize] as usize,
        );
        #[cfg(target_arch = "aarch64")]
        return (machine.pc as usize, machine.sp as usize);
    }
}

/// A nudge has arrived.
unsafe extern "C-unwind" fn on_nudge(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: S5; what was not sent with a value has some word there.
    let (code, word) = unsafe { ((*info).si_code, (*info).si_value().sival_ptr as usize) };
    let bears = match code {
        libc::SI_TIMER | libc::SI_QUEUE => Bears::of(word),
        _ => Bears::Nothing,
    };
    if let (Bears::Timer(_, which), Some(signals)) = (bears, bears.slot().and_then(of_slot)) {
        signals.timers.has_run_off(which);
    }
    if let (Bears::Signal(_, signal), Some(signals)) = (bears, bears.slot().and_then(of_slot))
        && is_signal(signal as c_int)
    {
        signals.from_child.fetch_or(bit(signal as c_int), Ordering::SeqCst);
    }
    // SAFETY: S5.
    unsafe { look(bears.slot(), context) };
}

/// Checks what is pending for the rank or thread that runs here, and for the rank of a slot.
///
/// # Safety
/// In a handler, with the kernel's arguments.
unsafe fn look(concerned: Option<&'static SlotHeader>, context: *mut c_void) {
    let error = of_process().get();
    if heap_word::pe_of_thread() == 0 && !nudge::is_on_thread() {
        // A thread of a rank's, or of the process. What it cannot see to does the PE's.
        if let Some(slot) = concerned {
            nudge::remember(slot);
        }
        if concerned.is_some() || children::have_changed() {
            nudge::nudge_pe();
        }
        if image::base_of_thread().is_some()
            && let Some(caller) = existing()
        {
            // SAFETY: S5, says the caller. A thread of a rank runs the rank's code, or a call of libc's as in any process.
            unsafe { deliver_in_handler(caller, context) };
        }
    } else {
        children::look();
        let again = nudge::take_remembered();
        let all = || std::iter::once(concerned).chain(again).flatten();
        for slot in all() {
            if let Some(signals) = of_slot(slot) {
                signals.lock.with(|| signals.collect(slot));
            }
        }
        let running = running();
        for slot in all() {
            let is_running = running.is_some_and(|running| std::ptr::eq(running, slot));
            if !is_running && slot.has_signal.load(Ordering::SeqCst) {
                nudge::wake();
                nudge::nudge_again(slot);
            }
        }
        // Last, as a handler may leave by a jump.
        if let Some(slot) = running.filter(|slot| slot.thread_pointer.get() != 0) {
            // SAFETY: S5, says the caller.
            match unsafe { is_in_rank(slot, context) } {
                true => {
                    slot.has_signal.store(false, Ordering::SeqCst);
                    if let Some(caller) = existing() {
                        // SAFETY: S5, says the caller; `is_in_rank`.
                        unsafe { deliver_in_handler(caller, context) };
                    }
                }
                false if has_some(slot) => nudge::nudge_again(slot),
                false => {}
            }
        }
    }
    of_process().set(error);
}

/// Whether something is pending for a rank that has not checked yet.
fn has_some(slot: &SlotHeader) -> bool {
    slot.has_signal.load(Ordering::SeqCst)
        || of_slot(slot).is_some_and(|signals| signals.is_deliverable(&signals.main))
}

/// Runs handlers inside that of the kernel's signal, and ends the interrupted call, if one of them requires it.
///
/// # Safety
/// In a handler, with the kernel's arguments; it has interrupted the caller's code.
unsafe fn deliver_in_handler(caller: Caller, context: *mut c_void) {
    nudge::has_succeeded();
    let (signals, thread) = (caller.signals, caller.thread);
    let before = thread.interrupting.load(Ordering::Relaxed);
    let is_deliverable = || {
        signals.collect(caller.slot);
        signals.is_deliverable(thread)
    };
    // SAFETY: S5, says the caller; the kernel's set is a word, in which each signal has a bit.
    let interrupted = unsafe {
        (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>().read()
    };
    // Without the lock, which the interrupted code has, nothing can be taken; it repeats the nudge.
    while signals.lock.with(is_deliverable) == Some(true) {
        let held = set_mask(interrupted);
        caller.deliver(context);
        set_mask(held);
    }
    if caller.thread.interrupting.load(Ordering::Relaxed) != before {
        // SAFETY: S5, says the caller.
        unsafe { end_call(context) };
    }
}

/// Sets which signals the kernel holds back from this thread, a bit for each; returns those that it held back.
fn set_mask(mask: u64) -> u64 {
    let mut before = 0_u64;
    let (new, old) = ((&raw const mask) as usize, (&raw mut before) as usize);
    let arguments = [libc::SIG_SETMASK as usize, new, old, size_of::<u64>()];
    // SAFETY: the kernel reads `mask` and writes `before`, which have the length that it is told.
    unsafe { system_call(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// Ends the system call that the kernel would continue after the handler.
///
/// # Safety
/// In a handler, with the kernel's arguments.
#[cfg(target_arch = "x86_64")]
unsafe fn end_call(context: *mut c_void) {
    /// The instruction that makes a call.
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    // SAFETY: S5, says the caller; the thread goes on at that instruction, so it can be read.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let instruction = (registers[libc::REG_RIP as usize] as *const [u8; 2]).read();
        let number = registers[libc::REG_RAX as usize];
        let descriptor = registers[libc::REG_RDI as usize] as c_int;
        if instruction == SYSCALL && may_be_ended(number, descriptor) {
            registers[libc::REG_RIP as usize] += SYSCALL.len() as i64;
            registers[libc::REG_RAX as usize] = -i64::from(libc::EINTR);
        }
    }
}

/// This processor does not support images.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn end_call(_: *mut c_void) {}

/// Whether a system call may wait, so that a signal interrupts it.
#[cfg(target_arch = "x86_64")]
fn may_be_ended(number: c_long, descriptor: c_int) -> bool {
    match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_write | libc::SYS_writev => {
            sys::status_of(descriptor).is_some_and(|file| {
                !matches!(file.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR)
            })
        }
        libc::SYS_open
        | libc::SYS_openat
        | libc::SYS_ioctl
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_fcntl
        | libc::SYS_flock
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_futex
        | libc::SYS_mq_timedsend
        | libc::SYS_mq_timedreceive
        | libc::SYS_splice
        | libc::SYS_getrandom => true,
        _ => false,
    }
}

/// A child of the process has changed.
unsafe extern "C-unwind" fn on_child(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    children::came();
    // SAFETY: S5.
    unsafe { look(None, context) };
}

/// A rank has written to a pipe without a reader: it has just done so itself.
unsafe extern "C-unwind" fn on_pipe(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    if running().is_none() && image::base_of_thread().is_none() {
        return;
    }
    let Some(caller) = caller() else { return by_default(signal) };
    let info = Info::sent(signal, libc::SI_USER, 0);
    if caller.signals.post(caller.slot, For::Thread(caller.thread), info).is_some() {
        caller.deliver(context);
    }
}

/// A signal has arrived for a child that a rank has forked.
unsafe extern "C-unwind" fn on_any(
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: null, or the header that `begin_child` was given (S1).
    let slot = unsafe { CHILD.load(Ordering::Relaxed).as_ref::<'static>() };
    let Some((slot, signals)) = slot.and_then(|slot| Some((slot, of_slot(slot)?))) else { return };
    // SAFETY: S5; the fields that the kernel fills in for this signal.
    let given = unsafe {
        let (pid, uid, code) = ((*info).si_pid(), (*info).si_uid(), (*info).si_code);
        let is_childs = signal == libc::SIGCHLD && code > 0;
        let status = if is_childs { (*info).si_status() } else { 0 };
        let value = if is_childs { 0 } else { (*info).si_value().sival_ptr as usize };
        Info { signal, code, pid, uid, status, value }
    };
    if signals.post(slot, For::Rank, given).is_none() {
        signals.from_child.fetch_or(bit(signal), Ordering::SeqCst);
    }
    // SAFETY: S5.
    unsafe { look(Some(slot), context) };
}

/// A fault in a child that a rank has forked, which has a handler.
unsafe extern "C-unwind" fn on_fault(
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: S5.
    unsafe { handle_fault(signal, info, context) };
}

/// A fault of the running rank, or of a thread of it, has reached the runtime's handler: calls the rank's, if it has
/// one. Returns whether it had; then the access is repeated.
///
/// # Safety
/// In the handler of the signal, with the kernel's arguments.
pub unsafe fn handle_fault(
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) -> bool {
    // A rank that has spoiled its stack may have spoiled what is above it, too.
    let is_in_slot = |slot: &SlotHeader| {
        let signals = slot.signals.get() as usize;
        Arena::contains(signals)
            && signals.is_multiple_of(align_of::<Signals>())
            && Some(slot.id()) == Arena::current().map(|arena| arena.slot_at(signals))
    };
    if !slot_of_caller().is_some_and(is_in_slot) {
        return false;
    }
    let Some(caller) = existing() else { return false };
    let action = caller.signals.action(signal);
    // A handler of libgfortran's prints less than the runtime does.
    let is_of_library = image::module_at(action.handler)
        .is_some_and(|(_, module)| module.name.starts_with("libgfortran"));
    // A fault that is blocked ends the process, as everywhere: also that of its own handler.
    let is_blocked = caller.thread.blocked.load(Ordering::SeqCst) & bit(signal) != 0;
    if !action.is_handler() || is_of_library || is_blocked {
        return false;
    }
    let own = set_of(bit(signal));
    // The handler may leave by a jump, and others run then: so nothing stays blocked.
    // SAFETY: `own` is a set. The program has set the handler, and the caller gives the kernel's arguments (S5).
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const own, std::ptr::null_mut());
        let before = caller.enter(action, signal);
        caller.run(action, info, context);
        caller.thread.blocked.store(before, Ordering::SeqCst);
    }
    true
}
