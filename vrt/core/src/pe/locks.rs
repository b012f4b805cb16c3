//! Ranks that wait for locks and conditions of their process, from the point of view of a PE's
//! loop.

/// The registry of ranks that wait for locks and conditions of their process. Each call concerns the PE of the calling
/// thread.
pub trait Locks: Sync {
    /// The calling thread is a PE's from now on.
    fn begin(&self);

    /// The PE with this unique number is gone, with the ranks that waited on it.
    fn end(&self, uid: u32);

    /// The PE, so many ranks of which are parked, is about to sleep: wakes ranks that somebody has woken
    /// unseen, and sees to it that a wake-up is seen from now on.
    fn before_sleep(&self, parked: u32);

    /// Takes out the ranks of the PE with this unique number that wait for words in these buckets
    /// (`bucket`), of which a bit is set for each: PEs of this node have changed some.
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
