//! The live parts of a slot: the memory that must move when the rank goes to another node.
//!
//! They are the stack from where the rank suspended up to its top, the header after it, the heap without its large free
//! chunks, and the touched parts of its image. The allocator keeps a header in front of each chunk, and in free ones
//! links after it, so a walk from chunk to chunk finds what can be left out. If the heap is nearly all in use, no walk
//! is made.

pub use crate::layout::LINE;
use crate::layout::PAGE;
use crate::rank::Body;
use crate::{Arena, SlotHeader, image};

/// Bytes below the address at which a rank has suspended: for what the switch saves.
const BELOW: usize = 1024;
/// What the allocator keeps in a free chunk: size, links, and the links of a tree.
const FREE_HEADER: usize = 64;
/// Free chunks shorter than this are moved, too: an additional range would cost more.
const WORTHWHILE: usize = 1024;

/// The live ranges (start, length) of a slot, as multiples of [`LINE`].
///
/// # Safety
/// The slot is prepared, its rank is suspended or has not begun, and nothing uses it meanwhile.
pub unsafe fn ranges(slot: *mut SlotHeader) -> Vec<(usize, usize)> {
    let Some(arena) = Arena::current() else { return Vec::new() };
    let mut live = Ranges(Vec::new());
    // SAFETY: as the caller promises.
    unsafe {
        let id = (*slot).id();
        let stack = Body::live_stack(slot);
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
                walk(used, |start, end| live.add(start, end));
            }
        }
        image::touched(slot).into_iter().for_each(|part| live.add(part.start, part.end));
    }
    live.0
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
/// The slot belongs to the caller, and nothing else uses it meanwhile.
pub unsafe fn give_back(slot: *mut SlotHeader) -> usize {
    let mut given = 0;
    // SAFETY: as the caller promises.
    let used = unsafe { (*(*slot).heap.get()).used() };
    for range in used {
        let report = |part| {
            let Part::Chunk { at, size, in_use: false } = part else { return };
            let start = (at + FREE_HEADER).next_multiple_of(PAGE);
            let end = (at + size) & !(PAGE - 1);
            if end < start + WORTH_GIVING {
                return;
            }
            // SAFETY: whole pages of the arena inside a free chunk, whose head and foot stay.
            unsafe {
                if libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_REMOVE) == 0 {
                    given += end - start;
                }
            }
        };
        // SAFETY: as the caller promises.
        unsafe { parts(range, report) };
    }
    given
}

/// The bits of a chunk's size word: its predecessor is in use, it is in use itself.
const FLAGS: usize = 7;
const IN_USE: usize = 2;
/// The size word of the marks that end a segment of the heap.
const MARK: usize = 11;

/// Visits the chunks of a range that the allocator uses; reports its live parts.
///
/// # Safety
/// As for [`parts`].
unsafe fn walk(used: std::ops::Range<usize>, mut live: impl FnMut(usize, usize)) {
    let end = used.end;
    let report = |part| match part {
        Part::Mark(at) => live(at, at + 16),
        Part::Unknown { at, end } => live(at, end),
        Part::Record { at, size } => live(at, at + size + 8),
        Part::Chunk { at, size, in_use } if in_use || size < WORTHWHILE => {
            // An allocated chunk extends over its successor's foot.
            live(at, (at + size + 8).min(end));
        }
        Part::Chunk { at, size, .. } => {
            live(at, at + FREE_HEADER);
            // Its size is repeated behind its end.
            live(at + size, (at + size + 16).min(end));
        }
    };
    // SAFETY: as the caller promises.
    unsafe { parts(used, report) };
}

/// A part of a heap.
pub(super) enum Part {
    /// `size` bytes that begin with the predecessor's foot and a size word; the memory of a block
    /// in use is `at + 16..at + size + 8`.
    Chunk { at: usize, size: usize, in_use: bool },
    /// The allocator's record of a segment, in a chunk in front of the marks that end it.
    Record { at: usize, size: usize },
    /// A mark between segments: 16 bytes, of which the last 8 belong to the next mark, too.
    Mark(usize),
    /// Anything else, up to the end.
    Unknown { at: usize, end: usize },
}

/// Visits the parts of a range that the allocator uses, in order.
///
/// A chunk begins at a multiple of 16 with its predecessor's foot, followed by its size word. Marks
/// are separate words. Anything that looks like neither is unknown up to the end.
///
/// # Safety
/// The range is used by one of dlmalloc's segments, or by several adjoining ones.
pub(super) unsafe fn parts(used: std::ops::Range<usize>, mut report: impl FnMut(Part)) {
    let mut at = used.start;
    // SAFETY: the callers below see to it that this is inside the range.
    let head_at = |at: usize| unsafe { ((at + 8) as *const usize).read() };
    while at + 16 <= used.end {
        let head = head_at(at);
        let size = head & !FLAGS;
        if head == MARK || !at.is_multiple_of(16) {
            report(Part::Mark(at));
            at += 8;
            if at + 8 == used.end {
                at = used.end;
            }
            continue;
        }
        if size < 16 || size > used.end - at {
            break;
        }
        let next = at + size;
        let ends_segment = next + 16 <= used.end && head_at(next) == MARK;
        match head & IN_USE != 0 {
            true if ends_segment => report(Part::Record { at, size }),
            in_use => report(Part::Chunk { at, size, in_use }),
        }
        at = next;
    }
    if at < used.end {
        report(Part::Unknown { at, end: used.end });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::SlotHeap;
    use proptest::prelude::*;

    /// Overwrites what the walk leaves out. Returns the number of bytes kept.
    fn spoil_the_rest(heap: &SlotHeap) -> usize {
        let mut kept = 0;
        for used in heap.used() {
            let mut live = vec![];
            // SAFETY: the allocator's own range, of which only what it does not need is written.
            unsafe {
                walk(used.clone(), |start, end| live.push((start, end)));
                let mut at = used.start;
                for (start, end) in live.into_iter().chain([(used.end, used.end)]) {
                    if start > at {
                        (at as *mut u8).write_bytes(0xa5, start - at);
                    }
                    kept += end.max(at) - start.max(at);
                    at = end.max(at);
                }
            }
        }
        kept
    }

    proptest! {
        #[test]
        fn a_heap_lives_on_without_what_is_left_out(
            steps in prop::collection::vec((0usize..4, 0usize..30_000, 0u32..8), 1..100)
        ) {
            let (mut near, mut far) = (vec![0u8; 128 << 10], vec![0u8; 32 << 20]);
            let range = |memory: &mut Vec<u8>| {
                let start = (memory.as_mut_ptr() as usize).next_multiple_of(4096);
                (start, memory.as_mut_ptr() as usize + memory.len())
            };
            let mut heap = SlotHeap::new(range(&mut near), range(&mut far));
            let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
            for (mark, (what, size, align)) in steps.into_iter().enumerate() {
                let mark = mark as u8;
                // SAFETY: only live blocks of this heap are freed, and written in their lengths.
                unsafe {
                    match what {
                        0 | 1 => {
                            let block = heap.allocate(16 << align, size);
                            prop_assert!(!block.is_null());
                            block.write_bytes(mark, size);
                            blocks.push((block, size, mark));
                        }
                        2 if !blocks.is_empty() => {
                            heap.free(blocks.swap_remove(size % blocks.len()).0);
                        }
                        _ => {
                            spoil_the_rest(&heap);
                        }
                    }
                }
            }
            let mut found = vec![];
            for used in heap.used() {
                // SAFETY: the allocator's own range.
                unsafe {
                    parts(used, |part| match part {
                        Part::Chunk { at, in_use: true, .. } => found.push(at + 16),
                        Part::Unknown { at, .. } => found.push(at),
                        _ => {}
                    });
                }
            }
            let mut allocated: Vec<_> = blocks.iter().map(|(at, ..)| *at as usize).collect();
            allocated.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, allocated);
            for (block, size, mark) in blocks {
                // SAFETY: a live block of this length.
                let bytes = unsafe { std::slice::from_raw_parts(block, size) };
                prop_assert!(bytes.iter().all(|b| *b == mark));
            }
        }
    }

    #[test]
    fn a_large_free_block_stays_behind() {
        let (mut near, mut far) = (vec![0u8; 64 << 10], vec![0u8; 32 << 20]);
        let range = |memory: &mut Vec<u8>| {
            let start = (memory.as_mut_ptr() as usize).next_multiple_of(4096);
            (start, memory.as_mut_ptr() as usize + memory.len())
        };
        let mut heap = SlotHeap::new(range(&mut near), range(&mut far));
        // SAFETY: only live blocks are freed.
        unsafe {
            let large = heap.allocate(16, 16 << 20);
            let small = heap.allocate(16, 1 << 20);
            heap.free(large);
            assert!(!heap.is_dense());
            let kept = spoil_the_rest(&heap);
            assert!(kept > 1 << 20 && kept < (1 << 20) + (8 << 10), "{kept}");
            heap.free(small);
        }
    }
}
