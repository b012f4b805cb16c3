//! The types of the interface, under their names in C.
//!
//! A handle is a number as large as a pointer. Each type of handle is a type of its own here, so
//! that none is taken for another. Callbacks are `None` where C has a null pointer. Of other
//! numbers that stand for one, such as [`MPI_COMM_DUP_FN`](crate::constants::MPI_COMM_DUP_FN), make
//! a number before anything else: they must not be called.

#![allow(non_camel_case_types, non_snake_case)]

use std::ffi::{c_int, c_void};

/// Fortran's default INTEGER. The C header of the interface has no name for it.
pub type MPI_Fint = c_int;

/// The type of a handle.
macro_rules! handle {
    { $name:ident $about:literal } => {
        #[doc = $about]
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// The handle as a number.
            pub usize,
        );

        impl $name {
            /// The name of the handle, if it is one that exists from the beginning.
            pub fn name(self) -> Option<&'static str> {
                crate::constant_name(stringify!($name), self.0 as i64)
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/types.rs"));
