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

use std::task::Waker;

pub use crate::arena::Body;
use crate::run::coroutine;
pub use crate::run::coroutine::forbid_blocking;
pub use crate::run::outcome::{PANICKED, Resumed, take_panic};
use crate::run::waker::is_of_rank;
pub use crate::run::waker::{give_up_wakers, has_wakers, rank_waker, wait_for_outside};
use crate::runtime::RUNTIME;
pub use crate::runtime::{Program, Runtime, set_runtime};
pub use crate::stack::live_stack;

/// Whether the caller is a rank whose calls may block, not an async one.
#[inline(always)]
pub fn may_block() -> bool {
    coroutine::may_block()
}

/// [`suspend`], and the steps that must follow it.
#[inline(always)]
pub fn suspend_and_resume() {
    suspend();
    coroutine::wake_inner();
}

/// Lets the PE run others until something wakes this rank.
#[inline]
pub fn suspend() {
    if std::thread::panicking() {
        coroutine::die_suspending_in_panic();
    }
    coroutine::suspend();
}

/// Makes sure that the executor that polled with this waker polls again after the rank is resumed.
/// The rank's own waker needs nothing: the rank polls from its top.
#[inline]
pub fn remember(waker: &Waker) {
    if !is_of_rank(waker) {
        coroutine::remember_inner(waker);
    }
}

/// Ends the current rank (status 0) or the job, as `exit` does.
pub fn exit_rank(status: i32) -> ! {
    if let Some(runtime) = RUNTIME.get() {
        (runtime.exit)(status);
    }
    loop {
        coroutine::suspend();
    }
}
