//! A ring between two PEs as it lies in control memory; see `rings`.

use std::sync::atomic::AtomicU32;

use vrt_shm::Ring;

/// Cells of a ring between two PEs.
pub(crate) const RING_CELLS: usize = 256;
/// Bytes of payload space beside them.
pub(crate) const RING_BYTES: usize = 128 << 10;

/// A ring and who uses it; valid when zeroed (nobody does).
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Link {
    /// The sender.
    pub(super) from: AtomicU32,
    /// In the receiver's list: the next ring's number plus 1, or 0.
    pub(super) next: AtomicU32,
    pub(super) ring: Ring<RING_CELLS, RING_BYTES>,
}
