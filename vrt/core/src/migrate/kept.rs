//! Encoded states of ranks, as they lie in a PE's pool.

use std::mem::MaybeUninit;

use crate::pe::Core;
use vrt_slot::{hooks, live};

/// Bytes rounded up to whole lines: what is sent has to consist of such.
pub(super) fn whole_lines(len: usize) -> usize {
    len.next_multiple_of(live::LINE)
}

/// The encoded state of a rank, written directly into the block of its PE's pool from which it is decoded in this node,
/// or sent to another one. The block goes with the rank; if it is dropped in a rank that has stayed, it is freed. (An
/// address, not a pointer: it may lie in a rank's future.)
#[derive(Debug)]
pub struct KeptState {
    pub(super) at: usize,
    pub(super) len: usize,
}

impl KeptState {
    /// A block of this many bytes, if available; all of them must be [written](Self::write).
    pub fn allocate(core: &mut Core, len: usize) -> Option<KeptState> {
        // SAFETY: the pool of a PE is its own.
        let block = unsafe { hooks::allocate_in(core.pool, whole_lines(len)) };
        (!block.is_null()).then_some(KeptState { at: block as usize, len })
    }

    /// The block, for writing.
    pub fn write(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the block that `allocate` has got, as long and nobody else's.
        unsafe { std::slice::from_raw_parts_mut(self.at as *mut MaybeUninit<u8>, self.len) }
    }

    /// The written bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block that `allocate` has got, as long and nobody else's; memory of the arena, which is a file, has
        // some contents from the beginning.
        unsafe { std::slice::from_raw_parts(self.at as *const u8, self.len) }
    }
}

impl Drop for KeptState {
    fn drop(&mut self) {
        // SAFETY: the block that `allocate` has got, which nobody uses any more.
        unsafe { hooks::free_in_arena(self.at as *mut u8) };
    }
}
