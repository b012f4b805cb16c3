//! The stack of a rank: switching between stacks, and what is on that of a suspended rank.
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
