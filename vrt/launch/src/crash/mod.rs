//! Handles signals that mean a crash of this process: reports what happened, to which rank, and where.
//!
//! The handler runs on its own stack and relies on little: it writes one plain line, has a child print the backtrace
//! (`backtrace`), includes the rank's memory in the core file if that was requested (`core`), and lets the process die
//! of the signal, or ends it with a status. If several PEs crash at the same time, only the first leaves a core,
//! because the files may have the same name; the supervisor lets that one finish.

mod backtrace;
pub(crate) mod core;
mod fault;
mod job;

use fault::{Fault, SIGNALS};
pub(crate) use job::{job, set_job};

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, Ordering};

use vrt_core::net::shared::Ended;
use vrt_slot::report::STATUS_RUNTIME;
use vrt_slot::{hooks, signals};

/// The stack on which a thread handles signals; its pages are allocated when touched.
struct SignalStack(Cell<usize>);

/// Its size in bytes.
const STACK: usize = 1 << 20;

thread_local! {
    static SIGNAL_STACK: SignalStack = const { SignalStack(Cell::new(0)) };
}

impl SignalStack {
    /// May be called again: an abandoned `exit` of the standard library has disabled the thread's
    /// signal stack.
    fn install(&self) {
        let known = self.0.get() as *mut libc::c_void;
        // SAFETY: a fresh mapping, or the thread's own, which stays until the thread ends.
        unsafe {
            let stack = match known.is_null() {
                false => known,
                true => libc::mmap(
                    std::ptr::null_mut(),
                    STACK,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                ),
            };
            if stack == libc::MAP_FAILED {
                return;
            }
            let alternate = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: STACK };
            if libc::sigaltstack(&raw const alternate, std::ptr::null_mut()) == 0 {
                self.0.set(stack as usize);
            }
        }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        let ours = self.0.get();
        // SAFETY: zeros are a valid description, which the call fills in. The mapping is ours, and
        // after it was taken back, if it still was in force, no signal uses it.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &raw mut now);
            if ours == 0 {
                return;
            }
            if now.ss_sp as usize == ours {
                let none = libc::stack_t {
                    ss_sp: std::ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: 0,
                };
                libc::sigaltstack(&raw const none, std::ptr::null_mut());
            }
            libc::munmap(ours as *mut libc::c_void, STACK);
        }
    }
}

/// Handles crashes on a separate stack, on this thread and (the handler) in this process. After its
/// report, the handler that was installed before runs.
pub(crate) fn install() {
    backtrace::prepare();
    SIGNAL_STACK.with(SignalStack::install);
    for (n, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: the handler follows the rules for signal handlers; zeros are a valid action.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_crash as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &raw const action, &raw mut old);
            if old.sa_sigaction != action.sa_sigaction {
                // Kept for good: a handler may be reading the one before.
                PREVIOUS[n].store(Box::into_raw(Box::new(old)), Ordering::Release);
            }
        }
    }
}

/// The previous actions of [`SIGNALS`]; null: the default action.
static PREVIOUS: [AtomicPtr<libc::sigaction>; SIGNALS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS.len()];

extern "C-unwind" fn on_crash(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes both.
    if unsafe { signals::handle_fault(signal, info, context) } {
        return;
    }
    // What the rank may not do, the handler may; and it waits without giving way to other ranks.
    // SAFETY: the process's heap.
    let heap = unsafe { hooks::use_heap(std::ptr::null_mut()) };
    // SAFETY: the kernel passes both.
    let fault = unsafe { Fault::new(signal, info, context.cast()) };
    let first = core::claim();
    let with_status = fault.tell();
    let out_of_memory = with_status && signal == libc::SIGBUS;
    if fault.whereabouts.is_some() && !out_of_memory {
        backtrace::print(&fault);
    }
    let leaves_core = first && core::include_rank_of(&fault);
    if with_status {
        match job() {
            Some(job) => job.end(Ended::Status, STATUS_RUNTIME),
            None => abort_unhandled(),
        };
        if !leaves_core {
            // SAFETY: `_exit` may be called from a handler.
            unsafe { libc::_exit(STATUS_RUNTIME) };
        }
    }
    // SAFETY: it was in use when the fault came.
    unsafe { hooks::use_heap(heap) };
    // The fault happens again when this returns, and `abort` goes on, under the handler that was
    // there before: so a core file shows the rank and not this handler. What was sent is sent again.
    // SAFETY: restores an action that was in force, which is kept for good; zeros are the default one.
    unsafe {
        let at = SIGNALS.iter().position(|other| *other == signal).unwrap_or_default();
        let previous = PREVIOUS[at].load(Ordering::Acquire).as_ref();
        let by_default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, previous.unwrap_or(&by_default), std::ptr::null_mut());
        if fault.was_sent() {
            libc::raise(signal);
        }
    }
}

/// Ends a process that is not a PE.
fn abort_unhandled() -> ! {
    // SAFETY: in a handler; nothing else may run.
    unsafe {
        libc::signal(libc::SIGABRT, libc::SIG_DFL);
        libc::abort()
    }
}
