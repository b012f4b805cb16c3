//! External resources: what ranks hold outside their slots and cannot move with. Open descriptors, threads that they
//! started, memory that they mapped, children, locks.
//!
//! The libc calls that create and release these are interposed in front of libc's (the table is in
//! [`calls`](super::calls)). What a rank creates is counted in its slot ([`Held`]); while a count is not zero the rank
//! is pinned to its PE. What is created outside of any rank belongs to no rank.
//!
//! Invariants:
//! - Each thing has one entry (in the table of descriptors, in the [`register`], or in the slot's own list of locks)
//!   that names the slot of the rank that created it, whichever rank releases it. A count is lowered only together with
//!   the removal of an entry, so it is never lowered twice.
//! - When a rank's stack is abandoned its entries are forgotten ([`abandon`]): what it left open belongs to the
//!   process, and the next rank in that slot begins with nothing.
//! - Entries and counts are changed only by atomic operations. Except for the creation of a table nothing here
//!   allocates or waits, so signal handlers may call interposed functions.
//! - A process that was forked from a PE has a copy of the tables, but shares the slots: it keeps no accounts
//!   ([`forked`]).
//!
//! Code that makes system calls directly, in assembly, is not seen (the crate `rustix` does, unless its feature
//! `use-libc` is enabled).
//!
//! | file | subject |
//! |---|---|
//! | `register` | the entries of everything except descriptors and most locks |
//! | `carried` | descriptors that move along when a rank moves inside its node |
//! | `descriptors` | files, sockets, pipes and all other numbers; streams of C |
//! | `mappings` | memory that a rank has mapped or protected: ranges, which can be cut |
//! | `processes` | children, and the calls that copy a process |
//! | `threads` | threads that ranks start |
//! | `locks` | locks of pthread that a rank has taken |
//! | `counted` | references to their PE's tokio runtime, its thread, and `Arc`s of `main` that ranks hold |
//! | `spans` | spans of `tracing` |
//! | `system_calls` | `syscall`: the same, by number |

pub mod carried;
pub mod counted;
pub(crate) mod descriptors;
pub(crate) mod locks;
pub(crate) mod mappings;
pub mod processes;
mod register;
pub mod spans;
pub mod system_calls;
pub mod threads;

use std::ffi::{c_char, c_int, c_void};

use crate::accounts::{self, Accounts};
use crate::held::{Held, Kind};
use crate::hooks::heap_in_use;
use crate::interpose::process_wide;
use crate::rank::Body;
use crate::{Arena, SlotHeader, SlotId, forked, timers};

/// Why the rank of a slot cannot move, if so; inside its node, or farther. It is a rank of this process.
pub fn pin(slot: &SlotHeader, in_node: bool) -> Option<&'static str> {
    let held = &slot.held;
    if held.has(Kind::Child) {
        processes::forget_ended(slot.id().0);
    }
    if held.locks.any() {
        return Some(Kind::Lock.reason());
    }
    if descriptors::any_of_tokio() {
        return Some("tokio has a file open on its PE, which may be this rank's");
    }
    match in_node {
        true => carried::pin(held).or_else(|| held.first_kind_that_stays().map(Kind::reason)),
        false => held.first_kind().map(Kind::reason),
    }
}

/// The rank of a slot has ended. Its stack is forgotten without running destructors; what it still holds belongs to the
/// process from now on.
///
/// # Safety
/// The calling PE owns the slot and will not resume the rank.
pub unsafe fn abandon(slot: *mut SlotHeader) {
    // SAFETY: the caller owns the slot and does not come back to the stack that is forgotten. The header
    // stays mapped, and others change nothing of it but atomics.
    let slot = unsafe {
        Body::forget_stack(slot);
        &*slot
    };
    slot.held.locks.forget_all();
    timers::end(slot);
    if slot.held.first_kind().is_none() {
        return;
    }
    descriptors::forget_of(slot.id().0);
    mappings::unprotect_all_of(slot.id().0);
    register::forget_of(slot.id().0);
    slot.held.forget_counts();
}

/// Whether threads that the calling rank has started are running.
pub fn has_running_threads() -> bool {
    running().is_some_and(|slot| slot.held.has(Kind::Thread)) && !forked::is_child()
}

/// This process is to run ranks: accounts are kept.
pub fn begin() {
    forked::set_copy(false);
    locks::begin();
    let (children, starter) = (processes::for_each, threads::header_of_starter);
    accounts::set(Accounts { children, starter, holds, ends });
}

fn held_by(slot: u32) -> Option<&'static Held> {
    let header = Arena::current()?.header(SlotId(slot));
    // SAFETY: headers of the arena stay mapped, and are valid even when zeroed.
    Some(unsafe { &(*header).held })
}

/// The slot of the rank that runs here.
#[inline(always)]
fn running() -> Option<&'static SlotHeader> {
    let slot = heap_in_use();
    // SAFETY: the heap in use is the running rank's slot, whose header stays mapped.
    (!slot.is_null()).then(|| unsafe { &*slot })
}

/// The slot of the rank that owns what is created here: it runs here, or has started this thread.
fn owner() -> Option<u32> {
    running().map(|slot| slot.id().0).or_else(threads::starter)
}

/// Whether a rank runs here.
pub(super) fn is_rank() -> bool {
    running().is_some()
}

/// The running rank holds something, if it did not before.
pub(super) fn holds(kind: Kind, key: usize) {
    if let Some(slot) = running()
        && !register::holds(kind, key)
    {
        register::add(kind, key, 0, slot.id().0);
    }
}

/// Something that is held has ended.
pub(super) fn ends(kind: Kind, key: usize) {
    register::take(kind, key);
}

/// The call returns a handle, null, or -1. A rank holds it until it is released. Memory that the call keeps for the
/// process does not lie in the rank's heap.
pub(crate) fn acquires(kind: Kind, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let handle = process_wide(call);
    if !handle.is_null()
        && handle as isize != -1
        && let Some(slot) = owner()
    {
        register::add(kind, handle as usize, 0, slot);
    }
    handle
}

/// The same for a call that consumes another handle, or null, if it succeeds.
pub(crate) fn acquires_from(
    kind: Kind,
    used: *mut c_void,
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let handle = acquires(kind, call);
    if !handle.is_null() && !used.is_null() {
        register::take(kind, used as usize);
    }
    handle
}

/// The call returns 0 if it has stored a handle.
///
/// # Safety
/// It does.
pub(crate) unsafe fn acquires_at(
    kind: Kind,
    at: *const *mut c_void,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let status = process_wide(call);
    if status == 0
        && let Some(slot) = owner()
    {
        // SAFETY: as the caller promises.
        register::add(kind, unsafe { at.read() } as usize, 0, slot);
    }
    status
}

/// The call releases what a handle represents.
pub(crate) fn releases<R>(kind: Kind, handle: *mut c_void, call: impl FnOnce() -> R) -> R {
    register::take(kind, handle as usize);
    process_wide(call)
}

/// The call loads a library; without a name it is the program, which all PEs have.
pub fn loads(file: *const c_char, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if file.is_null() { process_wide(call) } else { acquires(Kind::Library, call) }
}
