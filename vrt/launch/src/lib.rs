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
mod end;
mod error;
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
use end::{end_job, is_local};
use error::STATUS_USAGE;
pub use error::{LaunchError, report_usage_error};
pub use launcher::is_first_process;
pub use local::run_local;
pub use vrt_balance::{LbReport, MovePinned};
pub use vrt_slot::report::count;

use std::io::Write;
use std::process::ExitCode;

use vrt_slot::{rank, report};

/// The section by which `vrtrun` recognises a program that becomes a job by itself.
#[used]
#[unsafe(link_section = ".note.vrt")]
static MARK: [u8; 4] = *b"vrt\0";

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
