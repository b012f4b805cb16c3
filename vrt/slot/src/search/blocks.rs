//! The live blocks of a slot's heap, found by address.

use super::words::Range;
use crate::arena::SlotHeader;
use crate::calls::hooks;
use crate::heap::chunk;

/// The unit of heap for which the first block is recorded.
const GRANULE: usize = 4096;

/// The blocks of a heap, in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    all: Vec<Range>,
    /// For the near and the far part of the heap: its address, and for each granule of it the
    /// number of blocks that begin before the granule.
    parts: Vec<(usize, Vec<u32>)>,
}

impl Blocks {
    /// First frees its blocks that others have put on the list.
    ///
    /// # Safety
    /// The slot belongs to the calling PE and its rank does not run, or is the caller.
    pub(super) unsafe fn of(slot: *mut SlotHeader) -> Blocks {
        let mut this = Blocks::default();
        // SAFETY: R1.
        let used = unsafe {
            if !(*slot).remote.is_empty() {
                hooks::drain_remote(slot);
            }
            (*(*slot).heap.get()).used()
        };
        for used in used {
            let start = used.start;
            let mut granules = Vec::with_capacity(used.len() / GRANULE + 1);
            let all = &mut this.all;
            let mut add = |block: Range| {
                while start + granules.len() * GRANULE <= block.0 {
                    granules.push(all.len() as u32);
                }
                all.push(block);
            };
            // SAFETY: H1, R1.
            unsafe { chunk::blocks(used, |start, end| add((start, end))) };
            this.parts.push((start, granules));
        }
        this
    }

    /// The number of the block that contains an address.
    pub(super) fn number_at(&self, address: usize) -> Option<usize> {
        let (start, granules) = self.parts.iter().rev().find(|(start, _)| *start <= address)?;
        let granule = (address - start) / GRANULE;
        // Behind the last block that begins in this granule or before.
        let low = *granules.get(granule).or(granules.last())? as usize;
        let high = granules.get(granule + 1).map_or(self.all.len(), |next| *next as usize);
        let behind = low + self.all[low..high].partition_point(|(start, _)| *start <= address);
        let number = behind.checked_sub(1)?;
        (address < self.all[number].1).then_some(number)
    }

    pub(super) fn at(&self, address: usize) -> Option<Range> {
        self.number_at(address).map(|number| self.all[number])
    }

    pub(super) fn get(&self, number: usize) -> Range {
        self.all[number]
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.all.iter().copied()
    }
}
