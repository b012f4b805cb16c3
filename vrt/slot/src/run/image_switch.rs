//! Switching to ranks that have images, and from them.
//!
//! A rank with an image runs with its own thread pointer, which points into its thread block: the program's
//! thread-locals are there where its code expects them, next to copies of the PE's, so that the runtime's code works in
//! the middle of a rank as it does elsewhere.
//!
//! ```text
//! PE's loop, its thread pointer --- resume ---> the rank, its own ---- suspend ---> the loop, its own
//!                                      |                           |
//!                                      |                           `-- or at once the next rank's
//!                                      | the first time on this PE: the copies are made again
//! ```
//!
//! Setting the thread pointer takes as long as all the rest of a switch, so the loop determines the next rank with the
//! thread pointer of the one that has just stopped; for everything else it uses its own.
//!
//! Invariants:
//! - A thread-local of the runtime cannot be written in ranks and read in the loop, or the other way round: such data
//!   belongs to the PE's state. The copies of `heap_word` say that the rank runs, as they are made while it does.
//! - I1. Functions that set the thread pointer, or run between two that do, are not inlined into others, and use no
//!   thread-local by name ([`thread_pointer`]).
//! - I2. The thread pointer of a slot is 0, or that of its image, which [`begin`] has filled.

use std::sync::atomic::Ordering;

use vrt_load::thread_pointer;

use crate::arena::SlotHeader;
use crate::floating_point::FloatingPoint;
use crate::heap_word::{self, LoopThread};
use crate::image::{self, base, plan};
use crate::posix::{folders, signals};

/// The number by which locks identify the first rank as their owner; those of the other ranks follow. They are higher
/// than the numbers that the system gives to threads.
const FIRST_NUMBER: i32 = 0x2000_0000;

/// Makes the image of the running rank and lets the rank run with its thread pointer from now on. Returns the image's
/// address.
///
/// # Safety
/// The caller is a rank of a job whose program is installed, and has no image yet; it keeps no reference
/// to a thread-local variable, and uses none itself afterwards (see [`thread_pointer`]).
#[inline(never)]
pub unsafe fn begin() -> Option<usize> {
    let (plan, slot) = (plan()?, heap_word::running()?);
    let base = base(slot.id())?;
    // SAFETY: the image is the running rank's, which has not used it yet, says the caller; I1.
    unsafe {
        let is_copied = image::is_copied();
        plan.populate(base, is_copied);
        if is_copied {
            plan.copy_code(base);
        }
        plan.fill(base);
        plan.set_thread_number(base, FIRST_NUMBER + slot.rank.get() as i32);
        slot.thread_pointer.set(plan.thread_pointer(base));
        slot.thread_locals_of.set(heap_word::pe_of_thread());
        thread_pointer::set(plan.thread_pointer(base));
    }
    folders::enter(slot);
    FloatingPoint::keep(&slot.floating_point);
    slot.floating_point.get().change(&FloatingPoint::USUAL);
    Some(base)
}

/// The running rank has no image any more, and uses the thread pointer of its PE's loop.
///
/// # Safety
/// As for [`begin`], which came before; the image is not used any more.
#[inline(never)]
pub(crate) unsafe fn end() {
    let (slot, thread) = (heap_word::heap_in_use(), LoopThread::of_rank());
    // SAFETY: S3; the loop's own thread pointer, and I1.
    unsafe {
        thread.use_heap(thread.pointer, slot);
        (*slot).thread_pointer.set(0);
        thread_pointer::set(thread.pointer);
    }
}

/// The rank of a slot with an image is about to run on this thread.
///
/// # Safety
/// The calling PE owns the slot, whose rank has an image and is about to be resumed; `thread` is the calling thread.
#[inline(always)]
pub(crate) unsafe fn enter(slot: *mut SlotHeader, thread: LoopThread) {
    // SAFETY: S2, I1, I2; the rank is about to be resumed, says the caller.
    unsafe {
        thread.use_heap(thread.pointer, slot);
        if (*slot).thread_locals_of.get() != thread.pe {
            refresh(slot, thread);
        }
        thread_pointer::set((*slot).thread_pointer.get());
        folders::enter(&*slot);
        (*slot).floating_point.get().enter();
        if (*slot).has_signal.load(Ordering::Relaxed) {
            signals::run_before_resuming(&*slot);
        }
    }
}

/// The rank of a slot with an image has stopped running on this thread, which keeps its thread pointer and its
/// floating-point environment until [`leave`] or [`change`]. Returns that thread pointer.
///
/// # Safety
/// As for [`enter`], which came before, or [`begin`].
#[inline(always)]
pub(crate) unsafe fn stop(slot: *mut SlotHeader) -> usize {
    // SAFETY: S2.
    unsafe {
        FloatingPoint::keep(&(*slot).floating_point);
        (*slot).thread_pointer.get()
    }
}

/// Restores this thread's own thread pointer, `own`, after a rank has [`stop`]ped on it.
///
/// # Safety
/// As for [`stop`], which came before.
#[inline(always)]
pub(crate) unsafe fn leave(slot: *mut SlotHeader, own: usize) {
    // SAFETY: S2, I1; the thread pointer is this thread's own, says the caller.
    unsafe {
        (*slot).floating_point.get().leave();
        thread_pointer::set(own);
    }
}

/// Equivalent to [`leave`] for one rank and [`enter`] for another, which has an image, too.
///
/// # Safety
/// As for those.
#[inline(always)]
pub(crate) unsafe fn change(from: *mut SlotHeader, slot: *mut SlotHeader, thread: LoopThread) {
    // SAFETY: as in `leave` for the one, and as in `enter` for the other.
    unsafe {
        if (*slot).thread_locals_of.get() != thread.pe {
            refresh(slot, thread);
        }
        let pointer = (*slot).thread_pointer.get();
        thread_pointer::set(pointer);
        // The copies may have been made now, of what is the thread's own.
        thread.use_heap(pointer, slot);
        // For who looks at the thread from beside it.
        thread.use_heap(thread.pointer, slot);
        folders::enter(&*slot);
        (*from).floating_point.get().change(&(*slot).floating_point.get());
        if (*slot).has_signal.load(Ordering::Relaxed) {
            signals::run_before_resuming(&*slot);
        }
    }
}

/// Updates the copies of the PE's thread-locals of a rank that has arrived here.
///
/// # Safety
/// As for [`enter`].
#[cold]
#[inline(never)]
unsafe fn refresh(slot: *mut SlotHeader, thread: LoopThread) {
    // SAFETY: S2, I2: the block of a rank that does not run.
    unsafe {
        if let (Some(plan), Some(base)) = (plan(), base((*slot).id())) {
            plan.refresh_thread_block(base, thread.pointer);
            folders::arrives(&*slot);
            (*slot).thread_locals_of.set(thread.pe);
        }
    }
}
