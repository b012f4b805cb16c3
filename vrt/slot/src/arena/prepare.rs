//! Making a slot ready for a rank.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicU32};

use vrt_shm::RemoteFreeList;

use crate::arena::{Arena, Body, SlotHeader, SlotId};
use crate::floating_point::FloatingPoint;
use crate::heap::SlotHeap;
use crate::held::Held;
use crate::pages::PAGE;

impl SlotHeader {
    /// Makes a zeroed or discarded slot ready for a rank.
    ///
    /// # Safety
    /// Nothing else uses the slot; `this` is its header in the mapped arena.
    pub unsafe fn prepare(this: *mut SlotHeader, slot: SlotId, rank: u32, owner: u32) {
        let Some(arena) = Arena::current() else { return };
        // SAFETY: a header of the arena, which nothing else uses, says the caller.
        unsafe {
            this.write(SlotHeader {
                body: UnsafeCell::new(Body::None),
                rank: Cell::new(rank),
                slot: Cell::new(slot.0),
                owner: AtomicU32::new(owner),
                wakers: AtomicU32::new(0),
                usual: Cell::new((0, 0)),
                held: Held::default(),
                kept_by: Cell::new(0),
                locals: Cell::new(std::ptr::null_mut()),
                has_tasks: Cell::new(false),
                thread_pointer: Cell::new(0),
                thread_locals_of: Cell::new(0),
                signals: Cell::new(std::ptr::null_mut()),
                has_signal: AtomicBool::new(false),
                floating_point: Cell::new(FloatingPoint::USUAL),
                folder: Cell::new(std::ptr::null_mut()),
                guest: Cell::new(std::ptr::null_mut()),
                remote: RemoteFreeList::new(),
                heap: UnsafeCell::new(SlotHeap::new(
                    arena.layout.near_heap(slot, size_of::<SlotHeader>()),
                    arena.layout.far_heap(slot),
                )),
            });
        }
    }

    /// Makes the pages below the stack inaccessible in this process. Guards are per process and cost page tables, so
    /// this is done when a PE first runs the rank.
    pub fn install_guard(&self) {
        let Some(arena) = Arena::current() else { return };
        let (start, len) = arena.layout.guard_of(self.id());
        debug_assert_eq!(start % PAGE, 0);
        /// `MADV_GUARD_INSTALL` (Linux 6.13; on shared mappings 6.15) needs no VMA of its own.
        const MADV_GUARD_INSTALL: libc::c_int = 102;
        // SAFETY: `Layout::guard_of` gives pages that nothing is ever put into.
        unsafe {
            let start = start as *mut libc::c_void;
            if libc::madvise(start, len, MADV_GUARD_INSTALL) != 0 {
                libc::mprotect(start, len, libc::PROT_NONE);
            }
        }
    }
}
