//! The heap of a slot: dlmalloc over the slot's near and far ranges, with all its state in the
//! slot.
//!
//! Memory is returned to the system when the slot is discarded, not with each free: returning pages
//! costs 0.5 us each, and a program that frees a buffer usually allocates it again.

use dlmalloc::{Allocator, Dlmalloc};

use super::chunk::{FOOT, free_behind, is_in_use, usable_size};
use crate::pages::{HUGE_PAGE, LINE, PAGE};

/// The granularity in which dlmalloc asks for more of the far range.
const FAR_STEP: usize = 64 << 10;

/// Allocated blocks of at least this size begin at a cache line, and blocks of at least the next size at a page, so
/// that message buffers are aligned alike in all slots (blocks that were reallocated may not be). Copies between
/// buffers with different alignments take up to a tenth longer; so do copies to a place slightly further into its page
/// than the source, as the data read next then looks like data just written.
const LONG: usize = 16 << 10;
const VERY_LONG: usize = 128 << 10;

/// The alignment of a block of this many bytes, if `align` is requested.
#[inline(always)]
fn alignment(align: usize, size: usize) -> usize {
    match size {
        0..LONG => align,
        LONG..VERY_LONG => align.max(LINE),
        VERY_LONG.. => align.max(PAGE),
    }
}

/// Hands out the two ranges of a slot from the bottom. Lives in the slot.
#[derive(Debug)]
pub(crate) struct SlotRanges {
    near: std::cell::Cell<(usize, usize)>,
    far: std::cell::Cell<(usize, usize)>,
    near_start: usize,
    far_start: usize,
}

impl SlotRanges {
    /// How much of the far range is handed out for a request: whole large pages if available, unless that makes the
    /// heap much larger. The limit depends on the number of heaps and the amount of memory.
    fn far_step(&self, size: usize) -> usize {
        let (far, far_end) = self.far.get();
        let step = size.next_multiple_of(FAR_STEP);
        let needed = far + step;
        let end = needed.next_multiple_of(HUGE_PAGE);
        let spare = (needed - self.far_start) / if crate::pages::memory_is_ample() { 1 } else { 4 };
        if end - needed <= spare && end <= far_end && crate::pages::has_huge_pages() {
            end - far
        } else {
            step
        }
    }

    /// How much of the near range is handed out for a request: as much again as before. Not everything at once, because
    /// the allocator writes to the end of what it gets, which costs a page; it joins adjacent pieces.
    fn near_step(&self, size: usize) -> usize {
        size.max(self.near.get().0 - self.near_start)
    }

    /// What has been handed out.
    fn used(&self) -> [std::ops::Range<usize>; 2] {
        let near_start = self.near_start.next_multiple_of(16);
        [near_start..self.near.get().0.max(near_start), self.far_start..self.far.get().0]
    }
}

// SAFETY: H1: `alloc` hands out each byte of the ranges once; nothing is ever taken back, so the other functions refuse.
unsafe impl Allocator for SlotRanges {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let (near, near_end) = self.near.get();
        let near_start = near.next_multiple_of(16);
        if near_start + size <= near_end {
            let end = (near_start + self.near_step(size)).next_multiple_of(PAGE).min(near_end);
            self.near.set((end, near_end));
            return (near_start as *mut u8, end - near_start, 0);
        }
        let (far, far_end) = self.far.get();
        let step = self.far_step(size);
        if step < size || step > far_end - far {
            return (std::ptr::null_mut(), 0, 0);
        }
        self.far.set((far + step, far_end));
        want_huge_pages(far, far + step);
        (far as *mut u8, step, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        std::ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

// SAFETY: the cells are reached through the slot's owner only, one thread at a time: S2.
unsafe impl Send for SlotRanges {}

/// Requests large pages for the part of a range that can have them. A range too small for one gets none: a rank with a
/// few bytes in its far range must not cost 2 MiB.
fn want_huge_pages(start: usize, end: usize) {
    let start = start.next_multiple_of(HUGE_PAGE);
    if start < end && crate::pages::has_huge_pages() {
        let (at, len) = (start as *mut libc::c_void, end - start);
        // SAFETY: `MADV_HUGEPAGE` changes how the kernel backs memory, not what is in it.
        unsafe { libc::madvise(at, len, libc::MADV_HUGEPAGE) };
    }
}

/// A slot's heap with its counters.
pub struct SlotHeap {
    dl: Dlmalloc<SlotRanges>,
    /// Live blocks.
    pub blocks: usize,
    /// Live bytes, as rounded by dlmalloc.
    pub bytes: usize,
}

impl SlotHeap {
    /// A heap over two ranges, the first of which is used first. They must be its own (H1).
    pub(crate) fn new(near: (usize, usize), far: (usize, usize)) -> SlotHeap {
        let ranges = SlotRanges {
            near: std::cell::Cell::new(near),
            far: std::cell::Cell::new(far),
            near_start: near.0,
            far_start: far.0,
        };
        let mut dl = Dlmalloc::new_with_allocator(ranges);
        dl.set_granularity(4096);
        dl.set_max_release_check_rate(0);
        SlotHeap { dl, blocks: 0, bytes: 0 }
    }

    /// The parts of the two ranges that the allocator has been given.
    pub fn used(&self) -> [std::ops::Range<usize>; 2] {
        self.dl.allocator().used()
    }

    /// The size of the second range, which is the longer one.
    pub(crate) fn size(&self) -> usize {
        let ranges = self.dl.allocator();
        ranges.far.get().1 - ranges.far_start
    }

    /// Whether most of the memory given to the allocator is in use.
    pub fn is_dense(&self) -> bool {
        let used: usize = self.used().iter().map(ExactSizeIterator::len).sum();
        self.bytes > used / 4 * 3
    }

    /// # Safety
    /// The caller owns the slot. `align` is a power of two.
    #[inline]
    pub(crate) unsafe fn allocate(&mut self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: H1 and S2, as the caller owns the slot; the greatest of powers of two is one.
        unsafe {
            let block = self.dl.c_memalign(alignment(align, size), size);
            if !block.is_null() {
                self.blocks += 1;
                self.bytes += usable_size(block);
            }
            block
        }
    }

    /// # Safety
    /// The caller owns the slot; `block` is live in this heap.
    #[inline]
    pub unsafe fn free(&mut self, block: *mut u8) {
        // SAFETY: S2; the block is live in this heap, says the caller.
        unsafe {
            if !is_in_use(block) {
                refuse("free", block);
            }
            self.blocks -= 1;
            self.bytes -= usable_size(block);
            self.dl.c_free(block);
        }
    }

    /// # Safety
    /// The caller owns the slot; `block` is live in this heap.
    pub(crate) unsafe fn reallocate(&mut self, block: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: S2; the block is live in this heap, says the caller.
        unsafe {
            if !is_in_use(block) {
                refuse("realloc", block);
            }
            let before = usable_size(block);
            if size >= VERY_LONG && size > before {
                self.make_room_behind(block, before, size);
            }
            let moved = self.dl.c_realloc(block, size);
            if !moved.is_null() {
                self.bytes = self.bytes - before + usable_size(moved);
            }
            moved
        }
    }
}

impl SlotHeap {
    /// Makes the last block of the far range grow in place: dlmalloc grows it into the free memory behind it, but does
    /// not request more of that first. So a vector that is filled gradually is not copied each time it doubles.
    ///
    /// # Safety
    /// The caller owns the slot; `block` is live in this heap and has `before` usable bytes.
    unsafe fn make_room_behind(&mut self, block: *mut u8, before: usize, size: usize) {
        let far = self.used()[1].clone();
        let behind = block as usize + before;
        let rest = self.dl.allocator().far.get().1 - far.end;
        // Not what would fill the range: that is reported, and what no machine has may be asked for, too.
        let fits = size.checked_add(FOOT + 2 * HUGE_PAGE).is_some_and(|size| size < rest);
        if !far.contains(&(block as usize)) || behind >= far.end || !fits {
            return;
        }
        // SAFETY: the block is live, and `behind` is where its usable bytes end, before the end of the range.
        let free = unsafe { free_behind(behind) };
        let is_last = far.end.wrapping_sub(behind.wrapping_add(free)) <= FOOT;
        if !is_last || before + free > size + FOOT {
            return;
        }
        // More than is free, so it is taken from what the range has not handed out, and joins that.
        let more = (size - before).max(free) + FOOT;
        // SAFETY: H1 and S2; what is allocated is given back at once.
        unsafe {
            let spare = self.dl.malloc(more, 16);
            if !spare.is_null() {
                self.dl.free(spare, more, 16);
            }
        }
    }
}

/// Ends the process because of an invalid block; the crash handler reports which rank did it.
#[cold]
fn refuse(call: &str, block: *mut u8) -> ! {
    crate::report::say(format_args!(
        "{call}({block:?}): this is no live block of memory; was it freed before?"
    ));
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A pair of ranges in ordinary memory, like a slot's.
    fn heap(near: &mut Vec<u8>, far: &mut Vec<u8>) -> SlotHeap {
        let range = |v: &mut Vec<u8>| {
            let start = (v.as_mut_ptr() as usize).next_multiple_of(4096);
            (start, v.as_mut_ptr() as usize + v.len())
        };
        SlotHeap::new(range(near), range(far))
    }

    proptest! {
        #[test]
        fn blocks_do_not_overlap_and_keep_their_contents(
            steps in prop::collection::vec((0usize..3, 0usize..40_000, 0u32..8), 1..300),
            scale in prop_oneof![Just(1), Just(20)],
        ) {
            let (mut near, mut far) = (vec![0; 64 << 10], vec![0; scale * (16 << 20)]);
            let mut heap = heap(&mut near, &mut far);
            let mut live: Vec<(*mut u8, usize, u8)> = Vec::new();
            let mut mark = 0u8;
            let whole = |&(p, n, m): &(*mut u8, usize, u8)| {
                // SAFETY: `n` bytes were allocated at `p` and filled with `m`.
                unsafe { std::slice::from_raw_parts(p, n) }.iter().all(|b| *b == m)
            };
            for (what, size, align) in steps.into_iter().take(300 / scale) {
                let size = size * scale;
                mark = mark.wrapping_add(1);
                // SAFETY: only live blocks of this heap are freed or resized.
                unsafe {
                    match what {
                        0 => {
                            let p = heap.allocate(16 << align, size);
                            prop_assert!(!p.is_null());
                            prop_assert_eq!(p as usize % (16 << align), 0);
                            prop_assert!(usable_size(p) >= size);
                            p.write_bytes(mark, size);
                            live.push((p, size, mark));
                        }
                        1 if !live.is_empty() => {
                            let b = live.swap_remove(size % live.len());
                            prop_assert!(whole(&b));
                            heap.free(b.0);
                        }
                        _ if !live.is_empty() => {
                            let i = size % live.len();
                            let (p, n, m) = live[i];
                            let p = heap.reallocate(p, size);
                            prop_assert!(!p.is_null());
                            prop_assert!(whole(&(p, n.min(size), m)));
                            p.write_bytes(m, size);
                            live[i] = (p, size, m);
                        }
                        _ => {}
                    }
                }
                prop_assert_eq!(heap.blocks, live.len());
            }
            for b in live {
                prop_assert!(whole(&b));
                // SAFETY: live.
                unsafe { heap.free(b.0) };
            }
            prop_assert_eq!((heap.blocks, heap.bytes), (0, 0));
        }
    }

    #[test]
    fn a_small_heap_touches_only_what_it_needs() {
        let (mut near, mut far) = (vec![0; 512 << 10], vec![0; 1 << 20]);
        let mut heap = heap(&mut near, &mut far);
        let (start, end) = (heap.used()[0].start, near.as_ptr() as usize + near.len());
        let mut ends = vec![];
        for _ in 0..400 {
            // SAFETY: never freed.
            assert!(!unsafe { heap.allocate(16, 1000) }.is_null());
            ends.push(heap.used()[0].end);
        }
        assert!(ends[0] - start <= 2 * PAGE && ends[399] <= end, "{} bytes", ends[0] - start);
        assert!(ends[399] - start >= 400 * 1000, "the near range is used first");
        assert!(heap.used()[1].is_empty());
        ends.dedup();
        assert!(ends.len() < 10, "{} steps", ends.len());
    }

    #[test]
    fn the_last_block_grows_where_it_is() {
        let (mut near, mut far) = (vec![0; 64 << 10], vec![0; 64 << 20]);
        let mut heap = heap(&mut near, &mut far);
        // SAFETY: only live blocks are resized, freed and written.
        unsafe {
            let first = heap.allocate(16, 300 << 10);
            let block = heap.allocate(16, 200 << 10);
            block.write_bytes(7, 200 << 10);
            for size in (1..=16).map(|times| times * (800 << 10)) {
                assert_eq!(heap.reallocate(block, size), block, "{size}");
                assert!(usable_size(block) >= size);
            }
            // Not where something follows it; and what follows is whole.
            let moved = heap.reallocate(first, 2 << 20);
            assert_ne!(moved, first);
            moved.write_bytes(1, 2 << 20);
            assert!(std::slice::from_raw_parts(block, 200 << 10).iter().all(|byte| *byte == 7));
            heap.free(moved);
            heap.free(block);
            assert_eq!((heap.blocks, heap.bytes), (0, 0));
            // It was given back as one piece.
            assert!(!heap.allocate(16, 40 << 20).is_null());
        }
    }

    #[test]
    fn a_full_heap_says_no_and_goes_on() {
        let (mut near, mut far) = (vec![0; 64 << 10], vec![0; 1 << 20]);
        let mut heap = heap(&mut near, &mut far);
        // SAFETY: only live blocks are freed.
        unsafe {
            assert!(heap.allocate(16, 2 << 20).is_null());
            let p = heap.allocate(16, 500 << 10);
            assert!(!p.is_null());
            heap.free(p);
        }
    }
}
