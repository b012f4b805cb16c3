//! Raw handles: numbers that stand for datatypes and operations.
//!
//! The names of the `mpi` crate's `raw` module, so that generic code that asks for them compiles, and
//! code that hands a communicator on as a number. There is no C library here that would understand
//! the numbers.

/// Something that a raw handle stands for.
///
/// # Safety
/// The handle stands for this value as long as it lives.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(1, |world| {
///     assert_eq!(world.as_raw(), world.clone().as_raw());
///     assert_ne!(world.as_raw(), world.duplicate().as_raw());
/// });
/// ```
pub unsafe trait AsRaw {
    /// The handle's type.
    type Raw;

    /// The handle.
    ///
    /// Example: [`AsRaw`].
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
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// struct File(i32);
///
/// // SAFETY: the number stands for the file as long as it is open.
/// unsafe impl AsRaw for File {
///     type Raw = i32;
///
///     fn as_raw(&self) -> i32 {
///         self.0
///     }
/// }
///
/// // SAFETY: the number that `as_raw` gives.
/// unsafe impl AsRawMut for File {
///     fn as_raw_mut(&mut self) -> *mut i32 {
///         &raw mut self.0
///     }
/// }
///
/// let mut file = File(1);
/// // SAFETY: the pointer is to the number of `file`.
/// unsafe { *file.as_raw_mut() = 2 };
/// assert_eq!(file.as_raw(), 2);
/// ```
pub unsafe trait AsRawMut: AsRaw {
    /// Where the handle is.
    ///
    /// Example: [`AsRawMut`].
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
    /// Example: [`FromRaw`].
    ///
    /// # Safety
    /// The handle is that of a value of the same type which lives, in the same rank.
    unsafe fn from_raw(handle: <Self as AsRaw>::Raw) -> Self;
}

/// A type that lies in memory like its raw handle.
///
/// # Safety
/// Nothing here relies on it.
///
/// # Examples
///
/// ```
/// use vrt::datatype::UserDatatype;
/// use vrt::ffi::MPI_Datatype;
/// use vrt::traits::*;
///
/// fn record<D>(types: &[D; 2]) -> UserDatatype
/// where
///     D: UncommittedDatatype + MatchesRaw<Raw = MPI_Datatype>,
/// {
///     UserDatatype::structured(&[1, 1], &[0, 8], types)
/// }
///
/// let types = [f64::equivalent_datatype(), u8::equivalent_datatype()];
/// assert_eq!(record(&types).as_ref().size(), 9);
/// ```
pub unsafe trait MatchesRaw: AsRaw {}

/// The traits of this module.
pub mod traits {
    pub use super::{AsRaw, AsRawMut, FromRaw, MatchesRaw};
}
