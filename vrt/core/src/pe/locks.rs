//! Ranks that wait for locks and conditions of their process, from the point of view of a PE's
//! loop.

/// The registry of ranks that wait for locks and conditions of their process. Each call concerns the PE of the calling
/// thread.
pub trait Locks: Sync {
    /// The calling thread runs a PE from now on.
    fn begin(&self);

    /// The PE with this unique number has ended, with the ranks that waited on it.
    fn end(&self, uid: u32);

    /// The PE, with `parked` parked ranks, is about to sleep: wakes the ranks whose wake-up it has not yet
    /// seen, and ensures that later wake-ups are seen.
    fn before_sleep(&self, parked: u32);

    /// Removes the ranks of the PE with this unique number that wait for words in the given buckets
    /// (`bucket`; one bit of `words` each): PEs of this node have changed some of these words.
    fn take_signalled(&self, uid: u32, words: u64) -> Vec<u32>;
}

/// How many ranks of a PE wait for locks and conditions.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtLocks {
    /// All of them.
    pub blocked: u32,
    /// Those that are parked (`std::thread::park`).
    pub parked: u32,
}
