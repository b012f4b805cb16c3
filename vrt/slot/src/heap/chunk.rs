//! The format in which dlmalloc keeps its chunks. It is known here and nowhere else.
//!
//! ```text
//! at     at + 8         at + 16                          at + size   at + size + 8
//! | foot | size | flags | the block; links if it is free | foot      | size | flags | ...
//! ```
//!
//! A chunk begins at a multiple of 16 with its predecessor's foot (the size once more, if that is free) and its own size
//! word, whose three lowest bits are flags. An allocated chunk extends over its successor's foot. Segments end with
//! marks, which are separate words.

use std::ops::Range;

const WORD: usize = size_of::<usize>();
/// From where a chunk begins to where its block does.
const BLOCK: usize = 2 * WORD;
/// The bits of a size word: the predecessor is in use, the chunk itself is, and another one.
const FLAGS: usize = 7;
const IN_USE: usize = 2;
/// The size word of the marks that end a segment of the heap.
const MARK: usize = 11;
/// What the allocator keeps in a free chunk: size, links, and the links of a tree.
const FREE_HEADER: usize = 64;
/// What it keeps for itself behind the last chunk of a segment, at most.
pub(super) const FOOT: usize = 512;
/// Free chunks shorter than this are kept, too: an additional range would cost more.
pub(crate) const WORTHWHILE: usize = 1024;

/// The size word in front of a block.
///
/// # Safety
/// The block is in a slot heap.
#[inline(always)]
unsafe fn head_of(block: *mut u8) -> usize {
    // SAFETY: H2; it is in a slot heap, says the caller.
    unsafe { block.cast::<usize>().sub(1).read() }
}

/// Usable bytes at `block`.
///
/// # Safety
/// `block` is live in a slot heap.
#[inline]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    // SAFETY: a live block of a slot heap, says the caller.
    (unsafe { head_of(block) } & !FLAGS) - WORD
}

/// Whether the word in front of a block marks it as in use: dlmalloc clears that flag when a block is freed. Most
/// corrupted or invalid blocks are detected this way.
///
/// # Safety
/// The block is in a slot heap.
#[inline]
pub(super) unsafe fn is_in_use(block: *mut u8) -> bool {
    // SAFETY: in a slot heap, says the caller, and aligned: a word of the slot's, whatever it is.
    (block as usize).is_multiple_of(BLOCK) && unsafe { head_of(block) } & IN_USE != 0
}

/// The bytes of the chunk behind a block whose usable bytes end here, if it is free.
///
/// # Safety
/// The block is live in a slot heap, in which something follows it.
pub(super) unsafe fn free_behind(end: usize) -> usize {
    // SAFETY: H2: the size word of what follows is behind the last usable byte.
    let head = unsafe { (end as *const usize).read() };
    if head & IN_USE == 0 { head & !FLAGS } else { 0 }
}

/// Visits the blocks in use of a range that the allocator uses, in order: start and end of each.
///
/// # Safety
/// As for [`parts`].
pub(crate) unsafe fn blocks(used: Range<usize>, mut visit: impl FnMut(usize, usize)) {
    let report = |part| match part {
        Part::Chunk { at, size, in_use: true } => visit(at + BLOCK, at + size + WORD),
        Part::Chunk { .. } | Part::Record { .. } | Part::Mark(_) => {}
        Part::Unknown { at, end } => visit(at, end),
    };
    // SAFETY: the caller's promise is that of `parts`.
    unsafe { parts(used, report) };
}

/// Visits what the free chunks of a range have between the allocator's own data: memory whose contents do not matter.
///
/// # Safety
/// As for [`parts`].
pub(crate) unsafe fn unused(used: Range<usize>, mut visit: impl FnMut(usize, usize)) {
    let report = |part| match part {
        Part::Chunk { at, size, in_use: false } if size > FREE_HEADER => {
            visit(at + FREE_HEADER, at + size);
        }
        _ => {}
    };
    // SAFETY: the caller's promise is that of `parts`.
    unsafe { parts(used, report) };
}

/// Visits what must be kept of a range that the allocator uses: blocks, and its own data.
///
/// # Safety
/// As for [`parts`].
pub(crate) unsafe fn needed(used: Range<usize>, mut visit: impl FnMut(usize, usize)) {
    let end = used.end;
    let report = |part| match part {
        Part::Mark(at) => visit(at, at + BLOCK),
        Part::Unknown { at, end } => visit(at, end),
        Part::Record { at, size } => visit(at, at + size + WORD),
        Part::Chunk { at, size, in_use } if in_use || size < WORTHWHILE => {
            visit(at, (at + size + WORD).min(end));
        }
        Part::Chunk { at, size, .. } => {
            visit(at, at + FREE_HEADER);
            // Its size is repeated behind its end.
            visit(at + size, (at + size + BLOCK).min(end));
        }
    };
    // SAFETY: the caller's promise is that of `parts`.
    unsafe { parts(used, report) };
}

/// A part of a heap.
enum Part {
    /// `size` bytes that begin with the predecessor's foot and a size word.
    Chunk { at: usize, size: usize, in_use: bool },
    /// The allocator's record of a segment, in a chunk in front of the marks that end it.
    Record { at: usize, size: usize },
    /// A mark between segments: 16 bytes, of which the last 8 belong to the next mark, too.
    Mark(usize),
    /// Anything else, up to the end.
    Unknown { at: usize, end: usize },
}

/// Visits the parts of a range that the allocator uses, in order. Anything that looks like neither a chunk nor a mark is
/// unknown up to the end.
///
/// # Safety
/// The range is used by one of dlmalloc's segments, or by several adjoining ones.
unsafe fn parts(used: Range<usize>, mut report: impl FnMut(Part)) {
    let mut at = used.start;
    // SAFETY: below, `at + BLOCK` is inside the range, which is readable, says the caller.
    let head_at = |at: usize| unsafe { ((at + WORD) as *const usize).read() };
    while at + BLOCK <= used.end {
        let head = head_at(at);
        let size = head & !FLAGS;
        if head == MARK || !at.is_multiple_of(BLOCK) {
            report(Part::Mark(at));
            at += WORD;
            if at + WORD == used.end {
                at = used.end;
            }
            continue;
        }
        if size < BLOCK || size > used.end - at {
            break;
        }
        let next = at + size;
        let ends_segment = next + BLOCK <= used.end && head_at(next) == MARK;
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
            // SAFETY: H1; only what `needed` leaves out is written.
            unsafe {
                needed(used.clone(), |start, end| live.push((start, end)));
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
                // SAFETY: H1.
                unsafe {
                    super::blocks(used, |start, _| found.push(start));
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
