//! Waiting for locks of `parking_lot`: its own, those of `dashmap` and of other crates based on `parking_lot_core`.
//!
//! A waiting thread is in a queue with a record, which contains the word that it waits at. The record is a
//! thread-local, so the ranks of a PE would share one, and only one of them could wait. But if that thread-local has
//! been destroyed, as at the end of a thread, `parking_lot_core` makes a record on the stack. So a PE's thread creates
//! it and destroys it when the PE begins. Ranks then wait at words on their own stacks, and are suspended as at any
//! other lock (`futex`).
//!
//! Another version of `parking_lot_core` has its own thread-local. A rank that waits by that version blocks its PE; if
//! nothing except the PE's ranks could wake it, the job ends.

use parking_lot_core::DEFAULT_PARK_TOKEN;

use vrt_slot::foreign::has_foreign_threads;
use vrt_slot::gone_locals::destroy_what_it_makes;
use vrt_slot::hooks;
use vrt_slot::report::{STATUS_RUNTIME, end_job, say};

/// Has the ranks of the calling thread, which is a PE's, wait for such locks by records on their stacks.
pub(super) fn wait_on_stacks() {
    static KEY: u8 = 0;
    let key = (&raw const KEY).addr();
    let wait_for_nothing = || {
        // SAFETY: the key is the address of a static of this function's, and no closure panics or parks.
        let _ = unsafe {
            parking_lot_core::park(key, || false, || {}, |_, _| {}, DEFAULT_PARK_TOKEN, None)
        };
    };
    // SAFETY: the condition of `park` is false, so the record is in no queue.
    unsafe { destroy_what_it_makes(wait_for_nothing) };
}

/// The running rank is about to block its PE for a word of the thread's own. Where there are no threads, who
/// should wake it is another rank of the PE, which then cannot.
pub(super) fn refuse_without_threads(deadline: Option<u64>) {
    if deadline.is_none() && !has_foreign_threads() {
        let rank = hooks::running_rank().map_or(0, |(_, rank)| rank);
        say(format_args!(
            "deadlock: rank {rank} waits for a lock by a thread-local of its PE (an old parking_lot does so), \
             of which the ranks of the PE have one together, so nobody can wake it; with \
             --private-thread-locals each has its own"
        ));
        end_job(STATUS_RUNTIME);
    }
}
