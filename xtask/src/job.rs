//! Jobs: a program runs within a time limit, in a process group that is killed after it, and what it prints is kept.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use regex::Regex;
use tempfile::NamedTempFile;

use crate::steps::{Error, at};

/// Seconds that nothing takes.
const NO_LIMIT: u64 = 1_000_000_000;

/// A job that has verified its result says so: a line is or ends with ok. Notes of the balancer may follow.
static OK: LazyLock<Regex> = LazyLock::new(|| regex("(?m)(^|, |: |^verification +)ok$"));
/// How many ranks the balancer has moved, which it reports at the end.
static MOVED: LazyLock<Regex> = LazyLock::new(|| regex("load balancing: .* ([0-9]+) ranks? moved"));

/// A regular expression of this program's own.
pub(crate) fn regex(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

/// A command, of words that spaces separate.
pub(crate) fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// A command as a user would type it.
fn line_of(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// A job that runs. It is asked to end if this program dies.
pub(crate) struct Running {
    child: Child,
    log: NamedTempFile,
    line: String,
    limit: u64,
    began: Instant,
}

impl Running {
    /// Starts a job that has to end within so many seconds.
    pub(crate) fn start(limit: u64, command: &Command) -> Result<Running, Error> {
        let log = NamedTempFile::new().map_err(at(&std::env::temp_dir()))?;
        let mut limited = Command::new("setpriv");
        limited.args(["--pdeathsig", "TERM", "timeout", "--kill-after=10", &limit.to_string()]);
        limited.arg(command.get_program()).args(command.get_args());
        limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
        let start = || {
            let output = log.reopen()?;
            limited.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()
        };
        let child = { start }().map_err(at(Path::new("setpriv")))?;
        Ok(Running { child, log, line: line_of(command), limit, began: Instant::now() })
    }

    /// What it has printed until now.
    pub(crate) fn text(&self) -> Result<String, Error> {
        let bytes = fs::read(self.log.path()).map_err(at(self.log.path()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The job when it has ended.
    pub(crate) fn end(mut self) -> Result<Ended, Error> {
        let status = self.child.wait().map_err(at(Path::new(&self.line)))?;
        let status = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
        let seconds = self.began.elapsed().as_secs_f64();
        // A job may kill itself, too.
        let in_time = status != 124 && (status != 137 || seconds < self.limit as f64);
        Ok(Ended { text: self.text()?, line: self.line, status, in_time, seconds })
    }
}

/// A job that has ended.
pub(crate) struct Ended {
    /// Its command line.
    pub(crate) line: String,
    /// Its status, as a shell has it.
    pub(crate) status: i32,
    /// Whether it ended within the limit.
    pub(crate) in_time: bool,
    /// What it printed, to either stream.
    pub(crate) text: String,
    /// How long it took.
    pub(crate) seconds: f64,
}

impl Ended {
    /// What is wrong with a job that has to succeed.
    pub(crate) fn failure(&self) -> Option<String> {
        match self.in_time {
            false => Some(format!("does not end in {:.0} s", self.seconds)),
            true => (self.status != 0).then(|| format!("status {}", self.status)),
        }
    }

    /// What is wrong with a job that has to succeed and to say that it has verified its result.
    pub(crate) fn fault(&self) -> Option<String> {
        let says_nothing = || (!OK.is_match(&self.text)).then(|| "does not say ok".to_owned());
        self.failure().or_else(says_nothing)
    }

    /// How many ranks the balancer has moved.
    pub(crate) fn moved(&self) -> u64 {
        MOVED.captures(&self.text).and_then(|it| it[1].parse().ok()).unwrap_or(0)
    }

    /// The job, if nothing is wrong; else shows all that it printed.
    pub(crate) fn unless(self, fault: Option<String>) -> Result<Ended, Error> {
        let Some(fault) = fault else { return Ok(self) };
        eprint!("{}", self.text);
        Err(Error::Failed(format!("{fault}: {}", self.line)))
    }

    /// The last lines that it printed.
    pub(crate) fn last_lines(&self) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        lines[lines.len().saturating_sub(5)..].iter().map(|it| format!("\n      {it}")).collect()
    }
}

/// Runs a job that has to end within so many seconds.
pub(crate) fn run(limit: u64, command: &Command) -> Result<Ended, Error> {
    Running::start(limit, command)?.end()
}

/// Runs a command that has to succeed.
pub(crate) fn succeed(command: &Command) -> Result<Ended, Error> {
    let ended = run(NO_LIMIT, command)?;
    let failure = ended.failure();
    ended.unless(failure)
}

/// Waits until something is so, for so many seconds at most; returns whether it is.
pub(crate) fn until(seconds: u32, mut is_so: impl FnMut() -> bool) -> bool {
    (0..10 * seconds).any(|_| {
        let holds = is_so();
        sleep(Duration::from_millis(if holds { 0 } else { 100 }));
        holds
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(limit: u64, script: &str) -> Ended {
        run(limit, Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_job_has_to_succeed_and_to_say_ok() {
        let fault = |script: &str| shell(60, script).fault();
        assert_eq!(fault("echo out; echo soak: 3 rounds, ok >&2; echo vrt: a note"), None);
        assert_eq!(fault("echo 'verification   ok'"), None);
        assert_eq!(fault("echo ok; exit 3").as_deref(), Some("status 3"));
        assert_eq!(fault("echo ok; kill -9 $$").as_deref(), Some("status 137"));
        for text in ["", "not ok", "token", "x, ok?"] {
            let fault = fault(&format!("echo '{text}'"));
            assert_eq!(fault.as_deref(), Some("does not say ok"), "{text}");
        }
        let nowhere = run(60, &command("/nowhere/at/all")).unwrap();
        assert!(nowhere.status == 127 && nowhere.text.contains("/nowhere"), "{}", nowhere.text);
    }

    #[test]
    fn the_balancer_reports_how_many_ranks_moved() {
        let moved = |text| shell(60, &format!("echo vrt: load balancing: x: {text}")).moved();
        assert_eq!(moved("4 steps, 12 ranks moved in 0.1 s"), 12);
        assert_eq!(moved("no step was taken"), 0);
    }

    #[test]
    fn nothing_of_a_job_outlives_its_limit() {
        let job = shell(1, "sleep 600 & echo $!; wait");
        assert!(!job.in_time && job.seconds < 60.0);
        let file = format!("/proc/{}/stat", job.text.trim());
        let is_gone = || fs::read_to_string(&file).map_or(true, |it| it.contains(") Z "));
        assert!(until(60, is_gone), "{file}");
    }
}
