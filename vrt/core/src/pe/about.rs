//! What may be asked of the thread's PE at any point: while its state is in use, and in a signal handler.

use std::cell::Cell;

use vrt_slot::SlotHeader;

thread_local! {
    /// What is known of the PE.
    pub(super) static ABOUT: Cell<Option<About>> = const { Cell::new(None) };
    /// The rank that was resumed last.
    pub(super) static RAN_LAST: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// What does not change of a PE.
#[derive(Clone, Copy)]
pub(super) struct About {
    pub(super) pool: *mut SlotHeader,
    pub(super) id: u32,
}

/// The slot of the payload pool of this thread's PE, or null; may be called at any point.
pub fn pool_of_thread() -> *mut SlotHeader {
    ABOUT.get().map_or(std::ptr::null_mut(), |about| about.pool)
}

/// The rank and PE of this thread, for messages; may be called at any point.
pub fn whereabouts() -> Option<(u32, u32)> {
    ABOUT.get().map(|about| (RAN_LAST.get(), about.id))
}
