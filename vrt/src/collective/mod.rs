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

use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::algorithms::{self, In, Out};
use vrt_core::comm::combine::What;

use crate::operation::{OrRefuse, Site, block_on_at, may_block};

/// The traits of this module.
pub mod traits {
    pub use super::{
        AsyncCollectives, AsyncRoot, CommunicatorCollectives, NeighborCollectives, Operation,
        PersistentCollectives, PersistentRoot, Root,
    };
}

/// A small operation, without a future, if the data is small enough: false when it is not.
///
/// # Safety
/// The buffers are valid for their lengths during the call.
#[inline(always)]
unsafe fn combine_now(
    comm: &CommunicatorHandle,
    site: Site,
    what: What,
    root: Option<usize>,
    buffers: &(In, Out),
) -> bool {
    // SAFETY: as the caller promises.
    unsafe { algorithms::combine_now(may_block(site), comm, site, what, root, buffers) }
        .or_refuse(site)
}

fn block<F: Future>(future: F, site: Site) -> F::Output {
    block_on_at(future, site)
}
