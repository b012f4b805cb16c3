//! A rank: the program of one virtual rank, suspended or running.
//!
//! A rank is a coroutine on the stack in its slot ([`Body`]). A blocking rank runs the program
//! itself on it; an async rank runs a loop that polls the program's future, which lies in the
//! slot's heap. So both suspend in the same way, have the same guard, and move in the same way; an
//! async rank pays one coroutine switch (5 ns) per poll.
//!
//! ```text
//!             start                 future pending                event
//! (no body) --------> Ready ----> Running ----------> Waiting ----------> Ready
//!                       ^  resume |   |   \
//!                       +---------+   |    `-- program returned, exit(n), panic --> Ended
//!                        yield_now    `-- event came while running: Ready again
//! ```
//!
//! Everything a rank waits for is a future; `block_on` drives one on the rank's stack and suspends
//! the rank while it is pending. Everything that is alive across a suspend lies in the slot: the
//! runtime's own state is reached only inside `pe::with`, which cannot suspend.

pub use crate::coroutine::{Body, PANICKED, Resumed, forbid_blocking, take_panic};
use crate::runtime::RUNTIME;
pub use crate::runtime::{Program, Runtime, set_runtime};
pub use crate::waker::{foreign_wakers, rank_waker, remember};

/// Whether the caller is a rank whose calls may block, not an async one.
#[inline(always)]
pub fn may_block() -> bool {
    crate::coroutine::may_block()
}

/// [`suspend`], and the steps that must follow it.
#[inline(always)]
pub fn suspend_and_resume() {
    suspend();
    crate::coroutine::wake_inner();
}

/// Lets the PE run others until something wakes this rank.
#[inline]
pub fn suspend() {
    if std::thread::panicking() {
        crate::coroutine::die_suspending_in_panic();
    }
    crate::coroutine::suspend();
}

/// Ends the current rank (status 0) or the job, as `exit` does.
pub fn exit_rank(status: i32) -> ! {
    if let Some(runtime) = RUNTIME.get() {
        (runtime.exit)(status);
    }
    loop {
        crate::coroutine::suspend();
    }
}
