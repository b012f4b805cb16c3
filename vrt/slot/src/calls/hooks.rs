//! `malloc` and its family, which this crate defines in place of libc's.
//!
//! One thread-local word selects the heap: a non-null value is the header of the slot whose rank
//! runs. The PE sets it when it resumes a rank. If it is null, the runtime's own memory comes from
//! libc ([`runtime_heap`]), and all other memory from the PE's [`outside`] heap.
//!
//! A free goes by address, never by that word: a block outside the arena belongs to libc; a block
//! of a slot that this thread's PE owns is freed at once (the rank cannot be running elsewhere, and
//! the PE has one thread); any other block is put on the slot's remote-free list, which the owner
//! empties before it takes memory from the heap.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arena::{Arena, SlotHeader};
use crate::heap_word::{HEAP, PE};
pub use crate::heap_word::{
    Watched, current_rank, heap_in_use, in_rank, pe_of_thread, running_rank, runtime_heap,
    set_pe_of_thread, use_heap,
};
use crate::posix::interpose::Real;
pub use crate::posix::interpose::outside_heap;
use crate::{forked, heap, outside, report};

/// # Safety
/// `slot` is the slot in use on this thread, `align` a power of two.
#[inline]
unsafe fn allocate(slot: *mut SlotHeader, align: usize, size: usize) -> *mut c_void {
    // SAFETY: the slot in use belongs to this thread's PE; references end before returning.
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
    // SAFETY: as the caller promises.
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
    // SAFETY: the owner may touch the heap; the list holds live blocks of it, and that of a pool
    // those of its PE's outside heap, too.
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
    // SAFETY: as the caller promises.
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
        // SAFETY: as the caller promises.
        return unsafe { outside::free(arena, pe, block) };
    }
    let slot = arena.header(arena.slot_at(block as usize));
    let pe = PE.get();
    // SAFETY: the owner frees directly; everybody else through the list.
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
    // SAFETY: errno of this thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
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
        // SAFETY: a non-null word is the slot of the rank that runs here.
        unsafe { allocate(slot, 16, size) }
    } else if outside::serves() {
        outside::allocate(16, size, false)
    } else {
        // SAFETY: libc's own.
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
        // SAFETY: libc's own.
        return unsafe { __libc_calloc(count, size) };
    }
    let Some(bytes) = count.checked_mul(size) else { return no_memory() };
    if slot.is_null() {
        return outside::allocate(16, bytes, true);
    }
    // SAFETY: as in `malloc`; the block has `bytes` bytes.
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
    // SAFETY: `block` is null or live; where it lies says whose it is.
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
/// The block is live and not used by anything else.
unsafe fn move_block(block: *mut c_void, old: usize, size: usize) -> *mut c_void {
    // SAFETY: as the caller promises; the new block is another one.
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
    // SAFETY: as the caller promises.
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
        // SAFETY: as the caller promises.
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
    // SAFETY: the address says whose block it is.
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
        // SAFETY: errno of this thread.
        unsafe { *libc::__errno_location() = libc::EINVAL };
        return std::ptr::null_mut();
    };
    // SAFETY: as in `malloc`.
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
    // SAFETY: `out` is writable, says POSIX.
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
    // SAFETY: as in `memalign`.
    unsafe { memalign(align, size) }
}

/// The old `valloc`: aligned to a page.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: as in `memalign`.
    unsafe { memalign(4096, size) }
}

/// The old `pvalloc`: whole pages.
///
/// # Safety
/// As in C.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(4096) {
        // SAFETY: as in `memalign`.
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
    // SAFETY: a live block; libc keeps its chunks' sizes in the same place, with two flag words of
    // overhead less one that the successor lends, as dlmalloc does (libc's malloc descends from it).
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
fn libc_usable_size(block: *mut c_void) -> usize {
    type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
    static REAL: Real = Real::new(c"malloc_usable_size");
    // SAFETY: the symbol has this type; `block` is libc's.
    unsafe { std::mem::transmute::<*mut c_void, UsableSize>(REAL.get())(block) }
}

/// Makes the calling PE (by unique number) the owner of a slot, or nobody (0).
///
/// # Safety
/// No other PE owns or uses the slot; nor does this one, after it has given it up.
pub unsafe fn own(slot: *mut SlotHeader, pe: u32) {
    // SAFETY: a header in the mapped arena.
    unsafe { (*slot).owner.store(pe, Ordering::Release) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alignment_that_is_no_number_is_refused() {
        for align in [(1 << 63) + 1, usize::MAX] {
            // SAFETY: a plain call.
            let (block, error) = unsafe {
                let block = memalign(align, 10);
                (block, std::io::Error::last_os_error().raw_os_error())
            };
            assert!(block.is_null(), "{align:#x}: a block at {block:p}");
            assert_eq!(error, Some(libc::EINVAL), "{align:#x}");
        }
    }
}
