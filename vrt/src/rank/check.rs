//! The checking mode for stacks: a suspended rank must not hold pointers into its PE's heap.
//!
//! Memory of the PE does not move with the rank. The mode looks at every word of the live part of
//! a suspended rank's stack and asks whether it points into the process's heap (`brk` area) above
//! where that ended when the PE was forked: what was there before is the same in every PE.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::arena::{Arena, SlotHeader};
use crate::rank::Body;

/// Words found so far, and the end of the heap when this PE began.
static FOUND: AtomicU64 = AtomicU64::new(0);
static HEAP_AT_START: AtomicUsize = AtomicUsize::new(0);

/// Remembers where the process's heap ends now. Called when a PE begins.
pub(crate) fn begin() {
    HEAP_AT_START.store(heap_end(), Ordering::Relaxed);
}

fn heap_end() -> usize {
    // SAFETY: asking for the current break changes nothing.
    unsafe { libc::sbrk(0) as usize }
}

/// Looks at the stack of a rank that has just suspended; says what it finds, the first 20 times.
pub(crate) fn scan_stack(rank: u32, slot: *mut SlotHeader) {
    let Some(arena) = Arena::current() else { return };
    // SAFETY: the slot is this PE's and its rank is suspended.
    let (id, low) = unsafe { ((*slot).id(), Body::suspended_stack_pointer(slot)) };
    let top = arena.layout.top(id);
    let heap = HEAP_AT_START.load(Ordering::Relaxed)..heap_end();
    for address in (low..top).step_by(size_of::<usize>()) {
        // SAFETY: the live part of the stack, from its lowest frame to its top.
        let word = unsafe { (address as *const usize).read_volatile() };
        if heap.contains(&word) && FOUND.fetch_add(1, Ordering::Relaxed) < 20 {
            crate::launch::crash::say(format_args!(
                "rank {rank}: the word at {address:#x} of its suspended stack points into its PE's \
                 heap ({word:#x})"
            ));
        }
    }
}

/// Words found in this process.
pub fn stack_words_found() -> u64 {
    FOUND.load(Ordering::Relaxed)
}
