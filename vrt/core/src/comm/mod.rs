//! Communicators, and the collective operations among their ranks, for the language bindings.
//!
//! Nothing here knows a language: buffers are addresses and lengths ([`bytes`]), an operation is a future that a
//! binding waits for, hands out or gives to a task.
//!
//! | file | subject |
//! |---|---|
//! | `handle` | definition of a communicator |
//! | `attributes` | values that a communicator carries |
//! | `table`, `records` | the communicators of a rank, by number |
//! | `dims` | the number of ranks of a grid along each dimension |
//! | `grid`, `graph`, `shape` | relations of ranks |
//! | `neighbors` | the neighbours of a rank, and the exchange among them |
//! | `messages` | numbers to ranks that do not know of them |
//! | `create` | splitting, duplicating, communicators from groups |
//! | `inter`, `between`, `turns` | communicators between two groups, collective operations between these |
//! | `algorithms`, `reductions` | collective operations: choice of the algorithm, and the algorithms |
//! | `combined`, `now` | descriptions of small operations, and the limit for small data; calls without a future |
//! | `spec` | identity of a small operation, and whether two ranks mean the same one |
//! | `combine`, `under_way`, `advance`, `parts`, `groups`, `guests` | small operations: the ranks of a PE first, then PEs |
//! | `membership`, `handlers` | joining and leaving groups; what comes from other PEs |
//! | `operator`, `long_double`, `reduce_op` | the operations that reductions apply |
//! | `bytes` | the bytes that operations read and write |
//!
//! Invariants:
//! - B1. The buffers of an operation ([`In`](bytes::In), [`Out`](bytes::Out)) are readable or writable for their lengths
//!   until its future is ready, and none overlaps another: so promise the callers of all `unsafe` functions of operations.
//!   What a function makes itself, and gives to others, is in its future until those are ready.
//! - B2. The parts of an operation on a PE have `unit` bytes each in the operation's `data`, and none overlaps another
//!   (`parts`).
//! - B3. A rank that waits on a PE has room for its result until it is told: the caller of `combine`.

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

mod advance;
pub mod algorithms;
pub mod attributes;
pub mod between;
pub mod bytes;
pub mod combine;
mod combined;
pub mod create;
pub mod dims;
pub mod graph;
pub mod grid;
mod groups;
mod guests;
pub mod handle;
mod handlers;
pub mod inter;
mod long;
mod long_double;
mod membership;
mod messages;
pub mod neighbors;
pub mod now;
pub mod operator;
mod parts;
pub mod records;
pub mod reduce_op;
mod reductions;
mod relay;
pub mod shape;
mod spec;
mod table;
mod turns;
mod under_way;

pub use combine::Combining;
pub use handle::CommunicatorHandle;

/// Contexts per communicator.
pub const CONTEXTS: u32 = 4;
/// The first context of the world communicator; contexts of communicators that the program makes
/// follow the predefined ones.
pub const WORLD: u32 = 0;
/// The first context of a rank's communicator of itself alone.
pub const SELF: u32 = CONTEXTS;
/// The lowest context of a communicator that the program makes.
pub const FIRST_FREE_CONTEXT: u32 = 2 * CONTEXTS;
