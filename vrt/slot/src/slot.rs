//! The header of a slot: all data about a rank that move with its memory.
//!
//! It is at the top of the stack, in the page that a switch touches anyway. The first cache lines
//! contain what a switch needs.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use vrt_shm::RemoteFreeList;

use crate::Arena;
use crate::floating_point::FloatingPoint;
use crate::folders::Folder;
use crate::heap::SlotHeap;
use crate::held::Held;
use crate::layout::PAGE;
use crate::locals::Locals;
use crate::rank::Body;
use crate::signals::Signals;

/// A slot's number: equal to the rank's in a job, any free one in `run_local`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId(pub u32);

/// The header of a slot. Valid when zeroed (no owner, no body, empty heap).
#[repr(C, align(64))]
pub struct SlotHeader {
    /// The suspended program of the rank.
    pub body: UnsafeCell<Body>,
    /// The rank that lives here.
    pub rank: Cell<u32>,
    /// This slot's own number.
    pub slot: Cell<u32>,
    /// The PE (its process-wide unique number, never 0) that may touch the slot; 0: none.
    pub owner: AtomicU32,
    /// Wakers of the rank that are held outside `vrt` (see `waker`).
    pub wakers: AtomicI32,
    /// The runtime's data of the rank, in the rank's heap, or null.
    pub locals: Cell<*mut Locals>,
    /// Whether there are tasks among it. Each waiting call checks this: with very many ranks it would otherwise wait
    /// for that cache line of the heap to come from memory.
    pub(crate) has_tasks: Cell<bool>,
    /// The thread pointer of the rank; 0: its PE's.
    pub(crate) thread_pointer: Cell<usize>,
    /// The PE from whose thread-local variables the copies in the rank's thread block come.
    pub(crate) thread_locals_of: Cell<u32>,
    /// The signal settings of a rank that runs an image, or null; and whether a signal is pending.
    pub(crate) signals: Cell<*mut Signals>,
    pub(crate) has_signal: AtomicBool,
    /// The saved floating-point environment of a rank that runs an image.
    pub(crate) floating_point: Cell<FloatingPoint>,
    /// Its working directory and mask, if it has changed them.
    pub(crate) folder: Cell<*mut Folder>,
    /// The binding's data for a rank that runs an image, or null.
    pub guest: Cell<*mut std::ffi::c_void>,
    /// Blocks freed by others.
    pub remote: RemoteFreeList,
    /// The heap, whose state is entirely here and in the slot.
    pub heap: UnsafeCell<SlotHeap>,
    /// Blocks and bytes of the heap when the program of an image began: those of its libraries.
    pub usual: Cell<(usize, usize)>,
    /// What the rank holds outside the slot.
    pub held: Held,
    /// PEs, by their numbers modulo 64, whose statics referred to its memory when the rank left them for another PE of
    /// the node.
    pub(crate) kept_by: Cell<u64>,
}

/// Bytes at the beginning of a header that a switch touches.
pub const TOUCHED_BY_SWITCH: usize = std::mem::offset_of!(SlotHeader, remote);

impl SlotHeader {
    /// Makes a zeroed or discarded slot ready for a rank.
    ///
    /// # Safety
    /// Nothing else uses the slot; `this` is its header in the mapped arena.
    pub unsafe fn prepare(this: *mut SlotHeader, slot: SlotId, rank: u32, owner: u32) {
        let Some(arena) = Arena::current() else { return };
        // SAFETY: the caller has the slot for itself.
        unsafe {
            this.write(SlotHeader {
                body: UnsafeCell::new(Body::None),
                rank: Cell::new(rank),
                slot: Cell::new(slot.0),
                owner: AtomicU32::new(owner),
                wakers: AtomicI32::new(0),
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

    /// Its number.
    pub fn id(&self) -> SlotId {
        SlotId(self.slot.get())
    }

    /// Whether the calling PE (by its unique number) may touch the slot.
    #[inline(always)]
    pub(crate) fn is_owned_by(&self, pe: u32) -> bool {
        self.owner.load(Ordering::Relaxed) == pe
    }

    /// Makes the pages below the stack inaccessible in this process. Guards are per process and cost page tables, so
    /// this is done when a PE first runs the rank.
    pub fn install_guard(&self) {
        let Some(arena) = Arena::current() else { return };
        let (start, len) = arena.layout.guard_of(self.id());
        debug_assert_eq!(start % PAGE, 0);
        /// `MADV_GUARD_INSTALL` (Linux 6.13; on shared mappings 6.15) needs no VMA of its own.
        const MADV_GUARD_INSTALL: libc::c_int = 102;
        // SAFETY: the guard range is part of our mapping and never used for anything else.
        unsafe {
            let start = start as *mut libc::c_void;
            if libc::madvise(start, len, MADV_GUARD_INSTALL) != 0 {
                libc::mprotect(start, len, libc::PROT_NONE);
            }
        }
    }
}
