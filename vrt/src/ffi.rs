//! The types of raw handles.
#![allow(non_camel_case_types, reason = "the names that C gives them")]

/// Stands for a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MPI_Datatype(pub(crate) usize);

/// Stands for a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MPI_Comm(pub(crate) u32);
