//! `SIGCHLD`: the children of a PE are those of its ranks, one rank each. The kernel tells the PE that some have
//! changed, but not which; so the PE queries all children of ranks whose end it has not reported yet.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::nudge;
use super::pending::Info;
use super::tables::{For, Signals, of_slot};
use crate::arena::{Arena, SlotHeader};
use crate::held::Kind;
use crate::{forked, register, sys};

/// Some have changed, and have not been queried.
static HAVE_CHANGED: AtomicBool = AtomicBool::new(false);

/// Whether a query is needed.
pub(super) fn have_changed() -> bool {
    HAVE_CHANGED.load(Ordering::SeqCst)
}

/// The kernel's signal has arrived.
pub(super) fn came() {
    HAVE_CHANGED.store(true, Ordering::SeqCst);
}

/// Queries which children of ranks have ended, stopped, or continued, and tells the ranks. In a handler on the PE's
/// thread.
pub(super) fn look() {
    if !HAVE_CHANGED.swap(false, Ordering::SeqCst) || forked::is_child() {
        return;
    }
    // For each child the last state that its rank was told (0: none).
    register::set_lens(Kind::Child, |child, told, slot| {
        if is_end(told as c_int) {
            return None;
        }
        let every = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED;
        let info = sys::look_at_child(child as libc::pid_t, every).ok()?;
        // SAFETY: these are what `waitid` fills in.
        let (pid, uid, status) = unsafe { (info.si_pid(), info.si_uid(), info.si_status()) };
        if pid == 0 || info.si_code as usize == told {
            return None;
        }
        let changed =
            Info { signal: libc::SIGCHLD, code: info.si_code, pid, uid, status, value: 0 };
        let is_told = tell(slot, changed);
        if !is_told {
            HAVE_CHANGED.store(true, Ordering::SeqCst);
        }
        is_told.then_some(changed.code as usize)
    });
}

fn is_end(code: c_int) -> bool {
    matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED)
}

/// A child has changed: tells the rank of a slot. Returns false if that must be done later.
fn tell(slot: u32, child: Info) -> bool {
    let Some(slot) = Arena::current().and_then(|arena| arena.slot(slot)) else { return true };
    if let Some(signals) = of_slot(slot) {
        let is_end = is_end(child.code);
        let action = signals.action(libc::SIGCHLD);
        let is_wanted = is_end || action.flags & libc::SA_NOCLDSTOP == 0;
        if is_wanted && signals.post(slot, For::Rank, child).is_none() {
            return false;
        }
        if is_end && reaps(signals) {
            // SAFETY: `waitpid` need not store a status.
            unsafe { libc::waitpid(child.pid, std::ptr::null_mut(), libc::WNOHANG) };
        }
    }
    // Who waits for a child looks.
    wake(slot);
    true
}

fn wake(slot: &SlotHeader) {
    slot.has_signal.store(true, Ordering::SeqCst);
    nudge::nudge_rank(slot);
}

/// Whether the system should reap a rank's children.
fn reaps(signals: &Signals) -> bool {
    let action = signals.action(libc::SIGCHLD);
    action.handler == libc::SIG_IGN || action.flags & libc::SA_NOCLDWAIT != 0
}

/// A child is registered from now on, and may have ended before. If ranks have no signals of their own, there is
/// nothing to query.
pub(crate) fn look_soon() {
    if !nudge::has_begun() {
        return;
    }
    HAVE_CHANGED.store(true, Ordering::SeqCst);
    nudge::nudge_self();
}
