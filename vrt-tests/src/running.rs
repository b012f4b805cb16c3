//! A job that runs until somebody ends it, and what tests have to know of it.
//!
//! Panics say what is wrong: only tests use it.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `misbehave run-forever` or `wait-forever`, with 8 ranks on 2 PEs.
#[derive(Debug)]
pub struct Running {
    /// The supervisor, or the launcher.
    pub parent: Child,
    /// The process of each PE, in order of their numbers.
    pub pes: Vec<i32>,
}

impl Running {
    /// Starts a job; returns when all ranks run.
    pub fn start(job: Command) -> Running {
        Running::start_with_stderr(job, Stdio::piped())
    }

    /// [`start`](Self::start), with another place for messages.
    pub fn start_with_stderr(mut job: Command, stderr: Stdio) -> Running {
        let mut parent =
            job.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the job can be started");
        let stdout = parent.stdout.take().expect("it was piped");
        let mut lines = BufReader::new(stdout).lines();
        let mut pes: Vec<i32> = (0..8)
            .map(|_| {
                let line = lines.next().and_then(Result::ok).expect("a line of each rank");
                let pid = line.rsplit(' ').next().and_then(|word| word.parse().ok());
                pid.expect("it ends with the number of the process")
            })
            .collect();
        pes.sort_unstable();
        pes.dedup();
        assert_eq!(pes.len(), 2);
        // Keeps the pipe open, so that nobody dies of writing to it.
        std::mem::forget(lines);
        Running { parent, pes }
    }

    /// Waits until the processes of all PEs have ended, at most until `limit` after `start`.
    #[track_caller]
    pub fn expect_end(&self, start: Instant, limit: Duration) {
        while self.pes.iter().any(|pe| is_alive(*pe)) {
            assert!(start.elapsed() < limit, "a PE outlives the job");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Waits until something is so.
///
/// # Panics
/// If that takes longer than the busiest machine needs.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Clock ticks (1/100 s) of processor time that a process has used; 0 if there is none.
#[must_use]
pub fn cpu_ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let (_, after) = stat.rsplit_once(')').unwrap_or_default();
    // User and system time.
    after.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Whether a process runs; a zombie does not.
#[must_use]
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}
