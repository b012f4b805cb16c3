//! Moves ranks from PE to PE.
//!
//! Inside a node a rank is *handed over*: its slot, which every PE of the node has mapped at the same address, gets
//! another owner, and what its PE keeps about it (`state`) is sent as a parcel. No byte of the rank's own memory is
//! copied. Any rank can move that is suspended and not pinned. Its open descriptors may move along ([`carried`]).
//!
//! ```text
//! PE A (has the rank)                     PE B                         anybody
//!   take the rank's state out
//!   slot.owner = nobody
//!   location[rank] = B  ------------------------------------------->   messages go to B now
//!   parcel(state) ----------------------> not there yet: hold what comes for it
//!                                         slot.owner = B
//!                                         state in; take what was held, in order
//!   passes on what still comes for it --> (A's ring: after the parcel)
//! ```
//!
//! Between nodes it is *shipped*, including its memory: see `ship`.
//!
//! Invariants:
//! - A rank's state is on exactly one PE or in exactly one parcel. `location[rank]` names the PE of the node
//!   that has it or to which the parcel is in flight; only the rank's PE changes it. So anything that reaches a PE for a
//!   rank that it does not have is either held there (the location is this PE) or passed on (it names another), and is
//!   never lost; the sequence numbers of messages between two ranks keep their order whichever way each took.
//! - G1. The slot of a rank whose state is in [`Core::ranks`](crate::pe::Core::ranks) is this PE's. From when the state is
//!   taken out until the parcel is adopted elsewhere it is nobody's, and this PE still reads it.
//! - G2. A rank that is to move is suspended: [`Migration::may_go`].
//!
//! | file | subject |
//! |---|---|
//! | `go` | leaving and coming |
//! | `state` | what a PE keeps of a rank, in the form in which it is sent |
//! | `ship`, `left_behind` | to other nodes, with all memory |
//! | `by_state`, `kept` | by the state that a rank has encoded |
//! | `at_sync`, `waiting` | ranks that want to be moved, or may be |
//! | `obstacles`, `reasons` | what pins a rank |
//! | `migration`, `options` | what a PE keeps for this; the rules |

mod at_sync;
mod by_state;
mod go;
mod kept;
mod left_behind;
mod migration;
mod obstacles;
mod options;
mod reasons;
mod ship;
mod state;
mod waiting;

pub use at_sync::end_at_sync;
pub use go::go;
pub use kept::KeptState;
pub use migration::{Costs, Migration, Stays};
pub use options::{MoveBy, Rules};
pub use reasons::Pin;
