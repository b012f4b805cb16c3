//! What the layer above gives: the program of the ranks, and services for them.

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
    /// Makes this process's PE resume ranks that [have signals](crate::posix::signals::has_some); may be called from anywhere,
    /// including a signal handler.
    pub signalled: fn(),
}

pub(crate) static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Sets these services; they stay the same in a process.
pub fn set_runtime(runtime: Runtime) {
    let _: &Runtime = RUNTIME.get_or_init(|| runtime);
}
