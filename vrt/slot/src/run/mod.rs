//! Running ranks: their lives, how they suspend and are resumed, and the data that go with each.
//!
//! | file | subject |
//! |---|---|
//! | `waker` | wakers of ranks |
//! | `locals`, `gone_locals` | the runtime's data of a rank, in the rank's heap; thread-locals that are destroyed early |
//! | `outcome` | how a program has ended |
//! | `image_switch` | what a switch to a rank with an image, or from it, changes |
//! | `own_thread_locals` | ranks of the runtime's own process with their own thread-locals |
//! | `thread` | a rank that is a thread of the process |
//! | `allocator` | whether the program's allocator takes memory of the slot |
//! | `coroutine` | the coroutine in a slot |
//! | `rank` | a rank: its life, and the services of the layer above for it |

pub mod allocator;
pub(crate) mod coroutine;
pub mod gone_locals;
pub mod image_switch;
pub mod locals;
mod outcome;
pub mod own_thread_locals;
pub mod rank;
pub mod thread;
mod waker;
