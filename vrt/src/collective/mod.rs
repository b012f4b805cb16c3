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
//! | `operation`, `operator`, `fold` | what reductions apply |
//! | `start` | from buffers to a future |
//! | `algorithms` | the algorithms |
//! | `combine`, `parts`, `groups` | small operations: the ranks of a PE first, then PEs |

pub(crate) mod algorithms;
mod async_twins;
mod bytes;
mod combine;
mod communicator;
pub(crate) mod fold;
pub(crate) mod groups;
mod operation;
pub(crate) mod operator;
mod parts;
mod persistent;
mod root;
pub(crate) mod start;

pub use async_twins::{AsyncCollectives, AsyncRoot};
pub(crate) use combine::Combining;
pub use communicator::CommunicatorCollectives;

pub use operation::{
    Operation, SystemOperation, UnsafeUserFunction, UnsafeUserOperation, UserOperation,
    reduce_local_into,
};
pub use persistent::{PersistentCollectives, PersistentRoot};
pub use root::Root;
pub(crate) use start::{expect_bytes, expect_type};

use crate::operation::Site;
use crate::operation::block_on_at;

/// The traits of this module.
pub mod traits {
    pub use super::{
        AsyncCollectives, AsyncRoot, CommunicatorCollectives, Operation, PersistentCollectives,
        PersistentRoot, Root,
    };
}

fn block<F: Future>(future: F, site: Site) -> F::Output {
    block_on_at(future, site.call, site.location)
}
