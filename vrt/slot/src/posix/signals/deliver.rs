//! Handlers of programs are called, where and when they may be.

use std::ffi::{c_int, c_void};
use std::process;
use std::sync::atomic::Ordering;

use super::pending::Info;
use super::sets::{Action, bit, is_ignored_by_default};
use super::tables::{Caller, existing, of_slot, slot_of_caller};
use crate::arena::SlotHeader;
use crate::stack::run_first;
use crate::sys::Plain;
use crate::{forked, heap_word, report, sys};

type Handler = unsafe extern "C-unwind" fn(c_int);
type HandlerWithInfo = unsafe extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

impl Caller {
    /// Calls handlers for pending signals that are not blocked; without a handler, applies the system's default.
    /// `context` is the kernel's, or null. A handler may leave by a jump, or an exception.
    pub(crate) fn deliver(self, context: *mut c_void) {
        while let Some((action, info)) = self.take_handled() {
            // SAFETY: the program has set the handler: S4, for `sigaction` and the like. The context is the kernel's (S5).
            unsafe { self.call(action, &info, context) };
        }
    }

    /// The next one that has a handler.
    fn take_handled(self) -> Option<(Action, Info)> {
        loop {
            let info = self.take(!self.thread.blocked.load(Ordering::SeqCst))?;
            let action = self.signals.action(info.signal);
            match action.is_handler() {
                true => return Some((action, info)),
                false if action.drops(info.signal) => {}
                false => by_default(info.signal),
            }
        }
    }

    /// Calls a handler, after those of other signals that arrive in between: as if the kernel had put the frames of all
    /// on the stack, and the last one ran first.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn call(self, action: Action, info: &Info, context: *mut c_void) {
        let before = self.enter(action, info.signal);
        self.deliver(context);
        let mut given = info.described();
        // SAFETY: a description; handler and context are those of the caller.
        unsafe { self.run(action, &raw mut given, context) };
        self.thread.blocked.store(before, Ordering::SeqCst);
    }

    /// Blocks what a handler has blocked while it runs; returns the previous mask.
    pub(super) fn enter(self, action: Action, signal: c_int) -> u64 {
        let thread = self.thread;
        let own = if action.flags & libc::SA_NODEFER != 0 { 0 } else { bit(signal) };
        let before = thread.blocked.load(Ordering::SeqCst);
        thread.blocked.store(before | own | action.mask, Ordering::SeqCst);
        thread.handled.fetch_add(1, Ordering::Relaxed);
        if action.flags & libc::SA_RESTART == 0 {
            thread.interrupting.fetch_add(1, Ordering::Relaxed);
        }
        if action.flags & libc::SA_RESETHAND != 0 {
            self.signals.set_action(signal, Action::DEFAULT);
        }
        before
    }

    /// Runs a handler.
    ///
    /// # Safety
    /// The program has set it with these flags; the description is readable, and the context, unless null, the kernel's.
    pub(super) unsafe fn run(
        self,
        action: Action,
        info: *mut libc::siginfo_t,
        context: *mut c_void,
    ) {
        // SAFETY: the handler has the type that its flags say: the caller of `sigaction` (S4).
        unsafe {
            let signal = (*info).si_signo;
            if action.flags & libc::SA_SIGINFO == 0 {
                return std::mem::transmute::<usize, Handler>(action.handler)(signal);
            }
            let handler = std::mem::transmute::<usize, HandlerWithInfo>(action.handler);
            let mut registers = libc::ucontext_t::zeroed();
            let context = match context.is_null() {
                true => (&raw mut registers).cast(),
                false => context,
            };
            handler(signal, info, context);
        }
    }
}

/// The system's default for a signal without a handler.
pub(super) fn by_default(signal: c_int) {
    /// Added by a shell to the number of the signal that has ended a program.
    const SIGNALLED: c_int = 128;
    const STOPPING: [c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    if is_ignored_by_default(signal) {
        return;
    }
    if forked::is_child() {
        // The process ends, or stops, as it would have without handlers.
        // SAFETY: `SIG_DFL` calls nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        sys::kill(process::id() as libc::pid_t, signal);
        if STOPPING.contains(&signal) {
            return;
        }
        // Something has blocked the signal.
        sys::_exit(SIGNALLED + signal);
    }
    if STOPPING.contains(&signal) {
        // One rank of a PE cannot be stopped alone.
        return;
    }
    let rank = match slot_of_caller() {
        Some(slot) => slot.rank.get(),
        None => heap_word::current_rank().unwrap_or_default(),
    };
    report::say(format_args!(
        "rank {rank}: signal {signal}, for which it has no handler; ending the job"
    ));
    report::end_job(SIGNALLED + signal)
}

/// The rank of a slot, which is about to be resumed, has signals: it runs its handlers first, on its own stack, unless
/// it checks for them itself.
///
/// # Safety
/// The calling PE owns the slot, and is about to resume its rank.
#[cold]
#[inline(never)]
pub(crate) unsafe fn run_before_resuming(slot: &SlotHeader) {
    slot.has_signal.store(false, Ordering::SeqCst);
    let Some(signals) = of_slot(slot) else { return };
    if signals.main.looks.load(Ordering::Relaxed) {
        return;
    }
    signals.locked(|| signals.collect(slot));
    // That has told the rank anew.
    slot.has_signal.store(false, Ordering::SeqCst);
    if signals.is_deliverable(&signals.main) {
        // SAFETY: the promise of this function's caller.
        unsafe { run_first(slot, deliver_on_stack) };
    }
}

/// Whether the rank of a slot, which is suspended, must be resumed for its signals, or to query a child.
///
/// # Safety
/// The header of a slot of the arena.
pub unsafe fn has_some(slot: *mut SlotHeader) -> bool {
    // SAFETY: S1; an atomic.
    unsafe { (*slot).has_signal.load(Ordering::SeqCst) }
}

/// Runs the handlers of the rank that has just been resumed.
extern "C-unwind" fn deliver_on_stack() {
    if let Some(caller) = existing() {
        caller.deliver(std::ptr::null_mut());
    }
}
