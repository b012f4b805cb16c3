//! The root of a collective operation.

use std::ffi::c_int;

use vrt_abi::constants::*;

use crate::fault::{Outcome, refuse};
use crate::numbers;
use crate::object::Comm;

/// The root of an operation, from the point of view of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// This rank; for an intercommunicator, the root of the other group's operation.
    Here,
    /// A rank of this group, or of the other one.
    There(usize),
    /// For an intercommunicator: another rank of this group.
    Neighbor,
}

/// The root given by a program.
///
/// # Errors
/// The rank does not exist.
#[inline]
pub(super) fn root_of(comm: &Comm, root: c_int) -> Outcome<Root> {
    let size = comm.engine.partners().len();
    match root {
        MPI_ROOT if comm.is_inter() => Ok(Root::Here),
        MPI_PROC_NULL if comm.is_inter() => Ok(Root::Neighbor),
        _ if root < 0 || numbers::index(root) >= size => {
            refuse!(MPI_ERR_ROOT, "the root is {root}: 0 to {} are allowed", size.saturating_sub(1))
        }
        _ if !comm.is_inter() && root == comm.engine.rank => Ok(Root::Here),
        _ => Ok(Root::There(numbers::index(root))),
    }
}
