//! The checking mode for stacks: a suspended rank must not hold pointers into its PE's heap.
//!
//! Memory of the PE does not move with the rank. This mode checks for every word of the live part
//! of a suspended rank's stack whether it points into the process's heap (`brk` area) above its end
//! when the PE was forked: what was there before is the same in every PE. Pointers are multiples of
//! 8; other words are numbers.
//!
//! Frames have holes, in which words of older, dead frames remain. So in this mode the runtime
//! wipes the stack below itself whenever it returns to a rank ([`wipe_below`]): what is found then
//! was put there by the rank, or lies in a live frame.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::arena::{Arena, SlotHeader};
use crate::stack::live_stack;
use crate::sys::heap_end;
use crate::wipe::ON;
pub use crate::wipe::{wipe, wipe_below};

/// Words found so far, and the end of the heap when this PE began.
static FOUND: AtomicU64 = AtomicU64::new(0);
static HEAP_AT_START: AtomicUsize = AtomicUsize::new(0);

/// Records the current end of the process's heap. Called when a PE begins.
pub fn begin(on: bool) {
    ON.store(on, Ordering::Relaxed);
    let start = heap_end();
    HEAP_AT_START.store(start, Ordering::Relaxed);
    if on {
        // Fill the gaps that were left in the heap, so that what is allocated from now on lies
        // above; never freed.
        for size in (16..=2048).step_by(16) {
            while (Vec::<u8>::with_capacity(size).leak().as_ptr() as usize) < start {}
        }
    }
}

/// Checks the stack of a rank that has just suspended; reports the first 20 findings.
///
/// # Safety
/// The slot belongs to the PE, and its rank is suspended.
pub unsafe fn scan_stack(rank: u32, slot: *mut SlotHeader) {
    let Some(arena) = Arena::current() else { return };
    // SAFETY: S2; the rank is suspended, says the caller.
    let (id, live) = unsafe { ((*slot).id(), live_stack(slot)) };
    let (low, top) = (live.start, arena.layout.top(id));
    let heap = HEAP_AT_START.load(Ordering::Relaxed)..heap_end();
    for address in live.step_by(size_of::<usize>()) {
        // SAFETY: a word of the stack, which nobody uses now: `live_stack`.
        let word = unsafe { (address as *const usize).read_volatile() };
        if heap.contains(&word)
            && word.is_multiple_of(8)
            && FOUND.fetch_add(1, Ordering::Relaxed) < 20
        {
            crate::report::say(format_args!(
                "rank {rank}: the word {} bytes above its suspended stack's end ({} below its \
                 top) points into its PE's heap ({word:#x})",
                address - low,
                top - address
            ));
        }
    }
}

/// Number of words found in this process.
pub fn stack_words_found() -> u64 {
    FOUND.load(Ordering::Relaxed)
}
