//! Clearing the stack below the caller, where earlier calls have left addresses.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the checking mode for stacks is on (`check`).
pub(crate) static ON: AtomicBool = AtomicBool::new(false);

/// In the checking mode, clears the stack below the caller. To be called when the runtime returns
/// to a rank.
#[inline(always)]
pub fn wipe_below() {
    if ON.load(Ordering::Relaxed) {
        wipe_deep();
    }
}

/// Bytes of stack that [`wipe`] clears: more than the frames of a call that suspends its rank, which take a few hundred
/// bytes in optimised code. Each page of it that the rank has not touched otherwise is an additional page for the rank.
const OF_A_CALL: usize = if cfg!(debug_assertions) { DEEP } else { 2 << 10 };

/// More than the depth of the runtime's own calls, less than the smallest stack.
const DEEP: usize = 32 << 10;

/// Clears the stack below the caller, where earlier calls have left addresses that would be taken for references of the
/// rank: as far as the frames of a suspending call reach.
#[cold]
#[inline(never)]
pub fn wipe() {
    black_box(&mut [0u8; OF_A_CALL]);
}

#[cold]
#[inline(never)]
fn wipe_deep() {
    black_box(&mut [0u8; DEEP]);
}
