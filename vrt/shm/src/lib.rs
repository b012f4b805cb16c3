//! The lock-free parts of `vrt` that live in memory shared by several processes.
//!
//! | type | between | protocol |
//! |---|---|---|
//! | [`Ring`] | one producer PE, one consumer PE | fixed cells published by a sequence word, long payloads in a byte ring next to them |
//! | [`Doorbell`] | one sleeping PE, any number of wakers | announce, fence, look again, sleep on a futex |
//! | [`Claims`] | one owner of long work, one helper | both claim pieces from their ends, by one word |
//! | [`RemoteFreeList`] | one owner, any number of freeing threads | Treiber stack, emptied as a whole by the owner |
//! | [`Ending`] | all processes of a job | one word, set once |
//! | [`Lease`] | PEs that use a rank's memory, the PE that moves it to another node | one word: a count, and where the memory is |
//! | [`Location`] | the PE that has a rank, those that send to it | one word: a PE and a version, which only grows |
//!
//! Everything here is `#[repr(C)]`, valid when zeroed, and contains no pointer into a process's private memory, so that
//! a value may be placed in a shared mapping. Compiled with `--cfg loom` the atomics are those of the loom model
//! checker; the tests in `tests/loom.rs` explore every interleaving of the protocols above.

#![warn(clippy::multiple_unsafe_ops_per_block)]

mod claims;
mod doorbell;
mod ending;
mod free_list;
mod lease;
mod location;
mod ring;

pub use claims::{Claims, MOST_PIECES};
#[cfg(not(loom))]
pub use doorbell::register;
pub use doorbell::{Doorbell, Sleep};
pub use ending::Ending;
pub use free_list::RemoteFreeList;
pub use lease::{Begun, KeptOff, Lease, Leased};
pub use location::{Learned, Location, Place};
pub use ring::{CELL_PAYLOAD, Cell, CellData, Consumer, Payload, Producer, Ring};

/// The atomics in use: the standard library's, or loom's with `--cfg loom`.
mod sync {
    #[cfg(loom)]
    pub(crate) use loom::{
        cell::UnsafeCell,
        sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
    };

    #[cfg(not(loom))]
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

    /// `std::cell::UnsafeCell` with loom's closure interface.
    #[cfg(not(loom))]
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    #[cfg(not(loom))]
    impl<T> UnsafeCell<T> {
        #[inline(always)]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}
