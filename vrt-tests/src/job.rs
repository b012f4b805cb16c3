//! A job that a test runs to its end, and what it has said.
//!
//! That a program ended with status 0 shows that nothing was noticed. So a test asks for more: the
//! line by which the program says that it has compared its results, and that ranks have moved where
//! the test is about moving. Panics say what is wrong: only tests use it.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Duration;

use vrt_cli::job::{Balanced, limited, says_ok};

/// The time after which a job is taken to hang, on the busiest machine; `VRT_TEST_LIMIT` names other seconds.
fn limit() -> Duration {
    let named = std::env::var("VRT_TEST_LIMIT").ok();
    Duration::from_secs(named.map_or(300, |it| it.parse().expect("VRT_TEST_LIMIT is a number")))
}

/// Whether a test takes all of its cases, also those that take long: `VRT_TEST_ALL` is set, as it is by
/// `scripts/test --all`.
#[must_use]
pub fn takes_all_cases() -> bool {
    std::env::var_os("VRT_TEST_ALL").is_some()
}

/// How the PEs of a job are shared out among nodes: one for all, and one for each; of all cases also nodes of
/// several PEs.
pub fn nodes() -> impl Iterator<Item = &'static str> {
    let rare = takes_all_cases().then_some("--node-size 2");
    ["", "--node-size 1"].into_iter().chain(rare)
}

/// A command that starts a program of ours, and ends it when it hangs: with status 124, or 137 if it does
/// not listen. Signals for the program would come to `timeout`; see [`unlimited`].
#[must_use]
pub fn program(path: impl AsRef<OsStr>) -> Command {
    limited(limit(), &unlimited(path))
}

/// A command that starts a program of ours which the test itself ends, whatever happens.
#[must_use]
pub fn unlimited(path: impl AsRef<OsStr>) -> Command {
    Command::new(path)
}

/// A job that has ended.
#[derive(Debug)]
pub struct Job {
    /// Its arguments, or the whole command.
    pub name: String,
    /// Its status; none if a signal has ended it. 124 or 137 is that of a job that hung.
    pub status: Option<i32>,
    /// What it printed.
    pub out: String,
    /// What it said on its standard error.
    pub err: String,
}

impl Job {
    /// Runs a program with these arguments, separated by spaces; ends it if it hangs.
    #[must_use]
    pub fn run(program: &str, arguments: &str) -> Job {
        let mut command = unlimited(program);
        command.args(arguments.split_whitespace());
        let mut job = Job::of(command);
        job.name = arguments.to_owned();
        job
    }

    /// Runs a command; ends it if it hangs.
    #[must_use]
    pub fn of(mut command: Command) -> Job {
        command.env("RUST_BACKTRACE", "0");
        let mut limited = limited(limit(), &command);
        let output = limited.stdin(Stdio::null()).output().expect("the program can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Job {
            name: format!("{command:?}"),
            status: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// The job, if it has ended well.
    #[track_caller]
    #[must_use]
    pub fn succeeds(self) -> Job {
        assert_eq!(self.status, Some(0), "{self}");
        self
    }

    /// The job, if it has ended well and says that it has compared its results.
    #[track_caller]
    #[must_use]
    pub fn is_right(self) -> Job {
        let job = self.succeeds();
        assert!(says_ok(&job.out), "no line says ok: {job}");
        job
    }

    /// The same of a job whose ranks were moved more than so many times by the balancer.
    #[track_caller]
    pub fn is_right_after_moves(self, more_than: u64) -> Job {
        let job = self.is_right();
        let moved = job.moved();
        assert!(moved > more_than, "{moved} moves only: {job}");
        job
    }

    /// How many times the balancer has moved a rank, as it says at the end of a job.
    #[track_caller]
    #[must_use]
    pub fn moved(&self) -> u64 {
        let report = Balanced::find(&self.err);
        report.unwrap_or_else(|| panic!("the balancer does not say what it did: {self}")).moved
    }

    /// The number in front of a word of what it printed.
    #[track_caller]
    #[must_use]
    pub fn number_before(&self, word: &str) -> u64 {
        let words: Vec<&str> = self.out.split_whitespace().collect();
        let at = words.iter().position(|at| at.trim_end_matches(',') == word);
        let number = at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok());
        number.unwrap_or_else(|| panic!("no number before {word:?}: {self}"))
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Programs that print a lot say at the end what went wrong.
        let end = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(60)..].join("\n")
        };
        write!(f, "{}: status {:?}\n{}\n{}", self.name, self.status, end(&self.out), end(&self.err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_what_a_job_says() {
        let job = Job {
            name: "job".to_owned(),
            status: Some(0),
            out: "migrate_stress: 20 rounds of 4 ranks, 80 moves, ok\n".to_owned(),
            err: "vrt: load balancing: rotate: 20 steps, 81 ranks moved (1.0 MiB), 2 ms".to_owned(),
        };
        assert_eq!((job.moved(), job.number_before("moves")), (81, 80));
    }

    #[test]
    #[should_panic(expected = "status Some(3)")]
    fn a_job_that_failed_is_not_right() {
        let command = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            Job::of(command)
        };
        assert_eq!(command("echo 'all, ok'").is_right().out, "all, ok\n");
        let _ = command("echo 'all, ok'; exit 3").is_right();
    }
}
