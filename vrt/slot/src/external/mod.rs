//! External resources: what ranks hold outside their slots and cannot move with. Open descriptors, threads that they
//! started, memory that they mapped, children, locks.
//!
//! The libc calls that create and release these are interposed in front of libc's (the table is in
//! [`calls`](crate::calls)). What a rank creates is counted in its slot ([`Held`](crate::Held)); while a count is not zero the rank
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
//! | `handles` | what a call gives a handle for: libraries, semaphores, lists |
//! | `claims`, `carried` | descriptors that move along when a rank moves inside its node: their numbers, their journeys |
//! | `descriptors` | files, sockets, pipes and all other numbers; streams of C |
//! | `mappings` | memory that a rank has mapped or protected: ranges, which can be cut |
//! | `processes` | children, and the calls that copy a process |
//! | `threads` | threads that ranks start |
//! | `locks` | locks of pthread that a rank has taken |
//! | `counted` | references to their PE's tokio runtime, its thread, and `Arc`s of `main` that ranks hold |
//! | `spans` | spans of `tracing` |
//! | `system_calls` | `syscall`: the same, by number |
//! | `foreign` | threads, and code, beside the ranks |

pub mod carried;
mod claims;
pub mod counted;
pub(crate) mod descriptors;
pub mod foreign;
pub(crate) mod handles;
pub(crate) mod locks;
pub(crate) mod mappings;
pub mod processes;
pub mod spans;
pub mod system_calls;
pub mod threads;

pub use handles::loads;

use crate::arena::SlotHeader;
use crate::heap_word::running;
use crate::held::Kind;
use crate::posix::timers;
use crate::stack::forget_stack;
use crate::{forked, register};

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
    // SAFETY: S1, S2; the rank is not resumed any more, says the caller.
    let slot = unsafe {
        forget_stack(slot);
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
}
