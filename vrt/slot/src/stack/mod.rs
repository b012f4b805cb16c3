//! The stack of a rank: switching between stacks, and what is on that of a suspended rank.
//!
//! Invariants:
//! - T1. Of a rank and its PE's loop one runs; the stack of the other ends with what the switch has saved, or
//!   [`prepare`](switch::prepare) has put there, and where it ends is in the rank's [`Suspended`](crate::arena::Suspended).
//!   What is below the end is free.
//! - T2. A rank's body is written only when none of its program is running or suspended: by
//!   [`Body::start`](crate::arena::Body::start), and by [`forget_stack`].
//!
//! | file | subject |
//! |---|---|
//! | `switch` | the switch, in assembly |
//! | `suspended` | the live part of a suspended rank's stack; what runs there first |
//! | `check` | the checking mode: no pointers into the PE's heap |

pub mod check;
mod suspended;
pub(crate) mod switch;

pub use suspended::live_stack;
pub(crate) use suspended::{forget_stack, run_first, saved};
