//! Which rank keeps the thread of a PE, and which wait for it; queried in a signal handler on that
//! thread.

use crate::pe::about::ABOUT;
use crate::pe::rank_state::Status;
use crate::pe::thread::{OUTSIDE, PE, Pe};
use crate::pe::{self, timers};
use vrt_slot::hooks;

/// What runs on a PE's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This rank of the job.
    Rank(u32),
    /// A tokio task, while no rank runs.
    Task,
}

/// A PE that has not returned to its loop for a while.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    pub holder: Holder,
    pub pe: u32,
    /// Number of ready ranks.
    pub ready: usize,
    /// Something has arrived: messages, wake-ups, the time of a timer.
    pub came: bool,
}

impl Stall {
    pub fn is_waited_for(&self) -> bool {
        self.ready > 0 || self.came
    }
}

/// The state of this thread's PE; `None`: it has none, or its own loop runs. It may have been interrupted anywhere:
/// only numbers and the rings' shared words are read.
pub fn stall() -> Option<Stall> {
    let pe = PE.get();
    if pe.is_null() {
        return None;
    }
    // SAFETY: set by `enter` on this thread, which is in the handler that calls this and so changes
    // nothing meanwhile; the references end before the handler does.
    let Pe { engine, receivers } = unsafe { &*pe };
    let state = engine.ranks.get(engine.current as usize).and_then(Option::as_deref);
    let holder = match state {
        Some(state) if state.status == Status::Running => Holder::Rank(engine.current),
        _ if OUTSIDE.get() => Holder::Task,
        _ => return None,
    };
    let came = receivers.are_ready()
        || !engine.injected.is_empty()
        || engine.timers.next().is_some_and(|deadline| deadline <= timers::monotonic());
    Some(Stall { holder, pe: engine.id, ready: engine.ready.len(), came })
}

/// The PE of this thread, if its loop has called tokio, which runs no rank's code.
pub fn pe_in_tokio() -> Option<u32> {
    ABOUT.get().filter(|_| OUTSIDE.get()).map(|about| about.id)
}

/// The running rank blocks its thread forever, at the word of a lock: calls `end`, which ends the job, makes the other
/// PEs notice, and returns what the ranks of this one wait for. In a signal handler: the rank does not continue.
pub fn blocked_for_ever(word: usize, end: impl FnOnce()) -> Vec<String> {
    let rows = pe::with(|pe| {
        pe.engine.stop_for_ever(word);
        end();
        pe.engine.wake_all();
        pe.engine.waits()
    });
    // SAFETY: the process's heap.
    unsafe { hooks::use_heap(std::ptr::null_mut()) };
    rows
}
