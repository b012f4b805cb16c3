//! The type of each function, under the function's name: whoever implements one has it compared
//! with the table.
//!
//! ```
//! # #![allow(non_snake_case)]
//! use std::ffi::c_int;
//! use vrt_abi::{signatures, types::MPI_Comm};
//!
//! unsafe extern "C-unwind" fn MPI_Comm_size(_comm: MPI_Comm, size: *mut c_int) -> c_int {
//!     // SAFETY: the caller has room for a number.
//!     unsafe { *size = 1 };
//!     0
//! }
//! const _: signatures::MPI_Comm_size = MPI_Comm_size;
//! ```
//!
//! Nothing can be compared with [`MPI_Pcontrol`] as long as functions of Rust have no variable
//! arguments. One that takes the first argument alone may be called in its place: on x86-64 the
//! caller takes its arguments away itself.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_double, c_int, c_void};

use crate::types::*;

include!(concat!(env!("OUT_DIR"), "/signatures.rs"));
