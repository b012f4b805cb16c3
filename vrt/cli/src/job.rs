//! Jobs: programs that run within a time limit, and what they print.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// A command, of words that spaces separate.
#[must_use]
pub fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// A command as a user would type it.
#[must_use]
pub fn line(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// The command with a time limit, after which its process group is ended: the status is 124, or 137 if SIGTERM did not end
/// it. It is asked to end if the thread that starts it ends first.
#[must_use]
pub fn limited(limit: Duration, command: &Command) -> Command {
    let mut limited = self::command("setpriv --pdeathsig TERM timeout --kill-after=10");
    limited.arg(limit.as_secs_f64().to_string());
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    limited
}

/// A job that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its outputs. A pipe would stay open as long as any process that the job leaves behind.
    out: NamedTempFile,
    err: NamedTempFile,
    line: String,
    limit: Duration,
    began: Instant,
}

impl Running {
    /// Starts a job without input that has to end within a time limit.
    ///
    /// # Errors
    /// `setpriv` or a temporary file is missing. If the job's program is, the job ends with status 127.
    pub fn start(limit: Duration, command: &Command) -> io::Result<Running> {
        let file = || tempfile::Builder::new().append(true).tempfile();
        let (out, err) = (file()?, file()?);
        let mut limited = limited(limit, command);
        limited.stdin(Stdio::null());
        limited.stdout(out.as_file().try_clone()?).stderr(err.as_file().try_clone()?);
        let (began, line) = (Instant::now(), line(command));
        Ok(Running { child: limited.spawn()?, out, err, line, limit, began })
    }

    /// What it has printed to its standard output until now.
    ///
    /// # Errors
    /// The system does not read the file.
    pub fn out(&self) -> io::Result<String> {
        read(&self.out)
    }

    /// The job when it has ended.
    ///
    /// # Errors
    /// The system does not wait for it, or does not read its outputs.
    pub fn end(mut self) -> io::Result<Ended> {
        let status = self.child.wait()?;
        let status = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
        let time = self.began.elapsed();
        // A job may end with such a status by itself, too.
        let in_time = !matches!(status, 124 | 137) || time < self.limit;
        let (out, err) = (read(&self.out)?, read(&self.err)?);
        Ok(Ended { line: self.line, status, in_time, out, err, seconds: time.as_secs_f64() })
    }
}

fn read(file: &NamedTempFile) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(file.path())?).into_owned())
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its command line.
    pub line: String,
    /// Its status, as a shell has it.
    pub status: i32,
    /// Whether it ended within the limit.
    pub in_time: bool,
    /// What it printed to its standard output.
    pub out: String,
    /// What it printed to its standard error.
    pub err: String,
    /// How long it took.
    pub seconds: f64,
}

/// Runs a job that has to end within a time limit.
///
/// # Errors
/// As for [`Running`].
pub fn run(limit: Duration, command: &Command) -> io::Result<Ended> {
    Running::start(limit, command)?.end()
}

impl Ended {
    /// All that it printed.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// What is wrong with a job that has to succeed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        match self.in_time {
            false => Some(format!("does not end in {:.0} s", self.seconds)),
            true => (self.status != 0).then(|| format!("status {}", self.status)),
        }
    }

    /// What is wrong with a job that has to succeed and to say that it has verified its result.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let says_nothing = || (!says_ok(&self.text())).then(|| "does not say ok".to_owned());
        self.failure().or_else(says_nothing)
    }

    /// How many times the balancer has moved a rank; 0 also if there was no balancer.
    #[must_use]
    pub fn moved(&self) -> u64 {
        Balanced::find(&self.err).map_or(0, |it| it.moved)
    }
}

/// Whether a line says that a result was verified: it is `ok`, has it after a comma or a colon, or is `verification  ok`.
#[must_use]
pub fn says_ok(text: &str) -> bool {
    let before_ok = |line: &str| {
        line.strip_suffix("ok").is_some_and(|before| {
            let is_alone = before.is_empty() || before.trim_end() == "verification";
            is_alone || before.ends_with(", ") || before.ends_with(": ")
        })
    };
    text.lines().any(before_ok)
}

/// What the balancer reports at the end of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balanced {
    /// The number of steps.
    pub steps: u64,
    /// How many times they have moved a rank.
    pub moved: u64,
}

impl Balanced {
    /// Finds the report in what a job printed to its standard error.
    #[must_use]
    pub fn find(text: &str) -> Option<Balanced> {
        text.lines().find_map(|line| {
            let (_, report) = line.split_once("load balancing: ")?;
            if report.contains("no step was taken") {
                return Some(Balanced::default());
            }
            let before = |what| report.split_once(what)?.0.rsplit(' ').next()?.parse().ok();
            Some(Balanced { steps: before(" step")?, moved: before(" rank")? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(limit: u64, script: &str) -> Ended {
        run(Duration::from_secs(limit), Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_job_has_to_succeed_and_to_say_ok() {
        let fault = |script: &str| shell(60, script).fault();
        assert_eq!(fault("echo out; echo soak: 3 rounds, ok >&2; echo vrt: a note"), None);
        assert_eq!(fault("echo ok; exit 3").as_deref(), Some("status 3"));
        assert_eq!(fault("echo ok; kill -9 $$").as_deref(), Some("status 137"));
        assert_eq!(fault("echo not ok").as_deref(), Some("does not say ok"));
        let nowhere = run(Duration::from_secs(60), &command("/nowhere/at/all")).unwrap();
        assert!(nowhere.status == 127 && nowhere.err.contains("/nowhere"), "{}", nowhere.err);
    }

    #[test]
    fn only_a_word_of_its_own_at_the_end_of_a_line_says_ok() {
        for text in ["ok", "12 moves\nx, ok\nlast line", "a: ok\n", "verification   ok"] {
            assert!(says_ok(text), "{text}");
        }
        for text in ["", "soak: it broke", "token", "not ok", "look: ok so far", ", ok?"] {
            assert!(!says_ok(text), "{text}");
        }
    }

    #[test]
    fn the_balancer_reports_how_many_ranks_its_steps_moved() {
        let found = |text: &str| Balanced::find(text).map(|it| (it.steps, it.moved));
        let text = "hello\nvrt: load balancing: greedy-refine: 20 steps, 3 of them not worth a move, 50 ranks moved (1.0 MiB)";
        assert_eq!(found(text), Some((20, 50)));
        assert_eq!(found("vrt: load balancing: x: 4 steps, 1 rank moved in 0.1 s"), Some((4, 1)));
        let none = "load balancing: x: no step was taken: the job was over before the first one";
        assert_eq!(found(none), Some((0, 0)));
        assert_eq!((found(""), found("load balancing: no number ranks moved")), (None, None));
    }

    #[test]
    fn what_is_asked_of_a_command_is_asked_of_the_limited_one() {
        let mut command = command("sh -c");
        command.args(["echo $0 $VRT_OF_TEST ${HOME-none}; pwd", "x"]);
        command.env("VRT_OF_TEST", "7").env_remove("HOME").current_dir("/");
        assert_eq!(run(Duration::from_secs(60), &command).unwrap().out, "x 7 none\n/\n");
    }

    #[test]
    fn nothing_of_a_job_outlives_its_limit() {
        let job = shell(1, "sleep 600 & echo $!; wait");
        assert!(!job.in_time && job.seconds < 60.0);
        let file = format!("/proc/{}/stat", job.out.trim());
        let is_gone = || fs::read_to_string(&file).map_or(true, |it| it.contains(") Z "));
        let was_gone = (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            is_gone()
        });
        assert!(was_gone, "{file}");
    }

    #[test]
    fn a_job_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = command("sh -c");
            command.arg("echo begun; exec sleep 500");
            let job = Running::start(Duration::from_secs(600), &command).unwrap();
            while job.out().unwrap().is_empty() {
                std::thread::sleep(Duration::from_millis(10));
            }
            job
        };
        let job = std::thread::spawn(start).join().unwrap().end().unwrap();
        assert!(job.seconds < 60.0 && job.status != 0, "{job:?}");
    }
}
