//! The live parts of a slot: the memory that must move when the rank goes to another node.
//!
//! They are the stack from where the rank suspended up to its top, the header after it, the heap without its large free
//! chunks, and the touched parts of its image. A walk from chunk to chunk of the heap finds what can be left out; it is
//! not made if the heap is nearly all in use.

use crate::arena::{Arena, SlotHeader};
use crate::heap::chunk::{self, WORTHWHILE};
use crate::image;
pub use crate::pages::LINE;
use crate::pages::{self, PAGE};
use crate::stack::live_stack;

/// Bytes below the address at which a rank has suspended: for what the switch saves.
const BELOW: usize = 1024;

/// The live ranges (start, length) of a slot, as multiples of [`LINE`].
///
/// # Safety
/// The slot is prepared, its rank is suspended or has not begun, and nothing uses it meanwhile.
pub unsafe fn ranges(slot: *mut SlotHeader) -> Vec<(usize, usize)> {
    let Some(arena) = Arena::current() else { return Vec::new() };
    let mut live = Ranges(Vec::new());
    // SAFETY: S2, as nothing uses the slot meanwhile; its heap's ranges are dlmalloc's (H1).
    unsafe {
        let id = (*slot).id();
        let stack = live_stack(slot);
        // Before it begins, the coroutine has what it begins with right below the top.
        let end = if stack.is_empty() { arena.layout.top(id) } else { stack.start };
        let low = end - BELOW;
        let heap = &*(*slot).heap.get();
        let (near, _) = arena.layout.near_heap(id, size_of::<SlotHeader>());
        live.add(low.max(arena.layout.stack_limit(id)), near);
        for used in heap.used() {
            if heap.is_dense() {
                live.add(used.start, used.end);
            } else {
                chunk::needed(used, |start, end| live.add(start, end));
            }
        }
        image::touched(&*slot).into_iter().for_each(|part| live.add(part.start, part.end));
    }
    live.0
}

/// Bytes that a rank uses: blocks of its heap, and the live part of its stack.
///
/// # Safety
/// The calling PE owns the slot.
pub unsafe fn used(slot: *mut SlotHeader) -> usize {
    // SAFETY: S2.
    unsafe { (*(*slot).heap.get()).bytes + live_stack(slot).len() }
}

struct Ranges(Vec<(usize, usize)>);

impl Ranges {
    /// Adds a range that begins after or near the end of the previous one.
    fn add(&mut self, start: usize, end: usize) {
        let start = start & !(LINE - 1);
        let end = end.next_multiple_of(LINE);
        match self.0.last_mut() {
            Some((first, len)) if (*first..*first + *len + WORTHWHILE).contains(&start) => {
                *len = (*len).max(end - *first);
            }
            _ => self.0.push((start, end - start)),
        }
    }
}

/// Free chunks shorter than this keep their pages.
const WORTH_GIVING: usize = 64 << 10;

/// Returns pages inside free chunks of a heap to the system. Returns the number of bytes.
///
/// # Safety
/// The calling PE owns the slot, and nothing else uses it meanwhile.
pub unsafe fn give_back(slot: *mut SlotHeader) -> usize {
    let mut given = 0;
    // SAFETY: S2.
    let used = unsafe { (*(*slot).heap.get()).used() };
    for range in used {
        let report = |start: usize, end: usize| {
            let (start, end) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
            if end < start + WORTH_GIVING {
                return;
            }
            // SAFETY: inside a free chunk, without the allocator's own data: `chunk::unused`.
            if unsafe { pages::give_back(start, end - start) } {
                given += end - start;
            }
        };
        // SAFETY: H1, and S2.
        unsafe { chunk::unused(range, report) };
    }
    given
}
