//! `malloc` and its family, which this crate defines in place of libc's.
//!
//! One thread-local word selects the heap: a non-null value is the header of the slot whose rank
//! runs. The PE sets it when it resumes a rank. If it is null, the runtime's own memory comes from
//! libc ([`runtime_heap`]), and all other memory from the PE's [`outside`] heap.
//!
//! Invariants:
//! - M1. A block's address says whose it is, never that word: outside the arena it is libc's, in an outside heap that
//!   PE's, elsewhere the slot's in whose range it lies.
//! - M2. A block of a slot that this thread's PE owns is freed at once (the rank cannot be running elsewhere, and the PE
//!   has one thread, S2); any other is put on the slot's remote-free list, which the owner empties before it takes memory
//!   from the heap.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arena::{Arena, SlotHeader};
use crate::heap_word::{HEAP, PE};
pub use crate::heap_word::{
    Watched, current_rank, heap_in_use, in_rank, pe_of_thread, running_rank, runtime_heap,
    set_pe_of_thread, use_heap,
};
use crate::posix::errno::of_process;
pub use crate::posix::interpose::outside_heap;
use crate::posix::interpose::real;
use crate::{forked, heap, outside, report};

/// # Safety
/// The calling PE owns the slot; `align` is a power of two.
#[inline]
unsafe fn allocate(slot: *mut SlotHeader, align: usize, size: usize) -> *mut c_void {
    // SAFETY: S2; references end before returning.
    unsafe {
        if !(*slot).remote.is_empty() {
            drain_remote(slot);
        }
        let block = (*(*slot).heap.get()).allocate(align, size);
        if block.is_null() {
            report_full_heap(slot, size);
        }
        block.cast()
    }
}

/// Reports on stderr that the running rank's heap is full. It allocates nothing.
///
/// # Safety
/// The calling PE owns the slot.
#[cold]
unsafe fn report_full_heap(slot: *mut SlotHeader, asked: usize) {
    /// More bytes than any machine has.
    const MOST: usize = 1 << 46;
    static LAST: AtomicU32 = AtomicU32::new(u32::MAX);
    // A program may try sizes, and look what it gets: what no machine has is not reported, and the same rank not twice.
    // SAFETY: S2.
    let (rank, size) = unsafe { ((*slot).rank.get(), (*(*slot).heap.get()).size()) };
    if slot != HEAP.get() || asked > MOST || LAST.swap(rank, Ordering::Relaxed) == rank {
        return;
    }
    report::say(format_args!(
        "rank {rank}: its heap is full: {asked} more bytes do not fit into a slot of {} MiB; \
         raise --slot (VRT_SLOT)",
        size >> 20
    ));
}

/// Frees blocks that others have put on the list.
///
/// # Safety
/// The calling PE owns the slot.
#[cold]
pub unsafe fn drain_remote(slot: *mut SlotHeader) {
    let Some(arena) = Arena::current() else { return };
    // SAFETY: S2; the list has live blocks of the heap, and that of a pool those of its PE's outside heap, too: M2.
    unsafe {
        (*slot).remote.drain(|block| match arena.layout.outside_at(block as usize) {
            Some(pe) => outside::free(arena, pe, block),
            None => (*(*slot).heap.get()).free(block),
        });
    }
}

/// Allocates from a slot's heap that is not the running rank's (the PE's pool of payloads).
///
/// # Safety
/// The calling PE owns the slot.
pub unsafe fn allocate_in(slot: *mut SlotHeader, size: usize) -> *mut u8 {
    // SAFETY: the calling PE owns the slot, says the caller.
    unsafe { allocate(slot, 16, size).cast() }
}

/// Frees a block of the arena, whichever PE owns its slot.
///
/// # Safety
/// `block` is live in a slot of the arena and not used any more.
#[inline]
pub unsafe fn free_in_arena(block: *mut u8) {
    let Some(arena) = Arena::current() else { return };
    if let Some(pe) = arena.layout.outside_at(block as usize) {
        // SAFETY: M1; the block is live, says the caller.
        return unsafe { outside::free(arena, pe, block) };
    }
    let slot = arena.header(arena.slot_at(block as usize));
    let pe = PE.get();
    // SAFETY: M1, M2; the block is live, says the caller.
    unsafe {
        if pe != 0 && (*slot).is_owned_by(pe) {
            (*(*slot).heap.get()).free(block);
        } else if !forked::is_copy() {
            (*slot).remote.push(block);
        }
    }
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

fn no_memory() -> *mut c_void {
    of_process().set(libc::ENOMEM);
    std::ptr::null_mut()
}

/// C `malloc`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let slot = HEAP.get();
    if !slot.is_null() {
        // SAFETY: S3.
        unsafe { allocate(slot, 16, size) }
    } else if outside::serves() {
        outside::allocate(16, size, false)
    } else {
        // SAFETY: libc's own `malloc`.
        unsafe { __libc_malloc(size) }
    }
}

/// C `calloc`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let slot = HEAP.get();
    if slot.is_null() && !outside::serves() {
        // SAFETY: libc's own `calloc`.
        return unsafe { __libc_calloc(count, size) };
    }
    let Some(bytes) = count.checked_mul(size) else { return no_memory() };
    if slot.is_null() {
        return outside::allocate(16, bytes, true);
    }
    // SAFETY: S3; the block has `bytes` bytes.
    unsafe {
        let block = allocate(slot, 16, bytes);
        if !block.is_null() {
            block.write_bytes(0, bytes);
        }
        block
    }
}

/// C `realloc`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the block is null or live, by C's contract; M1, and S3 for the slot in use.
    unsafe {
        if block.is_null() {
            return malloc(size);
        }
        let Some(arena) = Arena::current().filter(|_| Arena::contains(block as usize)) else {
            return reallocate_of_libc(block, size);
        };
        let slot = HEAP.get();
        let old = match arena.layout.outside_at(block as usize) {
            Some(pe) => {
                if slot.is_null() {
                    let moved = outside::reallocate(pe, block.cast(), size);
                    if !moved.is_null() {
                        return moved;
                    }
                }
                outside::usable_size(block.cast())
            }
            None if arena.header(arena.slot_at(block as usize)) == slot => {
                let moved = (*(*slot).heap.get()).reallocate(block.cast(), size);
                if moved.is_null() {
                    report_full_heap(slot, size);
                }
                return moved.cast();
            }
            None => heap::usable_size(block.cast()),
        };
        move_block(block, old, size)
    }
}

/// Copies a block of `old` bytes to a new one of `size`, and frees it.
///
/// # Safety
/// The block is live, as long as that, and not used by anything else.
unsafe fn move_block(block: *mut c_void, old: usize, size: usize) -> *mut c_void {
    // SAFETY: the block is live and has `old` bytes, says the caller; the new one is another one, of `size` bytes.
    unsafe {
        let moved = malloc(size);
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), old.min(size));
            free(block);
        }
        moved
    }
}

/// Changes the length of a block of libc's. The block stays libc's, unless the caller could carry it out of the
/// process: a rank, or code outside of ranks.
///
/// # Safety
/// The block is live in libc's heap and not used by anything else.
unsafe fn reallocate_of_libc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: a live block of libc's, says the caller.
    unsafe {
        if outside::exists() && (!HEAP.get().is_null() || outside::serves()) {
            move_block(block, libc_usable_size(block), size)
        } else {
            __libc_realloc(block, size)
        }
    }
}

/// C `reallocarray`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: C's contract is the same.
        Some(bytes) => unsafe { realloc(block, bytes) },
        None => no_memory(),
    }
}

/// C `free`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: M1; the block is null or live, by C's contract, and null is outside the arena.
    unsafe {
        if Arena::contains(block as usize) {
            free_in_arena(block.cast());
        } else {
            __libc_free(block);
        }
    }
}

/// C `memalign`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    let slot = HEAP.get();
    let Some(align) = align.max(16).checked_next_power_of_two() else {
        of_process().set(libc::EINVAL);
        return std::ptr::null_mut();
    };
    // SAFETY: S3; `align` was made a power of two.
    unsafe {
        match slot.is_null() {
            false => allocate(slot, align, size),
            true if outside::serves() => outside::allocate(align, size, false),
            true => __libc_memalign(align, size),
        }
    }
}

/// POSIX `posix_memalign`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    // SAFETY: `out` is writable, by C's contract; `memalign` takes anything.
    unsafe {
        let block = memalign(align, size);
        if block.is_null() {
            return libc::ENOMEM;
        }
        out.write(block);
    }
    0
}

/// C11 `aligned_alloc`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: `memalign` takes anything.
    unsafe { memalign(align, size) }
}

/// The old `valloc`: aligned to a page.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: `memalign` takes anything.
    unsafe { memalign(4096, size) }
}

/// The old `pvalloc`: whole pages.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(4096) {
        // SAFETY: `memalign` takes anything.
        Some(size) => unsafe { memalign(4096, size.max(4096)) },
        None => no_memory(),
    }
}

/// GNU `malloc_usable_size`.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: M1; the block is live, by C's contract.
    unsafe {
        match Arena::current().filter(|_| Arena::contains(block as usize)) {
            Some(arena) if arena.layout.outside_at(block as usize).is_some() => {
                outside::usable_size(block.cast())
            }
            Some(_) => heap::usable_size(block.cast()),
            None => libc_usable_size(block),
        }
    }
}

/// libc's own `malloc_usable_size`, which has no alternative name.
///
/// # Safety
/// The block is live in libc's heap.
unsafe fn libc_usable_size(block: *mut c_void) -> usize {
    type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
    // SAFETY: S4; a live block, says the caller.
    unsafe { real!(c"malloc_usable_size", UsableSize)(block) }
}

/// Makes the calling PE (by unique number) the owner of a slot, or nobody (0).
///
/// # Safety
/// No other PE owns or uses the slot; nor does this one, after it has given it up.
pub unsafe fn own(slot: *mut SlotHeader, pe: u32) {
    // SAFETY: S1; an atomic.
    unsafe { (*slot).owner.store(pe, Ordering::Release) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alignment_that_is_no_number_is_refused() {
        for align in [(1 << 63) + 1, usize::MAX] {
            // SAFETY: it takes anything.
            let block = unsafe { memalign(align, 10) };
            let error = of_process().get();
            assert!(block.is_null(), "{align:#x}: a block at {block:p}");
            assert_eq!(error, libc::EINVAL, "{align:#x}");
        }
    }
}
