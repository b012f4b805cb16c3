//! Turns a program of virtual ranks into a job.
//!
//! [`launch`] makes the calling process the *supervisor*: it reserves the arena and the control
//! memory, forks the PEs (`pe_process`) and answers for them (`supervisor`). [`run_local`] runs
//! ranks on one PE inside the calling thread, for tests and examples.
//!
//! How a job ends:
//!
//! | event | exit status | reported by |
//! |---|---|---|
//! | all ranks return from `main` or call `exit(0)` | 0 | - |
//! | a rank calls `exit(n)`, or its `main` fails | n | the rank |
//! | the same after `MPI_Finalize` in C; all other ranks run to completion | n of the first one | the rank |
//! | a rank panics (also by a blocking call in a Drop during a panic) | 101 | panic hook, with rank and PE |
//! | stack overflow, fork, deadlock, out of memory | 70 | the PE or the supervisor |
//! | a PE is killed by signal s (134: abort, as Rust does when a heap is full) | 128 + s | the supervisor |
//! | wrong configuration | 2 | the supervisor |
//! | Ctrl-C, SIGTERM | 130, 143 | the supervisor |

#[cfg(feature = "mpi")]
mod agree;
mod config;
mod crash;
mod launcher;
mod local;
mod local_slots;
mod memory_kills;
pub mod monitor;
#[cfg(feature = "mpi")]
mod mpi;
mod parts;
mod pe_process;
mod reclaim;
mod shares;
mod supervisor;
mod threads;
mod trace;
mod waits;
mod watchdog;

pub use config::{Config, ConfigError, Core, Net};
pub use launcher::is_first_process;
use local::is_local;
pub use local::run_local;
pub use vrt_balance::{LbReport, MovePinned};
pub use vrt_slot::report::count;

use std::io::Write;
use std::process::ExitCode;

use vrt_slot::ArenaError;
use vrt_slot::{rank, report};

/// The configuration is wrong.
const STATUS_USAGE: u8 = 2;

/// The section by which `vrtrun` recognises a program that becomes a job by itself.
#[used]
#[unsafe(link_section = ".note.vrt")]
static MARK: [u8; 4] = *b"vrt\0";

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
    fn system(what: &'static str) -> LaunchError {
        LaunchError::System { what, source: std::io::Error::last_os_error() }
    }
}

/// Runs `program` on every rank of a job, and returns the job's exit status. The return value of `program` is its
/// rank's status.
///
/// Must be called before any thread is started. It returns in the calling process when the job has ended; errors have
/// been printed by then.
pub fn launch(config: Config, program: impl Fn() -> i32 + Sync + 'static) -> ExitCode {
    if let Some(list) = config.asked_list() {
        return print_list(&list);
    }
    report::set_end(end_job);
    // PEs run the program until the process ends, so it lives as long.
    let program: rank::Program = Box::leak(Box::new(program));
    if crash::job().is_some() || is_local() {
        return report_usage_error(&LaunchError::Nested);
    }
    let ended = match launcher::starts_pes(&config) {
        Err(error) => Err(error.into()),
        #[cfg(feature = "mpi")]
        Ok(true) => mpi::run(&config, program),
        Ok(_) => supervisor::run(&config, program),
    };
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let code = report_usage_error(&error);
            #[cfg(feature = "mpi")]
            vrt_net_mpi::abort_unless_well(i32::from(STATUS_USAGE));
            code
        }
    }
}

/// Makes the calling thread the only rank of its own world; false if it belongs to a job.
///
/// # Panics
/// If the system has no memory for that.
pub fn begin_world_of_one() -> bool {
    if crash::job().is_some() || is_local() {
        return false;
    }
    if let Some((name, value)) = launcher::asks_for_job() {
        let _: ExitCode = report_usage_error(&LaunchError::NotAJob(name, value));
        std::process::exit(i32::from(STATUS_USAGE));
    }
    match local::begin_world_of_one() {
        Ok(()) => true,
        Err(error) => panic!("cannot make this thread a rank: {error}"),
    }
}

/// Prints a list that the user requested; returns the exit status.
pub fn print_list(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints why a job could not start; returns the exit status.
pub fn report_usage_error(error: &dyn std::error::Error) -> ExitCode {
    report::write_out(format!("vrt: {error}\n").as_bytes());
    ExitCode::from(STATUS_USAGE)
}

/// Ends the whole job with a status; [`report`] asks how. In a local run this panics, in a world of one it ends the
/// process.
fn end_job(status: i32) -> ! {
    if vrt_slot::thread::is_rank() {
        std::process::exit(status);
    }
    if is_local() {
        panic!("a rank ended the run with status {status}");
    }
    pe_process::end_job(status)
}
