//! Whether Rust's allocations in ranks come from the slots.
//!
//! They do if they use `malloc`. A program's `#[global_allocator]` may get memory from the system
//! directly; then the allocations of ranks lie in the process, and ranks cannot move.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::arena::Arena;

const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
const ANOTHER: u8 = 2;

static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Called by a rank before its program begins: checks where its allocations lie.
pub fn look() {
    if FOUND.load(Ordering::Relaxed) != UNKNOWN {
        return;
    }
    let probe = std::hint::black_box(Box::new(0_u64));
    let is_ours = Arena::contains((&raw const *probe) as usize);
    FOUND.store(if is_ours { OURS } else { ANOTHER }, Ordering::Relaxed);
}

/// Whether memory of ranks comes from another allocator.
pub fn is_another() -> bool {
    FOUND.load(Ordering::Relaxed) == ANOTHER
}
