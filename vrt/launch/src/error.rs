//! Why a job does not start.

use std::process::ExitCode;

use vrt_core::options::ConfigError;
use vrt_slot::{ArenaError, report};

/// The configuration is wrong.
pub(crate) const STATUS_USAGE: u8 = 2;

/// Why a job did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no room for the ranks.
    #[error(transparent)]
    Arena(#[from] ArenaError),
    /// PEs are forked from this process, which must be single-threaded for that.
    #[error(
        "this process has {0} threads: launch the job before any thread is started \
         (#[vrt::main] does)"
    )]
    Threads(usize),
    /// Ranks cannot have their own thread-locals.
    #[error("--private-thread-locals: {0}")]
    ThreadLocals(#[from] vrt_slot::own_thread_locals::LoadError),
    /// A PE of a job cannot start another one.
    #[error(
        "this process is a PE of a job already: a job is launched, and local ranks are run, outside of \
         ranks and by a process that is no PE"
    )]
    Nested,
    /// A program that was started as a job does not become one.
    #[error(
        "this program was started to be many ranks ({0}={1}), but its main is that of a single \
         process: write #[vrt::main] above it"
    )]
    NotAJob(&'static str, String),
    /// The PEs that a launcher has started cannot form a job.
    #[cfg(feature = "mpi")]
    #[error("{0}")]
    Disagreement(String),
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] vrt_trace::WriteError),
    /// The page that shows the job cannot be served at its address.
    #[error(
        "--monitor {address}: {source}; --monitor 0 takes any port that is free, and says which"
    )]
    Monitor {
        /// The requested address.
        address: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl LaunchError {
    pub(crate) fn system(what: &'static str) -> LaunchError {
        LaunchError::System { what, source: std::io::Error::last_os_error() }
    }
}

/// Prints why a job could not start; returns the exit status.
pub fn report_usage_error(error: &dyn std::error::Error) -> ExitCode {
    report::write_out(format!("vrt: {error}\n").as_bytes());
    ExitCode::from(STATUS_USAGE)
}
