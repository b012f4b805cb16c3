//! Operations in which all ranks of a communicator take part (MPI-4.1 chapter 6).
//!
//! The names and traits of the `mpi` crate's `collective` module, with an async twin of each
//! operation and a persistent form. Every rank has to call the same operations in the same order.
//! Results are the same to the last bit wherever ranks are.
//!
//! | file | subject |
//! |---|---|
//! | `communicator`, `root` | the face: blocking and immediate calls |
//! | `async_twins`, `persistent` | the same to be awaited, and to be started again and again |
//! | `operation` | reductions |
//! | `neighbors` | among neighbours in a grid or graph |
//! | `start` | from buffers to a future |

mod async_twins;
mod communicator;
pub(crate) mod fold;
mod neighbors;
mod operation;
mod persistent;
mod root;
pub(crate) mod start;

pub use async_twins::{AsyncCollectives, AsyncRoot};
pub use communicator::CommunicatorCollectives;

pub use fold::UnsafeUserFunction;
pub use neighbors::NeighborCollectives;
pub use operation::{
    Operation, SystemOperation, UnsafeUserOperation, UserOperation, reduce_local_into,
};
pub use persistent::{PersistentCollectives, PersistentRoot};
pub use root::Root;
pub(crate) use start::expect_bytes;

use crate::operation::Site;
use crate::operation::block_on_at;

/// The traits of this module.
pub mod traits {
    pub use super::{
        AsyncCollectives, AsyncRoot, CommunicatorCollectives, NeighborCollectives, Operation,
        PersistentCollectives, PersistentRoot, Root,
    };
}

fn block<F: Future>(future: F, site: Site) -> F::Output {
    block_on_at(future, site)
}
