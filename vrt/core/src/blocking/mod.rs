//! Calls that would block the thread of a PE: made by a rank, they suspend only the rank, and its neighbours run.
//!
//! The C functions through which programs and libraries block are interposed here in front of libc's (`calls`). Outside
//! of a rank they are libc's own. In a rank:
//!
//! | call | effect |
//! |---|---|
//! | `nanosleep`, `clock_nanosleep`, `usleep`, `sleep`; `poll`, `ppoll`, `select`, `pselect` without a descriptor | a timer of `vrt`'s, as in [`Sleep`](crate::operation::Sleep); the rank can be moved meanwhile |
//! | `futex` through `syscall`: the standard library's `Mutex`, `RwLock`, `Condvar`, `Once`, `Barrier`, `park` | see `futex`; the rank stays on its PE meanwhile |
//! | `pthread_join` | the rank polls now and then whether the thread has ended |
//! | in ranks that run images: `sched_yield` | other ranks of the PE run |
//! | in ranks that run images: `pause`, `sigsuspend`, `sigwait` and similar, `waitpid` and similar | the rank is woken for its signals and children (`signals`) |
//!
//! Async ranks are suspended in the middle of a poll, like a thread that is preempted there: their own other futures
//! wait, their neighbours do not.
//!
//! **Exceptions in which the thread blocks.** While a rank is suspended, others run on the same thread, and code may
//! rely on this not happening. So the call is libc's own, and the PE waits,
//! - while the rank unwinds;
//! - inside `block_on` of a tokio runtime that the rank has created, which relies on the thread;
//! - on a word in the thread's own thread-local storage: a latch that exists once per thread (rayon's), because a
//!   second wait on it would take the first one's wake-up. `parking_lot`'s would be one, too; see `parking`.
//!
//! Invariants:
//! - C1. Functions in front of libc's are called as C's, and pass on what they were given; libc's of the same name have
//!   C's types (S4 of `vrt_slot`).

mod calls;
mod futex;
mod parking;
mod signals;
mod states;
mod suspend;
mod system;

pub use calls::{SCHED_YIELD, in_front};
pub use futex::Futexes;
pub use suspend::pause_briefly;
