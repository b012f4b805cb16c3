//! The word of a thread that says which heap serves it, and so which rank runs there; and the PE of the thread.

use std::cell::Cell;

use vrt_load::thread_pointer;

use crate::arena::SlotHeader;
use crate::wipe::wipe_below;

thread_local! {
    pub(crate) static HEAP: Cell<*mut SlotHeader> = const { Cell::new(std::ptr::null_mut()) };
    pub(crate) static PE: Cell<u32> = const { Cell::new(0) };
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

/// The slot of the rank that runs on this thread.
#[inline(always)]
pub(crate) fn running() -> Option<&'static SlotHeader> {
    // SAFETY: S3, and S1.
    unsafe { heap_in_use().as_ref() }
}

/// The rank that runs on this thread.
pub fn current_rank() -> Option<u32> {
    running().map(|slot| slot.rank.get())
}

/// The PE, by its unique number, and the rank running on this thread.
pub fn running_rank() -> Option<(u32, u32)> {
    Some((pe_of_thread(), current_rank()?))
}

/// Selects the heap to use from now on; returns the previous one.
///
/// # Safety
/// It is null, which means the process's, or the header of a slot that the thread's PE owns, whose rank runs here from
/// now on, or is the one that calls this.
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
    pub(crate) fn of_rank() -> LoopThread {
        LoopThread { pointer: OF_LOOP.get(), ..LoopThread::find() }
    }

    /// The calling thread, which has its own thread pointer.
    #[inline(never)]
    pub(crate) fn find() -> LoopThread {
        let pointer = thread_pointer::get();
        let heap = HEAP.with(|word| std::ptr::from_ref(word).addr());
        LoopThread { pointer, pe: pe_of_thread(), heap: heap.wrapping_sub(pointer) }
    }

    /// [`use_heap`] for this thread pointer.
    ///
    /// # Safety
    /// It is the thread's own, or that of an image whose rank runs on the thread, or is about to; and as for
    /// [`use_heap`].
    #[inline(always)]
    pub(crate) unsafe fn use_heap(self, pointer: usize, slot: *mut SlotHeader) {
        // SAFETY: `Plan::fill` lays out thread blocks of images like the thread's own, so this is `HEAP` in either.
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
        // SAFETY: words of a thread that exists, says the caller, of a header (S1) and of the image of its slot (S1).
        // Each is written whole, and what one that has just changed says is only counted.
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

/// Runs `f` on the runtime's heap, whose memory a rank must not keep. `f` must not suspend the rank.
#[inline(always)]
pub fn runtime_heap<R>(f: impl FnOnce() -> R) -> R {
    let result = on_runtime_heap(f);
    wipe_below();
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
///
/// # Safety
/// No other thread is that of this PE: what its slots contain is changed without a lock.
pub unsafe fn set_pe_of_thread(pe: u32) {
    PE.set(pe);
    OF_LOOP.set(thread_pointer::get());
}
