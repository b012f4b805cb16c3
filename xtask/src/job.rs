//! Jobs of the checks.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use regex::Regex;
use vrt_cli::job;
pub(crate) use vrt_cli::job::{Ended, Running, command};

use crate::steps::Error;

/// Seconds that nothing takes.
const NO_LIMIT: u64 = 1_000_000_000;

/// A regular expression of this program's own.
pub(crate) fn regex(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Runs a job that has to end within so many seconds.
pub(crate) fn run(limit: u64, command: &Command) -> Result<Ended, Error> {
    Ok(job::run(Duration::from_secs(limit), command)?)
}

/// Runs a command that has to succeed.
pub(crate) fn succeed(command: &Command) -> Result<Ended, Error> {
    let ended = run(NO_LIMIT, command)?;
    let failure = ended.failure();
    right(ended, failure)
}

/// The job, if nothing is wrong; else shows all that it printed.
pub(crate) fn right(job: Ended, fault: Option<String>) -> Result<Ended, Error> {
    let Some(fault) = fault else { return Ok(job) };
    eprint!("{}", job.text());
    Err(Error::Failed(format!("{fault}: {}", job.line)))
}

/// The last lines that a job printed.
pub(crate) fn last_lines(job: &Ended) -> String {
    let text = job.text();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].iter().map(|it| format!("\n      {it}")).collect()
}

/// Waits until something is so, for so many seconds at most; returns whether it is.
pub(crate) fn until(seconds: u32, mut is_so: impl FnMut() -> bool) -> bool {
    (0..10 * seconds).any(|_| {
        let holds = is_so();
        sleep(Duration::from_millis(if holds { 0 } else { 100 }));
        holds
    })
}
