//! Blocks of a heap that were freed by a thread that does not own the heap.
//!
//! A Treiber stack threaded through the blocks themselves. Only `push` and "take everything"
//! exist, so the ABA problem of a general pop cannot arise.

use crate::sync::{AtomicPtr, Ordering};

/// A list of freed blocks; valid when zeroed (empty).
#[derive(Debug)]
#[repr(C)]
pub struct RemoteFreeList {
    head: AtomicPtr<u8>,
}

impl RemoteFreeList {
    /// An empty list.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        RemoteFreeList { head: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// An empty list.
    #[cfg(loom)]
    pub fn new() -> Self {
        RemoteFreeList { head: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Whether no block waits; a cheap check whose result may be stale at once.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Puts a block on the list.
    ///
    /// # Safety
    /// `block` is a live allocation of at least 8 bytes, aligned to 8, that is not used any more;
    /// it is mapped at the same address in every process that shares the list.
    pub unsafe fn push(&self, block: *mut u8) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller gives the block away, so its first word is ours.
            unsafe { block.cast::<*mut u8>().write(head) };
            match self.head.compare_exchange_weak(head, block, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the whole list and passes each block to `free`. Only the heap's owner may call this.
    pub fn drain(&self, mut free: impl FnMut(*mut u8)) {
        let mut block = self.head.swap(std::ptr::null_mut(), Ordering::Acquire);
        while !block.is_null() {
            // SAFETY: `push` stored the next pointer there before it published the block.
            let next = unsafe { block.cast::<*mut u8>().read() };
            free(block);
            block = next;
        }
    }
}

impl Default for RemoteFreeList {
    fn default() -> Self {
        Self::new()
    }
}
