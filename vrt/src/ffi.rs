//! The types of raw handles.
#![allow(non_camel_case_types, reason = "the names that C gives them")]

/// Stands for a datatype.
///
/// # Examples
///
/// ```
/// use vrt::ffi::MPI_Datatype;
/// use vrt::traits::*;
///
/// let number: MPI_Datatype = f64::equivalent_datatype().as_raw();
/// assert_ne!(number, f32::equivalent_datatype().as_raw());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MPI_Datatype(pub(crate) usize);

/// Stands for a communicator.
///
/// # Examples
///
/// ```
/// use vrt::ffi::MPI_Comm;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let number: MPI_Comm = world.as_raw();
///     assert_ne!(number, world.duplicate().as_raw());
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MPI_Comm(pub(crate) u32);
