//! The binary interface of MPI 5.0 as one table, `abi.toml`, and what is made of it.
//!
//! The build script makes everything that has to agree: the [header](HEADER) and the
//! [stub library](STUB) that programs are compiled with, the [types], [constants] and
//! [signatures] of functions that implement it in Rust, and lists of [functions](FUNCTIONS),
//! [constants](CONSTANTS) and [datatypes](DATATYPES). Nothing in it is of vrt's runtime.
//!
//! ```
//! use vrt_abi::{Kind, NamedDatatype, constants, error_class_name};
//!
//! let int = NamedDatatype::of(constants::MPI_INT).ok_or("MPI_INT is no datatype")?;
//! assert_eq!((int.name, int.size, int.kind), ("MPI_INT", 4, Kind::Signed));
//! assert_eq!(error_class_name(constants::MPI_ERR_TRUNCATE), Some("MPI_ERR_TRUNCATE"));
//! assert_eq!(vrt_abi::FUNCTIONS.len(), 664);
//! assert!(vrt_abi::HEADER.contains("int MPI_Barrier(MPI_Comm comm);"));
//! # Ok::<(), &str>(())
//! ```
//!
//! [`wrapper`] is what the compilers `vrtcc` and `vrtcxx` do.

mod constant_list;
pub mod constants;
mod datatypes;
mod functions;
mod not_there;
mod pkg_config;
pub mod signatures;
pub mod types;
pub mod wrapper;

pub use constant_list::{
    CONSTANTS, Constant, constant, constant_name, error_class_name, name_in_group,
};
pub use datatypes::{DATATYPES, Kind, NamedDatatype, Native};
pub use functions::{CHAPTERS, Chapter, FUNCTIONS, Function, coverage_table, function};
pub use not_there::{MISSING, Missing, NOT_THERE, NotThere};
pub use pkg_config::pkg_config;

/// The header, `mpi.h`, for C and C++.
pub const HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/mpi.h"));

/// The source in C of the stub library, whose file is called [`LIBRARY`]. Functions that are [`MISSING_NAMES`] are in
/// it where the macro `VRT_ALL` is defined.
pub const STUB: &str = include_str!(concat!(env!("OUT_DIR"), "/stub.c"));

/// The names of the functions that the runtime does not have.
pub const MISSING_NAMES: &[&str] = include!(concat!(env!("OUT_DIR"), "/missing.rs"));

/// The file, and the shared object's name, of a library with this interface: what a program asks
/// the dynamic loader for.
pub const LIBRARY: &str = "libmpi_abi.so.1";

/// Tells versions of [`HEADER`] and [`STUB`] apart, in hexadecimal.
pub const VERSION_HASH: &str = include!(concat!(env!("OUT_DIR"), "/hash.rs"));
