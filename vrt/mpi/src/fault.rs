//! Wrong use by a program, in terms of MPI: an error class, and a text.

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::MPI_Comm;
use vrt_core::{Class, Error};

/// Wrong use of a function.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The error code: one of MPI's classes, or one added by the program.
    pub(crate) code: c_int,
    /// What was wrong, with the value and the allowed values.
    pub(crate) text: String,
    /// The communicator on which it is raised, if that is not the function's own object.
    pub(crate) on: Option<MPI_Comm>,
}

/// The result of a function.
pub(crate) type Outcome<T = ()> = Result<T, Box<Fault>>;

/// A fault with a class and a text.
#[cold]
#[inline(never)]
pub(crate) fn fault(code: c_int, text: impl Into<String>) -> Box<Fault> {
    Box::new(Fault { code, text: text.into(), on: None })
}

/// Returns a fault with a class and a text.
macro_rules! refuse {
    ($class:expr, $($text:tt)*) => {
        return Err($crate::fault::fault($class, format!($($text)*)))
    };
}
pub(crate) use refuse;

/// The engine's errors have classes.
impl From<Error> for Box<Fault> {
    #[cold]
    fn from(error: Error) -> Box<Fault> {
        let class = match error.class() {
            Class::Comm => MPI_ERR_COMM,
            Class::NoMemory => MPI_ERR_NO_MEM,
            Class::Count => MPI_ERR_COUNT,
            Class::Type => MPI_ERR_TYPE,
            Class::Tag => MPI_ERR_TAG,
            Class::Rank => MPI_ERR_RANK,
            Class::Root => MPI_ERR_ROOT,
            Class::Topology => MPI_ERR_TOPOLOGY,
            Class::Group => MPI_ERR_GROUP,
            Class::Op => MPI_ERR_OP,
            Class::Truncate => MPI_ERR_TRUNCATE,
            Class::Request => MPI_ERR_REQUEST,
            Class::RmaRange => MPI_ERR_RMA_RANGE,
            Class::RmaSync => MPI_ERR_RMA_SYNC,
            _ => MPI_ERR_OTHER,
        };
        fault(class, error.to_string())
    }
}
