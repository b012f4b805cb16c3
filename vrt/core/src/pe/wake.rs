//! Waking a rank, from wherever.

use crate::pe::idle;
use crate::pe::inject::Injector;
use crate::pe::thread::{OUTSIDE, with, with_in_loop};
use vrt_slot::hooks::{self, in_rank};

/// Wakes a rank of the PE with this unique number, from any thread.
pub(crate) fn wake_from_outside(uid: u32, rank: u32) {
    if hooks::pe_of_thread() == uid && try_wake(rank) {
        hooks::runtime_heap(idle::interrupt_sleep);
        return;
    }
    hooks::runtime_heap(|| Injector::leave_for(uid, rank));
}

/// Wakes a rank of this thread's PE, if the PE's state can be used now.
fn try_wake(rank: u32) -> bool {
    if in_rank() {
        with(|pe| pe.engine.notify(rank, None));
    } else if OUTSIDE.get() {
        with_in_loop(|pe| pe.engine.notify(rank, None));
    } else {
        return false;
    }
    true
}
