//! A rank: the program of one virtual rank, suspended or running.
//!
//! A rank is a coroutine on the stack in its slot ([`Body`]). A blocking rank runs the program
//! itself on it; an async rank runs a loop that polls the program's future, which lies in the
//! slot's heap. So both suspend in one way, have the same guard, and move in the same way; an async
//! rank pays one coroutine switch (5 ns) a poll.
//!
//! ```text
//!             start                 future pending                event
//! (no body) --------> Ready ----> Running ----------> Waiting ----------> Ready
//!                       ^  resume |   |   \
//!                       +---------+   |    `-- program returned, exit(n), panic --> Ended
//!                        yield_now    `-- event came while running: Ready again
//! ```
//!
//! Everything a rank waits for is a future; [`block_on`] drives one on the rank's stack and
//! suspends the rank while it is pending. Whatever is alive across a suspend lies in the slot: the
//! runtime's own state is reached only inside `pe::with`, which cannot suspend.

pub(crate) mod check;
mod coroutine;
pub(crate) mod locals;
pub(crate) mod thread;
mod waker;

pub(crate) use coroutine::{Body, PANICKED, Resumed, take_panic};
pub(crate) use locals::Locals;
pub(crate) use waker::{foreign_wakers, rank_waker, remember};

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll};

use crate::arena::hooks;
use crate::pe;

/// The program that every rank of a job runs; returns the rank's exit status.
pub(crate) type Program = &'static (dyn Fn() -> i32 + Sync);

/// The status that a rank's `main` reports.
pub(crate) fn status_of(code: ExitCode) -> i32 {
    // `ExitCode` only compares.
    (0..=255u8).find(|n| ExitCode::from(*n) == code).map_or(1, i32::from)
}

/// Runs a future on the stack of the current blocking rank, suspending the rank while the future
/// is pending.
///
/// The future may wait for anything: `vrt`'s own operations, or tokio's timers and sockets, which
/// pin the rank to its PE while they are pending.
///
/// # Panics
/// Outside of a rank, and in an async rank, whose code awaits the future instead.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    block_on_at(future, "block_on", Location::caller())
}

/// [`block_on`] for the blocking face: `call` names the call for the error in an async rank.
#[inline]
pub(crate) fn block_on_at<F: Future>(
    future: F,
    call: &'static str,
    location: &'static Location<'static>,
) -> F::Output {
    expect_blocking(call, location);
    drive(future)
}

/// Checks that the caller is a blocking rank.
#[inline(always)]
pub(crate) fn expect_blocking(call: &'static str, location: &'static Location<'static>) {
    if !coroutine::may_block() {
        refuse_blocking(call, location);
    }
}

/// [`suspend`], and what has to follow it.
#[inline(always)]
pub(crate) fn suspend_and_resume() {
    suspend();
    coroutine::wake_inner();
}

/// Polls a future to its end on the stack of the current rank.
#[inline(always)]
fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = rank_waker();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        if !locals::poll_tasks(&mut context) && !pe::with(pe::Pe::look_until_woken) {
            suspend_and_resume();
        }
    }
}

/// Goes on with the tasks of a rank whose program is over: others may wait for them, and for what
/// it has begun to receive.
pub(crate) fn finish_tasks() {
    if locals::has_tasks() {
        drive(std::future::poll_fn(|_| match locals::has_tasks() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }));
    }
    pe::with(|pe| pe.engine.forget_reserved());
}

/// Gives the PE to others until something wakes this rank.
#[inline]
pub(crate) fn suspend() {
    if std::thread::panicking() {
        coroutine::die_suspending_in_panic();
    }
    coroutine::suspend();
}

#[cold]
fn refuse_blocking(call: &str, location: &Location<'_>) -> ! {
    match pe::current_rank() {
        None => panic!(
            "`{call}` at {location} was called outside of a rank: it works in the program given \
             to `#[vrt::main]`, `launch` or `run_local`, on the rank's own thread"
        ),
        Some(rank) => panic!(
            "rank {rank} is async, so the blocking call `{call}` at {location} would stop its \
             whole PE: use its async twin `{call}_async(..).await`"
        ),
    }
}

/// What an async rank runs: polls its program to the end.
pub(crate) fn drive_async_main<F: Future>(future: F) -> F::Output {
    coroutine::forbid_blocking();
    // The future may be large; it lies in the slot's heap, not on the stack.
    drive(Box::pin(future))
}

/// Lets other ranks of this PE run before this one goes on.
///
/// # Panics
/// Outside of a rank, and in an async rank (which awaits [`yield_now_async`]).
#[track_caller]
pub fn yield_now() {
    expect_blocking("yield_now", Location::caller());
    if locals::has_tasks() {
        return drive(yield_now_async());
    }
    pe::with(|pe| pe.engine.yield_current());
    suspend_and_resume();
}

/// [`yield_now`] for async ranks.
pub async fn yield_now_async() {
    let mut yielded = false;
    std::future::poll_fn(|_| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        pe::with(|pe| pe.engine.yield_current());
        Poll::Pending
    })
    .await;
}

/// Ends the current rank (status 0) or the job, from `exit`.
pub(crate) fn exit_rank(status: i32) -> ! {
    pe::with(|pe| pe.engine.exit_current(status));
    loop {
        coroutine::suspend();
    }
}

/// Notes that the running rank blocks its thread for ever, at the word of a lock, for the table of
/// the deadlock that this is. In a signal handler: the rank does not go on.
pub(crate) fn blocked_for_ever(word: usize) {
    pe::with(|pe| pe.engine.stop_for_ever(word));
    hooks::use_heap(std::ptr::null_mut());
}

/// Explains why a rank cannot fork, and ends the job.
pub(crate) fn refuse_fork(call: &str) -> ! {
    let rank = pe::current_rank().unwrap_or_default();
    crate::report::say(format_args!(
        "rank {rank} called {call}: a virtual rank's stack is shared memory, on which parent and \
         child would overwrite each other; start programs with std::process::Command (without \
         pre_exec) or posix_spawn"
    ));
    hooks::runtime_heap(|| crate::report::end_job(crate::report::STATUS_RUNTIME))
}

/// Why the current rank cannot be moved to another PE now, or `None` when it can.
///
/// # Panics
/// Outside of a rank.
#[track_caller]
#[inline(never)]
pub fn pinned() -> Option<&'static str> {
    let frame = 0u8;
    let frame = (&raw const frame) as usize;
    pe::with(|pe| pe.engine.pinned(frame))
}

/// What the runtime has measured of the current rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The PE it is on.
    pub pe: u32,
    /// Seconds it has run.
    pub run_seconds: f64,
    /// Times it was resumed.
    pub switches: u64,
    /// For each rank of the job it has sent to: rank, messages, bytes.
    pub sent: Vec<(u32, u64, u64)>,
    /// Live bytes in its heap.
    pub heap_bytes: usize,
    /// Live blocks in its heap.
    pub heap_blocks: usize,
    /// Communicators that it has made and not dropped. Each window has one, too.
    pub communicators: u32,
    /// Windows that it has made and not dropped.
    pub windows: u32,
    /// Messages that have come for it and that it has not received.
    pub unexpected_messages: usize,
    /// Bytes that those take; `--unexpected` is their limit.
    pub unexpected_bytes: usize,
    /// Groups of ranks that its PE knows of, for the communicators that ranks have made.
    pub groups_of_pe: usize,
}

/// What the runtime has measured of the current rank so far.
///
/// # Panics
/// Outside of a rank.
#[track_caller]
pub fn statistics() -> Statistics {
    let (partners, mut statistics) = pe::with(|pe| {
        let cycles = pe.engine.cycles_per_second();
        let id = pe.engine.id;
        let groups_of_pe = pe.engine.combining.groups.made();
        let state = pe.engine.running();
        // SAFETY: the running rank's slot.
        let heap = unsafe { &*(*state.slot).heap.get() };
        let statistics = Statistics {
            pe: id,
            run_seconds: state.counters.run as f64 / cycles,
            switches: state.counters.switches,
            sent: Vec::new(),
            heap_bytes: heap.bytes,
            heap_blocks: heap.blocks,
            communicators: state.owned.communicators,
            windows: state.owned.windows,
            unexpected_messages: state.unexpected.len(),
            unexpected_bytes: state.unexpected_bytes(),
            groups_of_pe,
        };
        (state.peers.iter().count(), statistics)
    });
    // The list is the rank's, so it is allocated here and filled there.
    let mut sent = Vec::with_capacity(partners);
    pe::with(|pe| {
        for (rank, peer) in pe.engine.running().peers.iter().take(partners) {
            sent.push((rank, peer.messages, peer.bytes));
        }
    });
    sent.sort_unstable();
    statistics.sent = sent;
    statistics
}
