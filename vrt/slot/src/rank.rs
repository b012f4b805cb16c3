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
pub use crate::waker::{foreign_wakers, rank_waker, remember};

use std::sync::OnceLock;

/// The program that every rank of a job runs; returns the rank's exit status.
pub type Program = &'static (dyn Fn() -> i32 + Sync);

/// The services of the layer above for ranks.
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    /// Wakes a rank of the PE with this unique number, from any thread.
    pub wake: fn(uid: u32, rank: u32),
    /// Records that the running rank, which suspends next, has called `exit`.
    pub exit: fn(status: i32),
    /// Makes this process's PE resume ranks that [have signals](crate::signals::has_some); may be called from anywhere,
    /// including a signal handler.
    pub signalled: fn(),
}

pub(crate) static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Sets these services; they stay the same in a process.
pub fn set_runtime(runtime: Runtime) {
    let _: &Runtime = RUNTIME.get_or_init(|| runtime);
}

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
