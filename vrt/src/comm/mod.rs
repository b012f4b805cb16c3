//! Communicators, and the collective operations among their ranks, for the faces that stand on them.
//!
//! Nothing here knows a face: buffers are addresses and lengths ([`bytes`]), an operation is a future
//! that a face waits for, hands out or gives to a task.
//!
//! | file | subject |
//! |---|---|
//! | `handle` | what a communicator is |
//! | `shape` | grids and graphs |
//! | `create` | splitting, duplicating, communicators from groups |
//! | `algorithms` | collective operations: which algorithm, and the algorithms |
//! | `combined` | what small operations are, and what is small |
//! | `combine`, `parts`, `groups` | small operations: the ranks of a PE first, then PEs |
//! | `operator`, `fold` | what reductions apply |
//! | `bytes` | the bytes that operations read and write |

pub(crate) mod algorithms;
pub(crate) mod bytes;
pub(crate) mod combine;
mod combined;
pub(crate) mod create;
pub(crate) mod fold;
mod groups;
pub(crate) mod handle;
pub(crate) mod operator;
mod parts;
pub(crate) mod shape;

pub(crate) use combine::Combining;
pub(crate) use handle::CommunicatorHandle;

/// Contexts of a communicator.
pub(crate) const CONTEXTS: u32 = 4;
/// Contexts of the communicators that are there from the beginning; others begin behind them.
pub(crate) const WORLD: u32 = 0;
pub(crate) const SELF: u32 = CONTEXTS;
pub(crate) const FIRST_FREE_CONTEXT: u32 = 2 * CONTEXTS;
