//! Runs a program to completion, and leaves none of its processes behind if it fails.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use vrt_cli::job::{self, Ended};

use crate::Error;
use crate::measure::Measured;

/// The time after which a program is killed.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Runs a program to completion and parses the line it prints.
pub(crate) fn run_program(command: Command) -> Result<Measured, Error> {
    run_program_within(command, TIME_LIMIT)
}

/// The same, with another limit.
pub(crate) fn run_program_within(mut command: Command, limit: Duration) -> Result<Measured, Error> {
    run_with_output(&mut command, limit).map(|(measured, _)| measured)
}

/// The same; returns also what else it printed.
pub(crate) fn run_with_output(
    command: &mut Command,
    limit: Duration,
) -> Result<(Measured, Ended), Error> {
    let job = run_to_end_within(command, limit)?;
    match lines(&job).pop() {
        Some(measured) => Ok((measured, job)),
        None => Err(not_understood(job)),
    }
}

/// The lines of figures among those that a program printed.
pub(crate) fn lines<T: DeserializeOwned>(job: &Ended) -> Vec<T> {
    job.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The error if these are not those that were expected.
pub(crate) fn not_understood(job: Ended) -> Error {
    Error::Printed { command: job.line, printed: job.out }
}

/// A program that succeeds within the time limit.
pub(crate) fn run_to_end(command: &mut Command) -> Result<Ended, Error> {
    run_to_end_within(command, TIME_LIMIT)
}

/// The same, with another limit.
pub(crate) fn run_to_end_within(command: &mut Command, limit: Duration) -> Result<Ended, Error> {
    run_marked(command, limit, &Mark::new())
}

fn run_marked(command: &mut Command, limit: Duration, mark: &Mark) -> Result<Ended, Error> {
    let job = job::run(limit, command.env(Mark::VARIABLE, &mark.value)).map_err(Error::Start)?;
    if job.status == 0 {
        return Ok(job);
    }
    mark.end_all();
    if !job.in_time {
        return Err(Error::TimedOut { command: job.line, seconds: limit.as_secs() });
    }
    let said = if job.err.trim().is_empty() { job.out } else { job.err };
    Err(Error::Failed { command: job.line, status: job.status, said })
}

/// Identifies the processes of a run by a variable of their environment. Their parents cannot, nor can their process group:
/// a launcher that dies leaves its processes to init, and may have started them in sessions of their own.
struct Mark {
    value: String,
}

impl Mark {
    const VARIABLE: &str = "VRT_BENCH_RUN";

    fn new() -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        Self { value: format!("{}.{run}", std::process::id()) }
    }

    /// Kills all processes of the run, including those that others start meanwhile.
    fn end_all(&self) {
        for _ in 0..10 {
            let processes = self.processes();
            if processes.is_empty() {
                return;
            }
            for process in processes {
                // One that has just ended by itself is as good.
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn processes(&self) -> Vec<Pid> {
        let entry = format!("{}={}", Self::VARIABLE, self.value);
        let is_of_run = |process: &Pid| {
            let path = format!("/proc/{}/environ", process.as_raw_nonzero());
            let environment = std::fs::read(path).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|it| it == entry.as_bytes())
        };
        (std::fs::read_dir("/proc").into_iter().flatten().flatten())
            .filter_map(|it| it.file_name().to_str().and_then(|name| name.parse().ok()))
            .filter_map(Pid::from_raw)
            .filter(is_of_run)
            .collect()
    }
}

/// Writes a file of results.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|cause| Error::File { path: path.to_owned(), cause })
}

/// The directory of this program, where cargo puts the others, too.
pub(crate) fn own_directory() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.parent().unwrap_or(Path::new(".")).to_owned()
}

/// A program of `vrt-bench run`, built beside this one.
pub(crate) fn vrt_bench(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
    let mut command = Command::new(own_directory().join("vrt-bench"));
    command.arg("run").args(arguments);
    command
}

/// Open MPI's launcher, for this many processes.
pub(crate) fn mpirun(processes: u32) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("mpirun");
    command.arg("--allow-run-as-root");
    if processes as usize <= cores {
        command.args(["--bind-to", "core"]);
    } else {
        command.args(["--oversubscribe", "--bind-to", "none"]);
    }
    command.args(["-n", &processes.to_string()]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_line_of_figures_is_found_among_others() {
        let measured =
            run_program(shell(r#"echo hello; echo '{"figure":"ring","seconds":2e-6}'; echo bye"#));
        assert_eq!(measured.unwrap().seconds, 2e-6);
        assert!(matches!(run_program(shell("echo hello")), Err(Error::Printed { .. })));
    }

    #[test]
    fn a_failed_program_is_quoted() {
        let error = run_program(shell("echo why >&2; exit 3")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("why") && text.contains('3'), "{text}");
        let error = run_program(Command::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"));
    }

    #[test]
    fn figures_are_found_between_the_lines_of_charm() {
        let measured = run_program(shell(
            "echo 'Charm++> Running in Multicore mode: 2 threads (PEs)'
             echo '{\"figure\":\"pingpong\",\"seconds\":3e-7,\"least\":2e-7,\"most\":4e-7,\"repetitions\":5}'
             echo '[Partition 0][Node 0] End of program'",
        ));
        assert_eq!(measured.unwrap().seconds, 3e-7);
    }

    #[test]
    fn a_failure_is_told_in_a_line() {
        let reason = |script| run_program(shell(script)).unwrap_err().reason();
        let charm = "echo '---- Processor 0 Exiting: Called CmiAbort ----' >&2
                     echo 'Reason: MPI_Win_flush is not implemented in AMPI.' >&2
                     echo '[0] Stack Traceback:' >&2; exit 1";
        assert_eq!(reason(charm), "MPI_Win_flush is not implemented in AMPI.");
        assert_eq!(reason("echo; echo 'bench: a wrong sum'; exit 2"), "a wrong sum");
        assert_eq!(reason("exit 3"), "ended with status 3");
        assert_eq!(reason("true"), "printed no line of figures");
    }

    #[test]
    fn no_process_outlives_a_run_that_failed_or_took_too_long() {
        // A session of its own, and a parent that is gone.
        const LEAVES_ONE: &str =
            "setsid sleep 600 & setsid sleep 600 >/dev/null 2>&1 & echo started;";
        for (end, limit) in [("exit 1", TIME_LIMIT), ("sleep 600", Duration::from_millis(300))] {
            let mark = Mark::new();
            let start = std::time::Instant::now();
            let script = format!("{LEAVES_ONE} sleep 0.1; {end}");
            assert!(run_marked(&mut shell(&script), limit, &mark).is_err());
            assert!(start.elapsed() < Duration::from_secs(60));
            assert_eq!(mark.processes(), []);
        }
    }
}
