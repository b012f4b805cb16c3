//! The header of a slot: all data about a rank that move with its memory.
//!
//! It is at the top of the stack, in the page that a switch touches anyway. The first cache lines
//! contain what a switch needs.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use vrt_shm::RemoteFreeList;

use crate::arena::{Body, SlotId};
use crate::floating_point::FloatingPoint;
use crate::heap::SlotHeap;
use crate::held::Held;

/// The header of a slot. Valid when zeroed (no owner, no body, empty heap).
#[repr(C, align(64))]
pub struct SlotHeader {
    /// The suspended program of the rank.
    pub(crate) body: UnsafeCell<Body>,
    /// The rank that lives here.
    pub rank: Cell<u32>,
    /// This slot's own number.
    pub(crate) slot: Cell<u32>,
    /// The PE (its process-wide unique number, never 0) that may touch the slot; 0: none.
    pub(crate) owner: AtomicU32,
    /// Wakers of the rank that are held outside `vrt` (see `waker`).
    pub(crate) wakers: AtomicU32,
    /// The runtime's data of the rank (`locals`), in the rank's heap, or null.
    pub(crate) locals: Cell<*mut c_void>,
    /// Whether there are tasks among it. Each waiting call checks this: with very many ranks it would otherwise wait
    /// for that cache line of the heap to come from memory.
    pub(crate) has_tasks: Cell<bool>,
    /// The thread pointer of the rank; 0: its PE's.
    pub(crate) thread_pointer: Cell<usize>,
    /// The PE from whose thread-local variables the copies in the rank's thread block come.
    pub(crate) thread_locals_of: Cell<u32>,
    /// The signal settings of a rank that runs an image (`signals`), or null; and whether a signal is pending.
    pub(crate) signals: Cell<*mut c_void>,
    pub(crate) has_signal: AtomicBool,
    /// The saved floating-point environment of a rank that runs an image.
    pub(crate) floating_point: Cell<FloatingPoint>,
    /// Its working directory and mask (`folders`), if it has changed them.
    pub(crate) folder: Cell<*mut c_void>,
    /// The binding's data for a rank that runs an image, or null.
    pub guest: Cell<*mut c_void>,
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
    /// Its number.
    pub fn id(&self) -> SlotId {
        SlotId(self.slot.get())
    }

    /// Whether the calling PE (by its unique number) may touch the slot.
    #[inline(always)]
    pub(crate) fn is_owned_by(&self, pe: u32) -> bool {
        self.owner.load(Ordering::Relaxed) == pe
    }
}
