//! Whether Rust's allocations in ranks reach the slots at all.
//!
//! They do by way of `malloc`. A program's `#[global_allocator]` may take memory from the system by
//! itself; then what ranks own lies in the process, and they cannot move.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::Arena;

const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
const ANOTHER: u8 = 2;

static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Called by a rank before its program begins: looks where what it allocates comes to lie.
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
