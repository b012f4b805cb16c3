//! The functions of libc that programs call instead of libc's own.
//!
//! | file | subject |
//! |---|---|
//! | `hooks` | `malloc` and its family: selection of the heap |
//! | `answers` | results of libc in memory of the process: ranks get copies |
//! | `exit_guard` | `exit`, and that each rank of a PE may call it |
//! | `fork` | `fork` of a rank that runs an image |
//! | `own_libc` | functions of a rank's own libc with lasting effects |
//! | `table` | all others, each with its meaning |

pub mod answers;
pub mod exit_guard;
pub mod fork;
pub mod hooks;
mod own_libc;
mod table;

pub use own_libc::for_own_libc;
pub use table::{for_images, in_front};
