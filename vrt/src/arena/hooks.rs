//! `malloc` and its family, defined by this crate in place of libc's.
//!
//! One thread-local word says whose heap is meant: null is the process's (libc's), anything else
//! is the header of the slot whose rank runs. The PE sets it when it resumes a rank; while the
//! runtime itself works it is null ([`runtime_heap`]).
//!
//! A free goes by address, never by that word: a block outside the arena is libc's; a block of a
//! slot that this thread's PE owns is freed at once (the rank cannot be running elsewhere, and the
//! PE has one thread); anything else goes on the slot's remote-free list, which the owner empties
//! before it takes memory from the heap.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use crate::arena::{Arena, SlotHeader, heap};

thread_local! {
    static HEAP: Cell<*mut SlotHeader> = const { Cell::new(std::ptr::null_mut()) };
    static PE: Cell<u32> = const { Cell::new(0) };
}

/// The slot whose heap serves this thread now; null: libc's heap.
#[inline(always)]
pub(crate) fn heap_in_use() -> *mut SlotHeader {
    HEAP.get()
}

/// Says whose heap is meant from now on; returns whose it was.
#[inline(always)]
pub(crate) fn use_heap(slot: *mut SlotHeader) -> *mut SlotHeader {
    HEAP.replace(slot)
}

/// Runs `f` on the process's heap. `f` must not suspend the rank.
#[inline(always)]
pub(crate) fn runtime_heap<R>(f: impl FnOnce() -> R) -> R {
    let result = on_runtime_heap(f);
    crate::rank::check::wipe_below();
    result
}

/// Never inlined, so that nothing of `f` stays in the rank's own frames.
#[inline(never)]
fn on_runtime_heap<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(*mut SlotHeader);
    impl Drop for Restore {
        #[inline(always)]
        fn drop(&mut self) {
            HEAP.set(self.0);
        }
    }
    let _restore = Restore(use_heap(std::ptr::null_mut()));
    f()
}

/// The PE that this thread is the rank thread of (its unique number), or 0.
#[inline(always)]
pub(crate) fn pe_of_thread() -> u32 {
    PE.get()
}

/// Makes the calling thread the rank thread of a PE (0: of none any more).
pub(crate) fn set_pe_of_thread(pe: u32) {
    PE.set(pe);
}

/// Says on stderr that the running rank's heap is full. Called inside the allocator: it allocates
/// nothing.
pub(crate) fn report_full_heap(asked: usize, size: usize) {
    let slot = HEAP.get();
    if slot.is_null() {
        return;
    }
    // SAFETY: non-null means that the slot's rank runs on this thread.
    let rank = unsafe { (*slot).rank.get() };
    crate::launch::crash::say(format_args!(
        "rank {rank}: its heap is full: {asked} more bytes do not fit into a slot of {} MiB; \
         raise --slot (VRT_SLOT)",
        size >> 20
    ));
}

/// # Safety
/// `slot` is the slot in use on this thread, `align` a power of two.
#[inline]
unsafe fn allocate(slot: *mut SlotHeader, align: usize, size: usize) -> *mut c_void {
    // SAFETY: the slot in use belongs to this thread's PE; references end before returning.
    unsafe {
        if !(*slot).remote.is_empty() {
            drain_remote(slot);
        }
        (*(*slot).heap.get()).allocate(align, size).cast()
    }
}

/// Frees what others have freed.
///
/// # Safety
/// The calling PE owns the slot.
#[cold]
pub(crate) unsafe fn drain_remote(slot: *mut SlotHeader) {
    // SAFETY: the owner may touch the heap; the list holds live blocks of it.
    unsafe { (*slot).remote.drain(|block| (*(*slot).heap.get()).free(block)) }
}

/// Allocates from a slot's heap that is not the running rank's (the PE's pool of payloads).
///
/// # Safety
/// The calling PE owns the slot.
pub(crate) unsafe fn allocate_in(slot: *mut SlotHeader, size: usize) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe { allocate(slot, 16, size).cast() }
}

/// Frees a block of the arena, whoever owns its slot.
///
/// # Safety
/// `block` is live in a slot of the arena and nobody uses it.
#[inline]
pub(crate) unsafe fn free_in_arena(block: *mut u8) {
    let Some(arena) = Arena::current() else { return };
    let slot = arena.header(arena.slot_at(block as usize));
    let pe = PE.get();
    // SAFETY: the owner frees directly; everybody else through the list.
    unsafe {
        if pe != 0 && (*slot).is_owned_by(pe) {
            (*(*slot).heap.get()).free(block);
        } else {
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let slot = HEAP.get();
    // SAFETY: a non-null word is the slot of the rank that runs here.
    unsafe { if slot.is_null() { __libc_malloc(size) } else { allocate(slot, 16, size) } }
}

/// C `calloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let slot = HEAP.get();
    if slot.is_null() {
        // SAFETY: libc's own.
        return unsafe { __libc_calloc(count, size) };
    }
    let Some(bytes) = count.checked_mul(size) else { return no_memory() };
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `block` is null or live; where it lies says whose it is.
    unsafe {
        if block.is_null() {
            return malloc(size);
        }
        let slot = HEAP.get();
        if !Arena::contains(block as usize) {
            // libc's block stays libc's.
            return __libc_realloc(block, size);
        }
        let home = Arena::current()
            .map_or(std::ptr::null_mut(), |arena| arena.header(arena.slot_at(block as usize)));
        if home == slot {
            return (*(*slot).heap.get()).reallocate(block.cast(), size).cast();
        }
        let moved = malloc(size);
        if !moved.is_null() {
            let old = heap::usable_size(block.cast());
            std::ptr::copy_nonoverlapping(block.cast::<u8>(), moved.cast(), old.min(size));
            free_in_arena(block.cast());
        }
        moved
    }
}

/// C `reallocarray`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
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
#[unsafe(no_mangle)]
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    let slot = HEAP.get();
    let align = align.max(16).next_power_of_two();
    // SAFETY: as in `malloc`.
    unsafe {
        if slot.is_null() { __libc_memalign(align, size) } else { allocate(slot, align, size) }
    }
}

/// POSIX `posix_memalign`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: as in `memalign`.
    unsafe { memalign(align, size) }
}

/// The old `valloc`: aligned to a page.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: as in `memalign`.
    unsafe { memalign(4096, size) }
}

/// The old `pvalloc`: whole pages.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: a live block; libc keeps its chunks' sizes in the same place, with two flag words of
    // overhead less one that the successor lends, as dlmalloc does (libc's malloc descends from it).
    unsafe {
        if Arena::contains(block as usize) {
            heap::usable_size(block.cast())
        } else {
            libc_usable_size(block)
        }
    }
}

/// libc's own `malloc_usable_size`, which has no second name.
fn libc_usable_size(block: *mut c_void) -> usize {
    type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;
    static REAL: crate::arena::interpose::Real =
        crate::arena::interpose::Real::new(c"malloc_usable_size");
    // SAFETY: the symbol has this type; `block` is libc's.
    unsafe { std::mem::transmute::<*mut c_void, UsableSize>(REAL.get())(block) }
}

/// Makes the calling PE (by unique number) the owner of a slot.
///
/// # Safety
/// No other PE owns or uses the slot.
pub(crate) unsafe fn own(slot: *mut SlotHeader, pe: u32) {
    // SAFETY: a header in the mapped arena.
    unsafe { (*slot).owner.store(pe, Ordering::Release) };
}
