//! External resources: what ranks hold outside their slots, which cannot move with them. Open
//! descriptors, threads that they started, memory that they mapped, children, locks.
//!
//! The libc calls that make and end these are defined in front of libc's (the table is in
//! [`calls`](super::calls)). What a rank makes is counted in its slot; while a count is not zero the
//! rank is pinned to its PE. What is made outside of any rank is nobody's.
//!
//! Invariants:
//! - Each thing has one entry (in the table of descriptors, in the [`register`], or in the slot's
//!   own list of locks) that names the slot of the rank that made it, whoever ends it. A count is
//!   lowered only together with the removal of an entry, so it is never lowered twice.
//! - When a rank's stack is given up its entries are forgotten ([`External::end`]): what it left
//!   open is the process's, and the next rank in that slot begins with nothing.
//! - Entries and counts are changed by atomic operations only. Except for the making of a table
//!   nothing here allocates or waits, so signal handlers may call what is defined in front of libc.
//! - A process that was forked from a PE has a copy of the tables, but shares the slots: it keeps
//!   no accounts ([`stop`]).
//!
//! What makes the system calls itself, in assembly, is not seen (the crate `rustix` does, unless its
//! feature `use-libc` is chosen).
//!
//! | file | subject |
//! |---|---|
//! | `register` | the entries of everything but descriptors and most locks |
//! | `descriptors` | files, sockets, pipes and all other numbers; streams of C |
//! | `mappings` | memory that a rank has mapped: ranges, which can be cut |
//! | `processes` | children, and the calls that copy a process |
//! | `threads` | threads that ranks start |
//! | `locks` | locks of pthread that a rank has taken |
//! | `counted` | what ranks hold of their PE's tokio runtime, its thread, and `Arc`s of `main` |
//! | `spans` | spans of `tracing` |
//! | `system_calls` | `syscall`: the same, by number |

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
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::hooks::{self, heap_in_use};
use crate::interpose::process_wide;
use crate::{Arena, SlotHeader, SlotId};

/// Kinds of things that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Descriptor,
    Thread,
    Unjoined,
    Mapping,
    Child,
    Stream,
    Lock,
    Library,
    Timer,
    Semaphore,
    Conversion,
    Locale,
    Catalogue,
    Directories,
    Addresses,
    List,
    Io,
}

impl Kind {
    const ALL: [Kind; 17] = [
        Kind::Descriptor,
        Kind::Thread,
        Kind::Unjoined,
        Kind::Mapping,
        Kind::Child,
        Kind::Stream,
        Kind::Lock,
        Kind::Library,
        Kind::Timer,
        Kind::Semaphore,
        Kind::Conversion,
        Kind::Locale,
        Kind::Catalogue,
        Kind::Directories,
        Kind::Addresses,
        Kind::List,
        Kind::Io,
    ];

    /// Why a rank that holds one cannot move.
    const fn reason(self) -> &'static str {
        match self {
            Kind::Descriptor => "it has a file, socket or other descriptor open",
            Kind::Thread => "a thread that it started is running",
            Kind::Unjoined => "it has not joined a thread that it started",
            Kind::Mapping => "it has mapped memory of its own (mmap)",
            Kind::Child => "it has started a program and not waited for its end",
            Kind::Stream => "it has a stream of C open (FILE)",
            Kind::Lock => "it holds a lock (pthread)",
            Kind::Library => "it has loaded a library (dlopen)",
            Kind::Timer => "it has a timer of the system (timer_create)",
            Kind::Semaphore => "it has a named semaphore open (sem_open)",
            Kind::Conversion => "it has a conversion of characters open (iconv_open)",
            Kind::Locale => "it has a locale of its own (newlocale)",
            Kind::Catalogue => "it has a catalogue of messages open (catopen)",
            Kind::Directories => "it walks through directories (fts_open)",
            Kind::Addresses => "it holds what getaddrinfo returned",
            Kind::List => "it reads the list of users or groups (getpwent, getgrent)",
            Kind::Io => "it has a context of asynchronous input and output (io_setup)",
        }
    }
}

/// What a rank holds outside its slot. Lies in the slot's header; zero is nothing.
#[derive(Debug, Default)]
pub struct External {
    counts: [AtomicU32; Kind::ALL.len()],
    locks: locks::Held,
}

impl External {
    /// Why the rank cannot move, if so. `slot` is where this lies, and this process is the rank's.
    pub fn pin(&self, slot: SlotId) -> Option<&'static str> {
        if self.has(Kind::Child) {
            processes::forget_ended(slot.0);
        }
        if self.locks.any() {
            return Some(Kind::Lock.reason());
        }
        if descriptors::any_of_tokio() {
            return Some("tokio has a file open on its PE, which may be this rank's");
        }
        Kind::ALL.into_iter().find(|kind| self.has(*kind)).map(Kind::reason)
    }

    /// Whether threads run that the rank has started.
    pub fn has_threads(&self) -> bool {
        self.has(Kind::Thread)
    }

    /// Whether some of its threads are neither joined nor detached.
    pub fn has_threads_to_join(&self) -> bool {
        self.has(Kind::Unjoined)
    }

    fn has(&self, kind: Kind) -> bool {
        self.counts[kind as usize].load(Ordering::Acquire) > 0
    }

    fn more(&self, kind: Kind) {
        self.counts[kind as usize].fetch_add(1, Ordering::AcqRel);
    }

    fn less(&self, kind: Kind) {
        let one_less = |n: u32| n.checked_sub(1);
        let count = &self.counts[kind as usize];
        let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
    }

    /// The rank in this slot is over: what it still holds is the process's from now on.
    pub fn end(&self, slot: SlotId) {
        self.locks.forget_all();
        let has_any = Kind::ALL.into_iter().any(|kind| self.has(kind));
        if !has_any {
            return;
        }
        descriptors::forget_of(slot.0);
        register::forget_of(slot.0);
        self.counts.iter().for_each(|count| count.store(0, Ordering::Release));
    }
}

/// Whether this process was forked from one with ranks.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// This process is to run ranks: accounts are kept.
pub fn begin() {
    STOPPED.store(false, Ordering::Relaxed);
    locks::begin();
}

/// This process is a copy of one with ranks.
fn stop() {
    STOPPED.store(true, Ordering::Relaxed);
    hooks::leave_to_parent();
}

/// Whether this process is such a copy.
pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

fn external_of(slot: u32) -> Option<&'static External> {
    let header = Arena::current()?.header(SlotId(slot));
    // SAFETY: headers of the arena stay mapped, and are valid even when zeroed.
    Some(unsafe { &(*header).external })
}

/// The slot of the rank that runs here.
#[inline(always)]
fn running() -> Option<&'static SlotHeader> {
    let slot = heap_in_use();
    // SAFETY: the heap in use is the running rank's slot, whose header stays mapped.
    (!slot.is_null()).then(|| unsafe { &*slot })
}

/// The slot of the rank whose is what is made here: it runs here, or has started this thread.
fn owner() -> Option<u32> {
    running().map(|slot| slot.id().0).or_else(threads::starter)
}

/// Whether a rank runs here.
pub(super) fn is_rank() -> bool {
    running().is_some()
}

/// The running rank holds something, if it did not.
pub(super) fn holds(kind: Kind, key: usize) {
    if let Some(slot) = running()
        && !register::holds(kind, key)
    {
        register::add(kind, key, 0, slot.id().0);
    }
}

/// Something that somebody holds has ended.
pub(super) fn ends(kind: Kind, key: usize) {
    register::take(kind, key);
}

/// The call returns a handle, null, or -1. A rank holds it until it is released. What the call keeps
/// for the process does not lie in the rank's heap.
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

/// The same for a call that uses up another handle, or null, when it succeeds.
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

/// The call returns 0 when it has stored a handle.
///
/// # Safety
/// It does so.
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

/// The call ends what a handle stands for.
pub(crate) fn releases<R>(kind: Kind, handle: *mut c_void, call: impl FnOnce() -> R) -> R {
    register::take(kind, handle as usize);
    process_wide(call)
}

/// The call loads a library; without a name it is the program, which all PEs have.
pub fn loads(file: *const c_char, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if file.is_null() { process_wide(call) } else { acquires(Kind::Library, call) }
}

#[cfg(test)]
mod tests;
