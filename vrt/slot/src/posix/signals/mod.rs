//! Signals of ranks that run images: each rank has its own handlers, as a process does, and its threads have their own
//! masks.
//!
//! The kernel has one table of handlers per PE, which is the runtime's. A program's settings are kept in the rank's
//! heap, so they move along; a raised signal finds its handler there:
//!
//! ```text
//! raise, kill, sigqueue, pthread_kill .. of the rank's own --.
//! a timer of the rank's (`timers`) ---------------------------+--> waits, for the rank or a thread of it
//! a child of the rank's has changed (`children`) -------------+        |
//! a child that the rank has forked has sent it ---------------'        | not blocked
//!                                                                      v
//! a fault of the rank's --------------------------------> the rank's handler, on the stack of the rank
//! ```
//!
//! | where the handler runs | when |
//! |---|---|
//! | the thread that raises the signal | at once, as a function |
//! | a running rank, another thread of a rank | at once: the kernel's [`nudge`] interrupts it |
//! | a rank inside of the runtime | when it leaves the runtime, by a timer of the PE that nudges it again |
//! | a suspended rank | it is woken, and runs the handler before it continues ([`run_before_resuming`]), or, in a call that a signal may interrupt, after it has left that call (`vrt-core`'s `blocking`) |
//!
//! Masks exist only in these tables: the kernel's mask of a PE's thread is always empty, even while a handler runs, as
//! that may leave by a jump (`jumps`) and other ranks run then.
//!
//! A signal without a handler has the system's default effect. A signal sent by another process is the PE's, except if
//! the process is a child that a rank has forked.
//!
//! Invariants:
//! - P1. Pending signals, settings, and the list of threads are changed only inside [`Lock::with`](lock::Lock::with) of
//!   the rank's signals; functions that say "with the lock" are called there.
//! - P2. A rank's signals are in its heap from [`tables::prepare`] on, as long as the rank. Those of a thread exist, and
//!   are in the list, from [`threads::thread_is_made`] to [`threads::thread_ends`].
//!
//! | file | subject |
//! |---|---|
//! | `sets`, `pending`, `lock` | signals as sets; those that are pending; the lock of a rank's signals |
//! | `nudge` | how a thread is made to check |
//! | `tables` | the signals of a rank and its threads; which of them are the caller's |
//! | `deliver`, `threads`, `children` | calling handlers; what threads and children change |
//! | `kernel` | the runtime's handlers |
//! | `calls`, `jumps`, `waits` | the functions of libc; waiting with signals |

mod calls;
mod children;
mod deliver;
mod jumps;
pub(crate) mod kernel;
mod lock;
pub(crate) mod nudge;
pub(crate) mod pending;
mod sets;
pub(crate) mod tables;
pub(crate) mod threads;
mod waits;

pub use super::errno::{errno, fail, of_process as errno_of_process};
pub(crate) use calls::{by_number, provided};
pub(crate) use children::look_soon as look_for_children;
pub use deliver::has_some;
pub(crate) use deliver::run_before_resuming;
pub use kernel::{begin, handle_fault};
pub use waits::*;
