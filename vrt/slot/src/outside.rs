//! The outside heap of a PE: for allocations in its process outside of any rank, by threads that ranks have started, by
//! tokio's tasks and pools, and by calls of libc that keep memory for the process.
//!
//! It lies in the arena, so a rank may hold such memory (the result of a thread, the lines of a file that tokio has
//! read) and be handed over to another PE of the node, which reads it in place and frees it through the remote-free
//! list of the PE that it came from.
//!
//! Invariants:
//! - The allocator is mimalloc, confined to the PE's own range. Its bookkeeping belongs to the process, so only threads
//!   of that process allocate and free there; others put blocks on the list.
//! - The runtime's own memory is libc's, as is everything allocated before the PEs were forked.
//!   [`serves`] returns whether the calling thread is not the PE's rank thread doing the runtime's
//!   own work.
//! - A process that was forked from a PE shares this memory with its parent: it may read it, but
//!   allocates from libc, and blocks that it frees remain.
//! - In a local run, in which no rank ever leaves its process, libc serves.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use libmimalloc_sys as mi;

use crate::arena::Arena;
use crate::forked;
use crate::heap_word::PE;

/// The number of this process's PE plus 1, once its outside heap is in use; 0: libc serves.
static OWN: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The runtime works on this thread.
    static RUNTIME: Cell<bool> = const { Cell::new(false) };
    /// This thread is inside the allocator.
    static ALLOCATING: Cell<bool> = const { Cell::new(false) };
}

/// Whether mappings of the calling thread belong to the allocator, for its bookkeeping.
pub(crate) fn is_allocating() -> bool {
    ALLOCATING.get()
}

/// Options of mimalloc 2 that its crate does not name, by their positions in its list.
mod option {
    pub(super) const ARENA_RESERVE: i32 = 23;
    pub(super) const PURGE_DELAY: i32 = 15;
    pub(super) use libmimalloc_sys::mi_option_limit_os_alloc as DISALLOW_OS_ALLOC;
    pub(super) use libmimalloc_sys::mi_option_use_numa_nodes as USE_NUMA_NODES;
}

/// Starts to use the outside heap of a PE, in its process. The calling thread is its rank thread,
/// on which the runtime's own memory remains libc's.
///
/// # Safety
/// This is the PE's process, in which that heap is not in use yet.
pub unsafe fn begin(pe: u32) {
    let Some(arena) = Arena::current() else { return };
    let (start, end) = arena.layout.outside_heap(pe);
    RUNTIME.set(true);
    // SAFETY: the range is this PE's alone, says the caller; zeroed, and aligned to `SEGMENT`, by `Layout`; mapped (S1).
    // With a delay of -1 nothing is given back to the system, which would not clear shared pages.
    let is_ready = unsafe {
        mi::mi_option_set(option::PURGE_DELAY, -1);
        mi::mi_option_set(option::ARENA_RESERVE, 0);
        mi::mi_option_set(option::USE_NUMA_NODES, 1);
        mi::mi_option_set(option::DISALLOW_OS_ALLOC, 1);
        let (at, none) = (start as *const c_void, std::ptr::null_mut());
        mi::mi_manage_os_memory_ex(at, end - start, true, false, true, -1, false, none)
    };
    if is_ready {
        OWN.store(pe + 1, Ordering::Release);
    }
}

/// This process is a copy of the PE's, which owns the heap.
pub(crate) fn leave_heap_to_parent() {
    OWN.store(0, Ordering::Relaxed);
}

/// This process was forked from a PE, with which it shares the arena: it allocates nothing there, and blocks that it
/// frees are left unchanged.
pub(crate) fn leave_to_parent() {
    forked::set_copy(true);
    PE.set(0);
    leave_heap_to_parent();
}

/// Whether the outside heap serves the calling thread, given that no rank runs on it.
#[inline(always)]
pub fn serves() -> bool {
    OWN.load(Ordering::Relaxed) != 0 && !RUNTIME.get()
}

/// Whether this process has an outside heap.
#[inline(always)]
pub(crate) fn exists() -> bool {
    OWN.load(Ordering::Relaxed) != 0
}

/// Runs `f` as something other than the runtime's own work. Restores the previous state.
#[inline]
pub fn within<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            RUNTIME.set(self.0);
        }
    }
    let _restore = Restore(RUNTIME.replace(false));
    f()
}

/// Allocates `size` bytes, zeroed if `zeroed`; `align` is a power of two.
#[inline]
pub(crate) fn allocate(align: usize, size: usize, zeroed: bool) -> *mut c_void {
    ALLOCATING.set(true);
    // SAFETY: mimalloc may be called by any thread; `begin` has given it memory, and without any it returns null.
    let block = unsafe {
        match (align <= 16, zeroed) {
            (true, false) => mi::mi_malloc(size),
            (true, true) => mi::mi_zalloc(size),
            (false, false) => mi::mi_malloc_aligned(size, align),
            (false, true) => mi::mi_zalloc_aligned(size, align),
        }
    };
    ALLOCATING.set(false);
    block
}

/// Whether blocks of this PE's heap belong to this process.
#[inline(always)]
fn is_own(pe: u32) -> bool {
    OWN.load(Ordering::Relaxed) == pe + 1
}

/// Frees a block of the outside heap of a PE of the node.
///
/// # Safety
/// The block is live there and not used any more.
pub unsafe fn free(arena: &Arena, pe: u32, block: *mut u8) {
    // SAFETY: the caller gives the block away; the header of the PE's pool is mapped in all PEs (S1), its list atomic.
    unsafe {
        if is_own(pe) {
            mi::mi_free(block.cast());
        } else if !forked::is_copy() {
            (*arena.header(arena.layout.pool_of(pe))).remote.push(block);
        }
    }
}

/// Changes the length of a block of this process's outside heap; returns null if there is no room,
/// or the block belongs to another PE.
///
/// # Safety
/// The block is live in the outside heap of `pe` and not used by anything else.
pub(crate) unsafe fn reallocate(pe: u32, block: *mut u8, size: usize) -> *mut c_void {
    if !is_own(pe) {
        return std::ptr::null_mut();
    }
    ALLOCATING.set(true);
    // SAFETY: `is_own`: the block is this process's mimalloc's, live and the caller's.
    let block = unsafe { mi::mi_realloc(block.cast(), size) };
    ALLOCATING.set(false);
    block
}

/// Usable bytes at `block`, in the outside heap of any PE of the node.
///
/// # Safety
/// The block is live.
pub unsafe fn usable_size(block: *mut u8) -> usize {
    // SAFETY: mimalloc looks at the head of the block's segment only, which is in the arena like the block (S1).
    unsafe { mi::mi_usable_size(block.cast()) }
}
