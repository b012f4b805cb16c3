//! Raw handles: numbers that stand for datatypes and operations.
//!
//! The names of the `mpi` crate's `raw` module, so that generic code that asks for them compiles.
//! There is no C library here that would understand the numbers.

/// Something that a raw handle stands for.
///
/// # Safety
/// The handle stands for this value as long as it lives.
pub unsafe trait AsRaw {
    /// The handle's type.
    type Raw;

    /// The handle.
    fn as_raw(&self) -> Self::Raw;
}

// SAFETY: the value's own handle.
unsafe impl<T: AsRaw> AsRaw for &T {
    type Raw = T::Raw;

    fn as_raw(&self) -> T::Raw {
        (**self).as_raw()
    }
}

/// A type that lies in memory like its raw handle.
///
/// # Safety
/// Nothing here relies on it.
pub unsafe trait MatchesRaw: AsRaw {}

/// The traits of this module.
pub mod traits {
    pub use super::{AsRaw, MatchesRaw};
}
