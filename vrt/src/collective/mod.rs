//! Operations in which all ranks of a communicator take part (MPI-4.1 chapter 6).
//!
//! The names and traits of the `mpi` crate's `collective` module, with an async twin of each
//! operation and a persistent form. Every rank has to call the same operations in the same order.
//! Results are the same to the last bit wherever ranks are.
//!
//! An operation is described once: its bytes, its checks, its algorithm. All forms of it are calls of
//! that description.
//!
//! ```text
//! communicator, root, neighbors           the API: Call::new(..).block(), .immediate(scope), ..
//!       |
//!       v
//!     call  <--  moves, reductions        a form of an operation  <--  what the operation is
//!       |                                 (its bytes, checks, algorithm)
//!       v
//! comm::algorithms                        small data, large data
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `communicator`, `root` | the API: blocking and immediate calls |
//! | `communicator/apart`, `communicator/persistent`, `root/apart` | the API: calls that are awaited, and calls that are started again and again |
//! | `neighbors` | among neighbours in a grid or graph |
//! | `between` | between the groups of an intercommunicator |
//! | `call`, `caller` | the forms of a call, and what describes an operation |
//! | `moves`, `reductions` | the operations |
//! | `buffers` | from buffers to bytes |
//! | `checks` | what is wrong with arguments |
//! | `operation`, `reduce_op` | what reductions apply |
//!
//! A new operation is a `Description` (in `call`) in `moves` or `reductions`, its blocking and immediate
//! calls in `communicator` or `root`, and its other forms in the files below that.
//! Whether data is small enough to be combined by PEs is asked below, in `vrt_core::comm::combined`.

mod between;
mod buffers;
mod call;
mod caller;
mod checks;
mod communicator;
mod moves;
mod neighbors;
pub(crate) mod operation;
pub(crate) mod reduce_op;
mod reductions;
mod root;

pub use communicator::CommunicatorCollectives;
pub use communicator::apart::AsyncCollectives;
pub use communicator::persistent::PersistentCollectives;

pub use neighbors::NeighborCollectives;
pub use operation::{
    Operation, SystemOperation, UnsafeUserOperation, UserOperation, reduce_local_into,
};
pub use reduce_op::UnsafeUserFunction;
pub use root::Root;
pub use root::apart::{AsyncRoot, PersistentRoot};

/// The traits of this module.
pub mod traits {
    pub use super::{
        AsyncCollectives, AsyncRoot, CommunicatorCollectives, NeighborCollectives, Operation,
        PersistentCollectives, PersistentRoot, Root,
    };
}
