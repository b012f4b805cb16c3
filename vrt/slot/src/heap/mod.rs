//! The heap of a slot, and the format in which its allocator keeps it.
//!
//! | file | subject |
//! |---|---|
//! | `chunk` | dlmalloc's chunks: the length of a block, what is in use, what must be kept |
//! | `slot_heap` | dlmalloc over a slot's two ranges |

pub(crate) mod chunk;
mod slot_heap;

pub use chunk::usable_size;
pub use slot_heap::SlotHeap;
