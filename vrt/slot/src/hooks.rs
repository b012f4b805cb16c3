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

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use vrt_load::thread_pointer;

use crate::{Arena, SlotHeader, forked, heap, image, outside};

thread_local! {
    static HEAP: Cell<*mut SlotHeader> = const { Cell::new(std::ptr::null_mut()) };
    static PE: Cell<u32> = const { Cell::new(0) };
    /// The thread pointer of the PE's loop.
    static OF_LOOP: Cell<usize> = const { Cell::new(0) };
}

/// The slot whose heap serves this thread now; null: libc's heap.
#[inline(always)]
pub fn heap_in_use() -> *mut SlotHeader {
    HEAP.get()
}

/// Whether a rank runs on this thread now, outside of the runtime.
#[inline(always)]
pub fn in_rank() -> bool {
    !heap_in_use().is_null()
}

/// The rank that runs on this thread.
pub fn current_rank() -> Option<u32> {
    let slot = heap_in_use();
    // SAFETY: the heap in use is the running rank's.
    (!slot.is_null()).then(|| unsafe { (*slot).rank.get() })
}

/// The PE, by its unique number, and the rank running on this thread.
pub fn running_rank() -> Option<(u32, u32)> {
    Some((pe_of_thread(), current_rank()?))
}

/// Selects the heap to use from now on; returns the previous one.
///
/// # Safety
/// It is null, which means the process's, or the header of a slot whose heap no other thread uses as long as this
/// thread does.
#[inline(always)]
pub unsafe fn use_heap(slot: *mut SlotHeader) -> *mut SlotHeader {
    HEAP.replace(slot)
}

/// The thread of a PE's loop, for functions that set its thread pointer: there the compiler might use the address of a
/// thread-local for one thread pointer with another.
#[derive(Clone, Copy)]
pub(crate) struct LoopThread {
    /// Its own thread pointer.
    pub pointer: usize,
    /// The PE.
    pub pe: u32,
    /// The distance from a thread pointer to the word that selects the heap, modulo 2^64.
    heap: usize,
}

impl LoopThread {
    /// The thread on which the calling rank runs, whatever its thread pointer is.
    #[inline(never)]
    pub fn of_rank() -> LoopThread {
        LoopThread { pointer: OF_LOOP.get(), ..LoopThread::find() }
    }

    /// The calling thread, which has its own thread pointer.
    #[inline(never)]
    pub fn find() -> LoopThread {
        let pointer = thread_pointer::get();
        let heap = HEAP.with(|word| std::ptr::from_ref(word).addr());
        LoopThread { pointer, pe: pe_of_thread(), heap: heap.wrapping_sub(pointer) }
    }

    /// [`use_heap`] for this thread pointer.
    ///
    /// # Safety
    /// It is the thread's own, or that of an image whose rank runs on the thread, or is about to.
    #[inline(always)]
    pub unsafe fn use_heap(self, pointer: usize, slot: *mut SlotHeader) {
        // SAFETY: the thread blocks of images look like the thread's own, and nobody else uses this one.
        unsafe { (pointer.wrapping_add(self.heap) as *mut *mut SlotHeader).write(slot) }
    }
}

/// Where a PE's thread keeps the word that selects the heap, for another thread that samples whether a rank's code or
/// the runtime's runs there.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    word: usize,
    /// The distance from a thread pointer to that word, modulo 2^64.
    offset: usize,
}

impl Watched {
    /// The calling thread, which has its own thread pointer.
    pub fn this_thread() -> Watched {
        let LoopThread { pointer, heap, .. } = LoopThread::find();
        Watched { word: pointer.wrapping_add(heap), offset: heap }
    }

    /// Whether a rank's code runs there, as far as reading changing memory can tell.
    ///
    /// # Safety
    /// The thread still exists, and so does the arena.
    pub unsafe fn runs_rank(self) -> bool {
        // SAFETY: words of a thread that lives, of a header in the arena, and of the image of its slot: they stay
        // mapped. Each is written whole, and what one that has just changed says is only counted.
        unsafe {
            let slot = (self.word as *const *const SlotHeader).read_volatile();
            if slot.is_null() {
                return false;
            }
            // A rank with an image has a copy of the word, which is the one that its calls change.
            match (*slot).thread_pointer.as_ptr().read_volatile() {
                0 => true,
                pointer => (pointer.wrapping_add(self.offset) as *const usize).read_volatile() != 0,
            }
        }
    }
}

/// Runs `f`, a call of libc, on the PE's outside heap: a rank may hold what it allocates. A rank's own libc keeps
/// nothing for others: its allocations belong to the rank. `f` must not suspend the rank.
#[inline(always)]
pub fn outside_heap<R>(f: impl FnOnce() -> R) -> R {
    if image::has_libc() && image::base_of_running().is_some() {
        return f();
    }
    runtime_heap(|| outside::within(f))
}

/// Runs `f` on the runtime's heap, whose memory a rank must not keep. `f` must not suspend the rank.
#[inline(always)]
pub fn runtime_heap<R>(f: impl FnOnce() -> R) -> R {
    let result = on_runtime_heap(f);
    crate::check::wipe_below();
    result
}

/// Never inlined, so that nothing of `f` remains in the rank's own frames.
#[inline(never)]
fn on_runtime_heap<R>(f: impl FnOnce() -> R) -> R {
    struct RestoreHeap(*mut SlotHeader);
    impl Drop for RestoreHeap {
        #[inline(always)]
        fn drop(&mut self) {
            HEAP.set(self.0);
        }
    }
    let _restore = RestoreHeap(HEAP.replace(std::ptr::null_mut()));
    f()
}

/// The PE whose rank thread this is (its unique number), or 0.
#[inline(always)]
pub fn pe_of_thread() -> u32 {
    PE.get()
}

/// Makes the calling thread the rank thread of a PE (0: of none any more).
pub fn set_pe_of_thread(pe: u32) {
    PE.set(pe);
    OF_LOOP.set(thread_pointer::get());
}

/// More bytes than any machine has.
const MOST: usize = 1 << 46;

/// Reports on stderr that the running rank's heap is full. Called inside the allocator: it allocates nothing.
pub(crate) fn report_full_heap(asked: usize, size: usize) {
    let slot = HEAP.get();
    if slot.is_null() {
        return;
    }
    // SAFETY: non-null means that the slot's rank runs on this thread.
    let rank = unsafe { (*slot).rank.get() };
    // A program may try sizes, and look what it gets: what no machine has is not reported, and the same
    // rank not twice.
    static LAST: AtomicU32 = AtomicU32::new(u32::MAX);
    if asked > MOST || LAST.swap(rank, Ordering::Relaxed) == rank {
        return;
    }
    crate::report::say(format_args!(
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

/// This process was forked from a PE, with which it shares the arena: it allocates nothing there, and blocks that it
/// frees are left unchanged.
pub(crate) fn leave_to_parent() {
    forked::set_copy(true);
    PE.set(0);
    outside::leave_to_parent();
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
                return (*(*slot).heap.get()).reallocate(block.cast(), size).cast();
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
    static REAL: crate::interpose::Real = crate::interpose::Real::new(c"malloc_usable_size");
    // SAFETY: the symbol has this type; `block` is libc's.
    unsafe { std::mem::transmute::<*mut c_void, UsableSize>(REAL.get())(block) }
}

/// Makes the calling PE (by unique number) the owner of a slot.
///
/// # Safety
/// No other PE owns or uses the slot.
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
