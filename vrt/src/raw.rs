//! Raw handles: numbers that stand for datatypes and operations.
//!
//! The names of the `mpi` crate's `raw` module, so that generic code that asks for them compiles, and
//! code that hands a communicator on as a number. There is no C library here that would understand
//! the numbers.

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

/// Something whose raw handle can be changed in its place.
///
/// # Safety
/// The pointer is to the handle that [`AsRaw`] gives.
pub unsafe trait AsRawMut: AsRaw {
    /// Where the handle is.
    fn as_raw_mut(&mut self) -> *mut <Self as AsRaw>::Raw;
}

/// What a raw handle stands for, again.
///
/// # Examples
///
/// ```
/// use vrt::topology::SimpleCommunicator;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let pair = world.duplicate();
///     let number = pair.as_raw();
///     // SAFETY: the number is that of a communicator of this rank which lives.
///     let same = unsafe { SimpleCommunicator::from_raw(number) };
///     assert_eq!(same.compare(&pair), vrt::topology::CommunicatorRelation::Identical);
/// });
/// ```
pub trait FromRaw: AsRaw {
    /// The value that the handle stands for. It shares it with all others that do: what it stands for
    /// is freed when the last of them is dropped.
    ///
    /// # Safety
    /// The handle is that of a value of the same type which lives, in the same rank.
    unsafe fn from_raw(handle: <Self as AsRaw>::Raw) -> Self;
}

/// A type that lies in memory like its raw handle.
///
/// # Safety
/// Nothing here relies on it.
pub unsafe trait MatchesRaw: AsRaw {}

/// The traits of this module.
pub mod traits {
    pub use super::{AsRaw, AsRawMut, FromRaw, MatchesRaw};
}
