//! Children of ranks, and the calls that copy a process.
//!
//! A child belongs to its rank until it has been waited for. The calls that do that are not
//! tracked: the system knows whether the child can still be waited for.

use std::ffi::c_int;

use crate::heap_word::{self, in_rank};
use crate::held::Kind;
use crate::owner::owner;
use crate::posix::signals;
use crate::{outside, register, report, sys};

/// The call starts a program and returns 0 if it has stored the child's number.
///
/// # Safety
/// It stores the number, unless the pointer is null.
pub(crate) unsafe fn starts_child(
    child: *const libc::pid_t,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let status = call();
    if status == 0
        && !child.is_null()
        && let Some(slot) = owner()
    {
        // SAFETY: the call has stored the number there, says the caller.
        register::add(Kind::Child, unsafe { child.read() } as usize, 0, slot);
        signals::look_for_children();
    }
    status
}

/// The running rank has created a child.
pub(crate) fn has_child(child: libc::pid_t) {
    if let Some(slot) = owner() {
        register::add(Kind::Child, child as usize, 0, slot);
        signals::look_for_children();
    }
}

/// Calls `f` with each child that the caller's rank may wait for, until it returns something. It is not called in a
/// child that a rank has forked.
pub fn find_own<R>(mut f: impl FnMut(libc::pid_t) -> Option<R>) -> Option<R> {
    let own = owner()?;
    register::find_map(Kind::Child, |child, _, slot| {
        (slot == own).then(|| f(child as libc::pid_t)).flatten()
    })
}

/// The caller has waited for the end of a child.
pub fn is_over(child: libc::pid_t) {
    register::take(Kind::Child, child as usize);
}

/// Forgets the children of a slot's rank that cannot be waited for any more.
pub(super) fn forget_ended(slot: u32) {
    register::take_all(Kind::Child, |child, _, of| of == slot && !can_be_waited_for(child));
}

fn can_be_waited_for(child: usize) -> bool {
    let found = sys::look_at_child(child as libc::pid_t, libc::WEXITED);
    // An interrupted or otherwise failed question says nothing.
    found.is_ok() || found.is_err_and(|error| error.raw_os_error() != Some(libc::ECHILD))
}

/// Explains why a rank cannot fork, and ends the job.
fn refuse_fork(call: &str) -> ! {
    let rank = heap_word::current_rank().unwrap_or_default();
    report::say(format_args!(
        "rank {rank} called {call}: a virtual rank's stack is shared memory, on which parent and \
         child would overwrite each other; start programs with std::process::Command (without \
         pre_exec), or in C with posix_spawn, popen or system"
    ));
    heap_word::runtime_heap(|| report::end_job(report::STATUS_RUNTIME))
}

/// The call copies the process, which a rank must not do.
pub fn copies(name: &str, call: impl FnOnce() -> libc::pid_t) -> libc::pid_t {
    if in_rank() {
        refuse_fork(name);
    }
    let child = call();
    if child == 0 {
        outside::leave_to_parent();
    }
    child
}

/// The call copies the process, or a part of it, in a special way, which a rank must not do.
pub(crate) fn is_refused<R>(name: &str, call: impl FnOnce() -> R) -> R {
    if in_rank() {
        refuse_fork(name);
    }
    call()
}

/// BSD `vfork`: outside of ranks it is `fork`, as POSIX allows. A child that shared the process's memory would change
/// its accounts.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn vfork() -> libc::pid_t {
    // SAFETY: `fork` may be called anywhere; what its child may do is C's contract.
    is_refused("vfork()", || unsafe { libc::fork() })
}
