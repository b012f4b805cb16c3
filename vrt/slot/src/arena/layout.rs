//! The layout of the arena.
//!
//! ```text
//! near ranges, one per slot, side by side          far ranges      images       outside heaps, a PE
//! | ... | guard | stack <--top--> header | near heap | (unused) | ... | far | ... | image | ... | outside | ...
//!                           ^ hot page, staggered
//! ```
//!
//! The stack grows down from `top`, where the slot's header and the first heap pages begin: the hot ends of a suspended
//! rank share a page, so a switch touches one TLB entry. Tops are *staggered* by pages and cache lines from slot to
//! slot, since equal page offsets compete for the same TLB and cache sets (measured: 96 ns per switch unstaggered, 19
//! ns staggered, 1,024 ranks). Long near ranges are placed so that the hot page of a slot, its near heap and the guard
//! of the next one are in the same 2 MiB, which are covered by one page of the page table; several shorter ones fit
//! into 2 MiB. The rest of the heap is a second, far range, so that near ranges stay close together and share
//! page-table pages if there are very many ranks. If ranks run a program that is loaded for each of them, its
//! [`image`](crate::image) is a third range of the slot. Allocations of a PE outside of its ranks lie in separate
//! ranges after those (see [`outside`](crate::outside)).

use crate::pages::PAGE;

/// A slot's number: equal to the rank's in a job, any free one in `run_local`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId(pub u32);

const MIB: usize = 1 << 20;
/// The memory covered by a page of the page table.
const TABLE: usize = 2 * MIB;
/// The strictest alignment of an image.
const IMAGE: usize = 64 << 10;
/// Offset in the hot page at which the stack ends and the header begins.
const TOP_IN_PAGE: usize = 2048;
/// Outside heaps begin at multiples of this, the unit in which their allocator hands out memory to
/// threads.
pub(crate) const SEGMENT: usize = 32 * MIB;

/// The requested sizes of slots; `None`: chosen by the number of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSizes {
    /// Bytes of stack.
    pub stack: Option<usize>,
    /// Bytes of heap.
    pub heap: Option<usize>,
    /// Number of PEs that have a heap outside of ranks.
    pub pes: usize,
    /// Bytes of the image of the program that a rank runs; 0 if ranks share one.
    pub image: usize,
}

/// An impossible layout.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LayoutError {
    /// `--stack` out of range.
    #[error("a stack of {0} bytes is out of range: 64 KiB to 4 GiB are allowed")]
    Stack(usize),
    /// `--slot` out of range.
    #[error("a slot of {0} bytes is out of range: 1 MiB to 16 TiB are allowed")]
    Heap(usize),
}

/// Stacks of at least this size belong to slots for which there is enough address space.
const LARGE: usize = 512 << 10;

impl SlotSizes {
    fn stack_size(&self, slots: usize) -> Result<usize, LayoutError> {
        match self.stack {
            Some(size) if !(64 << 10..=4 << 30).contains(&size) => Err(LayoutError::Stack(size)),
            Some(size) => Ok(size.next_multiple_of(PAGE)),
            None if slots <= 4_200 => Ok(8 * MIB),
            None if slots <= 17_000 => Ok(LARGE),
            None => Ok(96 << 10),
        }
    }

    /// Bytes of far heap: as requested, or an equal share of 16 TiB up to 64 GiB.
    pub(crate) fn far_size(&self, slots: usize) -> usize {
        let share = (16usize << 40) / slots.max(1);
        let share = 1 << share.ilog2();
        self.heap.map_or(share.clamp(64 * MIB, 64 << 30), |size| size.next_multiple_of(PAGE))
    }

    /// The least size to which automatic shrinking goes down.
    pub(crate) fn smallest_far(&self) -> usize {
        self.heap.map_or(64 * MIB, |size| size.next_multiple_of(PAGE))
    }
}

/// The arithmetic of the arena. Plain numbers, so that it can be copied and tested.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The first address.
    pub base: usize,
    /// Number of slots.
    pub slots: usize,
    /// Bytes of a slot's stack, at least.
    pub stack: usize,
    pub(crate) far_stride: usize,
    near_base: usize,
    near_stride: usize,
    /// Bytes of the guard below a stack.
    guard: usize,
    far_base: usize,
    image_base: usize,
    image_stride: usize,
    outside_base: usize,
    outside_stride: usize,
    pes: usize,
    /// Offset in a near range of the page that holds the top of an unstaggered stack.
    hot: usize,
    stagger_pages: usize,
}

impl Layout {
    /// For this many slots, from an address on; `far`: bytes of a slot's far heap.
    pub fn new(
        base: usize,
        slots: usize,
        sizes: &SlotSizes,
        far: usize,
    ) -> Result<Layout, LayoutError> {
        let stack = sizes.stack_size(slots)?;
        if !(MIB..=16 << 40).contains(&far) {
            return Err(LayoutError::Heap(sizes.heap.unwrap_or(far)));
        }
        // A guard of one page is jumped over by a C frame of 200 KB; but each page of it costs time when a
        // rank begins, and an entry of the page table.
        // As many pages of stagger as leave a guard, a near heap and what lies between in one page of the page table:
        // of large ranges all other bits of a hot page's number are alike that choose a set of the TLB (switches among
        // 1,024 ranks: 146 ns with 64 pages, 116 with these).
        let (guard, stagger_pages, near_heap) = match stack {
            MIB.. => (MIB, 125, 512 << 10),
            LARGE.. => (256 << 10, 13, 128 << 10),
            _ => (64 << 10, 13, 24 << 10),
        };
        let above = PAGE + near_heap;
        let len = guard + stack + stagger_pages * PAGE + above;
        let near_stride = len.next_power_of_two().min(len.next_multiple_of(TABLE));
        let mut layout = Layout {
            base,
            slots,
            stack,
            far_stride: far,
            near_base: 0,
            near_stride,
            guard,
            far_base: 0,
            image_base: 0,
            image_stride: sizes.image.next_multiple_of(PAGE),
            outside_base: 0,
            // Threads get segments; a PE that has to do with little address space has few threads.
            outside_stride: (16 * far).clamp(8 * SEGMENT, 64 << 30).next_multiple_of(SEGMENT),
            pes: sizes.pes,
            // What is over of the range is the stack's.
            hot: near_stride - above,
            stagger_pages,
        };
        layout.rebase(base);
        debug_assert!(layout.guard_of(SlotId(0)).0 >= base);
        Ok(layout)
    }

    /// Moves the layout to the address of the kernel's mapping.
    pub(crate) fn rebase(&mut self, base: usize) {
        self.base = base;
        let guard_of_first = if self.near_stride < TABLE { 0 } else { self.guard };
        self.near_base = (base + guard_of_first).next_multiple_of(TABLE) - guard_of_first;
        self.far_base = (self.near_base + self.near_stride * self.slots).next_multiple_of(TABLE);
        let far_end = self.far_base + self.far_stride * self.slots;
        self.image_base = far_end.next_multiple_of(IMAGE);
        let images_end = self.image_base + self.image_stride * self.slots;
        self.outside_base = images_end.next_multiple_of(SEGMENT);
    }

    /// Bytes to map, whatever the base.
    pub fn size(&self) -> usize {
        let each = self.near_stride + self.far_stride + self.image_stride;
        each * self.slots + 2 * TABLE + IMAGE + SEGMENT + self.outside_stride * self.pes
    }

    /// The end address of the arena.
    pub fn end(&self) -> usize {
        self.base + self.size()
    }

    /// The address where the stack ends and the header begins.
    #[inline(always)]
    pub fn top(&self, slot: SlotId) -> usize {
        let i = slot.0 as usize;
        self.near_base + i * self.near_stride + self.hot - (i * 7 % self.stagger_pages) * PAGE
            + TOP_IN_PAGE
            - (i % 31) * 64
    }

    /// The lowest usable address of the stack.
    pub(crate) fn stack_limit(&self, slot: SlotId) -> usize {
        let (start, len) = self.guard_of(slot);
        start + len
    }

    /// Start and length of the guard below the stack.
    pub fn guard_of(&self, slot: SlotId) -> (usize, usize) {
        (self.near_base + slot.0 as usize * self.near_stride, self.guard)
    }

    /// Start and end of the near heap, which begins after a header of `header` bytes.
    pub(crate) fn near_heap(&self, slot: SlotId, header: usize) -> (usize, usize) {
        let start = (self.top(slot) + header).next_multiple_of(16);
        (start, self.near_base + (slot.0 as usize + 1) * self.near_stride)
    }

    /// Start and end of the far heap.
    pub(crate) fn far_heap(&self, slot: SlotId) -> (usize, usize) {
        let start = self.far_base + slot.0 as usize * self.far_stride;
        (start, start + self.far_stride)
    }

    /// The address of the image of a slot's rank.
    pub fn image(&self, slot: SlotId) -> usize {
        self.image_base + slot.0 as usize * self.image_stride
    }

    /// The ranges (start, length) of a slot that ever get pages, except its image.
    pub fn used_ranges(&self, slot: SlotId) -> ((usize, usize), (usize, usize)) {
        let low = self.stack_limit(slot);
        let (_, near_end) = self.near_heap(slot, 0);
        let (far, far_end) = self.far_heap(slot);
        ((low, near_end - low), (far, far_end - far))
    }

    /// Start and end of the outside heap of a PE.
    pub fn outside_heap(&self, pe: u32) -> (usize, usize) {
        let start = self.outside_base + pe as usize * self.outside_stride;
        (start, start + self.outside_stride)
    }

    /// The slot of the pool of a PE, after those of ranks.
    pub(crate) fn pool_of(&self, pe: u32) -> SlotId {
        SlotId((self.slots - self.pes) as u32 + pe)
    }

    /// The number of the first slot that is a pool.
    pub(crate) fn first_pool(&self) -> usize {
        self.slots - self.pes
    }

    /// The PE whose outside heap contains an address of the arena, if any.
    #[inline(always)]
    pub fn outside_at(&self, address: usize) -> Option<u32> {
        (address >= self.outside_base)
            .then(|| ((address - self.outside_base) / self.outside_stride) as u32)
    }

    /// The slot that contains an address of the arena outside of outside heaps.
    #[inline]
    pub fn slot_at(&self, address: usize) -> SlotId {
        let slot = if address < self.far_base {
            (address.saturating_sub(self.near_base) / self.near_stride).min(self.slots - 1)
        } else if address < self.image_base {
            (address - self.far_base) / self.far_stride
        } else {
            // Behind the last one, too, where nothing lies.
            ((address - self.image_base) / self.image_stride.max(1)).min(self.slots - 1)
        };
        SlotId(slot as u32)
    }

    /// Whether an address lies in the guard of its slot.
    pub fn in_guard(&self, address: usize) -> bool {
        if address >= self.far_base {
            return false;
        }
        let (start, len) = self.guard_of(self.slot_at(address));
        (start..start + len).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> Vec<Layout> {
        [
            (1, None),
            (3, Some(64 << 10)),
            (66, None),
            (4_200, None),
            (5000, None),
            (100_002, None),
            (4, Some(1 << 30)),
        ]
        .into_iter()
        .map(|(slots, stack)| {
            let sizes =
                SlotSizes { stack, pes: 2, image: slots % 2 * 10_000, ..Default::default() };
            Layout::new(0x2000_0000_0000, slots, &sizes, sizes.far_size(slots)).unwrap()
        })
        .collect()
    }

    #[test]
    fn parts_of_slots_do_not_overlap_and_belong_to_their_slot() {
        for l in layouts() {
            let mut end = l.base;
            let last = l.slots - 1;
            for i in (0..last.min(200)).chain([last]) {
                let s = SlotId(i as u32);
                let (guard, len) = l.guard_of(s);
                let (heap, heap_end) = l.near_heap(s, 2048);
                assert!(guard >= l.base + i * l.near_stride && guard >= end, "slot {i} of {l:?}");
                assert_eq!(guard + len, l.stack_limit(s));
                assert!((64 << 10..=MIB).contains(&len), "{len} in {l:?}");
                assert!(l.top(s) - l.stack_limit(s) >= l.stack, "the whole stack fits");
                assert_eq!(l.top(s) % 64, 0);
                assert!(heap_end - heap >= 16 << 10, "a useful near heap: {}", heap_end - heap);
                for a in [guard, l.stack_limit(s), l.top(s), heap, heap_end - 1] {
                    assert_eq!(l.slot_at(a), s);
                }
                let (far, far_end) = l.far_heap(s);
                assert_eq!((l.slot_at(far), l.slot_at(far_end - 1)), (s, s));
                assert!(far_end <= l.image(SlotId(0)));
                if l.image_stride > 0 {
                    let image = l.image(s);
                    let last = image + l.image_stride - 1;
                    assert_eq!((l.slot_at(image), l.slot_at(last)), (s, s));
                    assert!(image.is_multiple_of(PAGE) && last < l.outside_base);
                    assert_eq!(l.outside_at(last), None);
                }
                assert!(l.in_guard(guard) && !l.in_guard(l.stack_limit(s)) && !l.in_guard(far));
                end = end.max(heap_end);
                assert_eq!((l.outside_at(far_end - 1), l.outside_at(heap)), (None, None));
            }
            for pe in 0..2 {
                let (start, end) = l.outside_heap(pe);
                assert_eq!((l.outside_at(start), l.outside_at(end - 1)), (Some(pe), Some(pe)));
                assert!(start.is_multiple_of(SEGMENT) && end <= l.end());
            }
        }
    }

    #[test]
    fn a_slot_needs_one_page_of_the_page_table_or_less() {
        for l in layouts() {
            let tables = (0..l.slots - 1).flat_map(|i| {
                let s = SlotId(i as u32);
                let (guard, len) = l.guard_of(s);
                [guard, guard + len - 1, l.top(s) - 2 * PAGE, l.near_heap(s, 0).1 - 1]
            });
            let mut tables: Vec<_> = tables.map(|address| address / TABLE).collect();
            tables.dedup();
            // The first guard has no neighbour.
            assert!(tables.len() <= l.slots, "{} for {l:?}", tables.len());
        }
    }

    #[test]
    fn very_many_slots_share_pages_of_the_page_table() {
        for (slots, stride) in [(10_002, 1 << 20), (100_002, 256 << 10)] {
            let sizes = SlotSizes::default();
            let l = Layout::new(0, slots, &sizes, sizes.far_size(slots)).unwrap();
            assert!(l.near_stride <= stride, "{}", l.near_stride);
        }
    }

    #[test]
    fn absurd_sizes_are_refused_with_their_value() {
        let sizes = SlotSizes { stack: Some(100), ..SlotSizes::default() };
        assert_eq!(Layout::new(0, 1, &sizes, MIB).unwrap_err(), LayoutError::Stack(100));
        assert_eq!(Layout::new(0, 1, &SlotSizes::default(), 5).unwrap_err(), LayoutError::Heap(5));
    }
}
