//! `fork` in a rank that runs an image. The arena is shared memory, in which parent and child would overwrite each
//! other: so the child gets a private copy of the rank's memory, in its place.
//!
//! ```text
//! parent, on the PE's stack:  clone ---------------- waits ----------------> goes on, holds a child
//! child, on its copy of it:     '--> copies stack, heap, data --> says so --> goes on, of no job
//! ```
//!
//! The child is a separate process: it cannot take part in the job's messages, waits like an ordinary process, and ends
//! by itself. Its memory is the rank's; it still shares the memory of other ranks, and does not touch it. It does not
//! change its copy of the process's accounts ([`forked`]). Functions registered with `pthread_atfork` are not called.

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::ops::Range;

use crate::arena::resident::resident;
use crate::arena::{Arena, SlotHeader};
use crate::external::{descriptors, processes};
pub use crate::forked::is_child;
use crate::heap_word::{running, runtime_heap};
use crate::pages::PAGE;
use crate::posix::errno::fail;
use crate::posix::interpose::real;
use crate::posix::signals::kernel;
use crate::run::coroutine::on_pe_stack;
use crate::{children, forked, image, outside, sys};

/// POSIX `fork`.
///
/// # Safety
/// As in C.
unsafe extern "C" fn fork() -> libc::pid_t {
    let Some(slot) = running().filter(|slot| slot.thread_pointer.get() != 0) else {
        // A thread that a rank has started has its stack elsewhere, but would take the rank's memory with it.
        return processes::copies("fork()", || fail(libc::ENOSYS));
    };
    // SAFETY: `fork_slot` does not suspend the rank, and runs on the PE's stack and the runtime's heap.
    let forked = unsafe { on_pe_stack(|| runtime_heap(|| fork_slot(slot))) };
    let child = forked.unwrap_or_else(|| processes::copies("fork()", || fail(libc::ENOSYS)));
    if child > 0 {
        processes::has_child(child);
    }
    child
}

/// Forks the process and gives the child a slot of its own.
///
/// Until the child has that, both write to the same slot, which contains the rank's thread-locals: so both use the
/// runtime's heap all the while, and memory that the child needs is allocated before the fork, since a thread that the
/// child does not have may hold the allocator's lock.
///
/// # Safety
/// It runs on the PE's stack and on the runtime's heap; the slot is the running rank's.
unsafe fn fork_slot(slot: &'static SlotHeader) -> libc::pid_t {
    type Function = unsafe extern "C" fn(libc::c_long, ...) -> libc::c_long;
    let Some(parts) = written(slot) else { return fail(libc::ENOSYS) };
    let Ok((mut from_child, mut to_parent)) = io::pipe() else { return -1 };
    let (flags, none) = (libc::c_long::from(libc::SIGCHLD), libc::c_long::from(0));
    // Not the interposed one, which checks whether a rank may do this.
    let call = real!(of_process c"syscall", Function);
    // SAFETY: S4; with these flags the child goes on with a copy of this thread alone.
    let child = unsafe { call(libc::SYS_clone, flags, none, none, none, none) } as libc::pid_t;
    if child == 0 {
        forked::set_child();
        outside::leave_heap_to_parent();
        // SAFETY: the child was just created, its parent waits below, and this runs on the PE's stack, says the caller.
        if !parts.iter().all(|part| unsafe { part.copy() }) {
            sys::_exit(127);
        }
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT] {
            // SAFETY: `SIG_DFL` calls nothing.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        descriptors::close_those_of_others(slot.id().0);
        kernel::begin_child(slot);
        // What the rank is to the job, its child is not.
        slot.guest.set(std::ptr::null_mut());
        let _ = to_parent.write(&[1]);
        return 0;
    }
    drop(to_parent);
    let is_private = child > 0 && from_child.read_exact(&mut [0]).is_ok();
    if child > 0 && !is_private {
        children::wait_for(child, 0);
        return fail(libc::ENOMEM);
    }
    child
}

/// Shared memory of a slot, in whole pages, and the pages that were ever written.
struct SharedPart {
    all: Range<usize>,
    present: Vec<Range<usize>>,
}

/// All writable memory of the running rank's slot.
fn written(slot: &SlotHeader) -> Option<Vec<SharedPart>> {
    let arena = Arena::current()?;
    // SAFETY: S2: nobody else uses the heap of a rank that runs here.
    let (id, used) = (slot.id(), unsafe { (*slot.heap.get()).used() });
    let (near, far) = arena.layout.used_ranges(id);
    let (near, far) = (near.0..near.0 + near.1, far.0..far.0 + far.1);
    // Of the second range only what comes before this was ever used.
    let end = used.iter().map(|used| used.end).filter(|end| far.contains(end)).max();
    let mut parts =
        vec![SharedPart::new(&near, near.end), SharedPart::new(&far, end.unwrap_or(far.start))];
    parts.extend(image::written(id).iter().map(|range| SharedPart::new(range, range.end)));
    parts.retain(|part| !part.all.is_empty());
    Some(parts)
}

impl SharedPart {
    fn new(range: &Range<usize>, used_to: usize) -> Self {
        let all = range.start & !(PAGE - 1)..range.end.next_multiple_of(PAGE);
        let used = all.start..used_to.next_multiple_of(PAGE).min(all.end);
        let mut present = Vec::new();
        if !used.is_empty() {
            resident(used, &mut present);
        }
        Self { all, present }
    }

    /// Replaces it by a private copy.
    ///
    /// # Safety
    /// The process is a child that was just created, runs on another stack, and its parent waits.
    unsafe fn copy(&self) -> bool {
        let Self { all, present } = self;
        // SAFETY: `new` is as long as the part, all of whose pages with contents are copied before it takes its place;
        // nothing of it is on this stack, says the caller, nor changed meanwhile.
        unsafe {
            let new = libc::mmap(
                std::ptr::null_mut(),
                all.len(),
                libc::PROT_READ | libc::PROT_WRITE | image::protection_of_code(),
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            if new == libc::MAP_FAILED {
                return false;
            }
            for part in present {
                let to = new.cast::<u8>().add(part.start - all.start);
                to.copy_from_nonoverlapping(part.start as *const u8, part.len());
            }
            let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            libc::mremap(new, all.len(), all.len(), how, all.start) != libc::MAP_FAILED
        }
    }
}

/// Ends a child.
pub fn end_child(status: c_int) -> ! {
    sys::_exit(status)
}

/// The replacement for libc's function of this name.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    match name {
        "fork" | "_Fork" | "vfork" | "__fork" | "__vfork" => Some(fork as *const ()),
        _ => None,
    }
}
