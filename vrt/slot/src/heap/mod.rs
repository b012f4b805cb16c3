//! The heap of a slot, and the format in which its allocator keeps it.
//!
//! Invariants:
//! - H1. A heap's two ranges are its own: [`SlotHeader::prepare`](crate::SlotHeader::prepare) gives it those of its slot.
//!   What [`SlotHeap::used`] returns of them consists of dlmalloc's segments.
//! - H2. In front of each block is dlmalloc's size word, and what follows an allocated chunk is another one, or a mark.
//!
//! | file | subject |
//! |---|---|
//! | `chunk` | dlmalloc's chunks: the length of a block, what is in use, what must be kept |
//! | `slot_heap` | dlmalloc over a slot's two ranges |

pub(crate) mod chunk;
mod slot_heap;

pub use chunk::usable_size;
pub use slot_heap::SlotHeap;
