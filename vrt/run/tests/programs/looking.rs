//! Inspects a running job: `vrtrun top`, `--monitor`, SIGUSR1.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use vrt_launch::monitor::{Connection, Snapshot};
use vrt_tests::executable::install;
use vrt_tests::job::{self, Job};
use vrt_tests::running::until;

use crate::program::Program;

const TOKEN: Program = Program::new("token.c");
const SHARES: Program = Program::new("shares.c");
const VRTRUN: &str = env!("CARGO_BIN_EXE_vrtrun");
const RANKS: u32 = 8;

/// A job that runs until it is told to end.
struct Running {
    child: Child,
    /// Its output so far.
    said: Arc<Mutex<String>>,
    folder: TempDir,
}

impl Running {
    fn start(options: &str) -> Running {
        let folder = TempDir::new().unwrap();
        let mut command = job::unlimited(VRTRUN);
        command.args(["--pes", "2", "--ranks", &RANKS.to_string()]);
        command.args(options.split_whitespace());
        command.arg(TOKEN.file()).arg(folder.path().join("end"));
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn({
            let said = Arc::clone(&said);
            move || collect(stderr, &said)
        });
        Running { child, said, folder }
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// The rest of the line after a text in its output.
    #[track_caller]
    fn says(&self, text: &str) -> String {
        until(text, || self.said().contains(text));
        let said = self.said();
        let (_, rest) = said.split_once(text).unwrap();
        rest.lines().next().unwrap_or_default().to_owned()
    }

    /// Ends the job; returns the number of rounds.
    #[track_caller]
    fn end(mut self) -> u64 {
        fs::write(self.folder.path().join("end"), "").unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(self.child.wait().unwrap().success(), "{}", self.said());
        out.split_whitespace().next().unwrap().parse().unwrap()
    }
}

fn collect(stderr: ChildStderr, said: &Mutex<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        *said.lock().unwrap() += &format!("{line}\n");
    }
}

/// The status and body of a page.
#[track_caller]
fn fetch(host: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Checks what holds for any job of this many ranks.
#[track_caller]
fn check(shot: &Snapshot, pid: u32) {
    assert_eq!((shot.process, shot.number_of_ranks, shot.ended), (pid, RANKS, 0), "{shot:?}");
    assert_eq!((shot.pes.len(), shot.left_out), (2, 0), "{shot:?}");
    let ranks: Vec<u32> = shot.ranks.iter().map(|it| it.rank).collect();
    assert_eq!(ranks, Vec::from_iter(0..RANKS), "{shot:?}");
    assert_eq!(shot.messages, shot.ranks.iter().map(|it| it.messages).sum::<u64>());
    // A message is two numbers.
    assert_eq!(shot.bytes, 16 * shot.messages);
    assert_eq!(shot.pes.iter().map(|pe| pe.ranks).sum::<u32>(), RANKS, "{shot:?}");
    for pe in &shot.pes {
        let parts = pe.busy + pe.idle + pe.overhead.unwrap_or_default();
        // What is booked to nobody is known to be the runtime's only when that is measured.
        let least = if pe.overhead.is_some() { 1.0 - 1e-6 } else { 0.9 };
        assert!((least..=1.0 + 1e-6).contains(&parts) && pe.process > 0, "{pe:?}");
    }
    for rank in &shot.ranks {
        assert!((0.0..=1.0).contains(&rank.load) && rank.pe < 2 && rank.memory > 0, "{rank:?}");
        assert_eq!(rank.wait.is_empty(), rank.state != "waits", "{rank:?}");
    }
}

#[test]
fn the_page_shows_what_the_job_does() {
    let job = Running::start("--monitor 0 --lb rotate --lb-period 20ms");
    let pid = job.child.id();
    let address = job.says("the monitor is at http://");
    let (host, path) = address.split_once('/').unwrap();
    let (status, page) = fetch(host, &format!("/{path}"));
    assert!(status == 200 && page.contains("<title>vrt monitor</title>"), "{status} {page}");

    let look = || -> Snapshot {
        let (status, text) = fetch(host, &format!("/{path}snapshot"));
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    // Once all have sent, and some have moved: a rank that has not run yet has nothing to show.
    until("moves", || {
        let seen = look();
        seen.moves.len() > 3 && seen.ranks.iter().all(|it| it.messages > 0)
    });
    let first = look();
    check(&first, pid);
    until("another look", || look().messages > first.messages);
    let second = look();
    check(&second, pid);
    assert!(second.all_moves >= first.all_moves && second.seconds > first.seconds);
    assert!(second.message_rate > 0.0);
    for it in &second.moves {
        assert!(it.rank < RANKS && it.from < 2 && it.to < 2 && it.times > 0, "{it:?}");
        assert!(it.at > 0.0 && it.at <= second.seconds, "{it:?}");
    }

    for path in ["/", "/snapshot", "//snapshot", "/0123456789abcdef0123456789abcdef/snapshot"] {
        let (status, text) = fetch(host, path);
        assert!(status == 403 && text.contains("token"), "{path}: {status} {text}");
    }
    assert_eq!(fetch(host, &format!("/{path}other")).0, 404);

    let mut other = job::unlimited(VRTRUN);
    let other = Job::of({
        other.args(["--monitor", host]).arg(TOKEN.file()).arg("none");
        other
    });
    assert_eq!(other.status, Some(2), "{other}");
    assert!(other.err.contains(&format!("--monitor {host}: Address already in use")), "{other}");

    let rounds = job.end();
    assert!(second.ranks.iter().all(|it| (1..=rounds).contains(&it.messages)), "{rounds} rounds");
    assert!(TcpStream::connect(host).is_err(), "nobody listens when the job is over");
}

#[test]
fn top_asks_any_job() {
    let job = Running::start("");
    let pid = job.child.id();
    // It has a socket as soon as its PEs are there.
    until("the job", || Connection::to(pid).is_ok());
    let top = |arguments: &[&str]| {
        let mut command = job::unlimited(VRTRUN);
        command.arg("top").args(arguments);
        Job::of(command)
    };
    let shown = top(&[&pid.to_string(), "--sort", "rank"]).succeeds();
    let rows: Vec<Vec<&str>> =
        shown.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let heading = rows.iter().position(|row| row.first() == Some(&"rank")).unwrap();
    let ranks: Vec<&str> = rows[heading + 1..].iter().map(|row| row[0]).collect();
    assert_eq!(ranks, ["0", "1", "2", "3", "4", "5", "6", "7"], "{shown}");
    assert!(rows[..heading].iter().any(|row| row.starts_with(&["2", "PEs,", "8", "ranks,"])));
    let pes = rows[..heading].iter().filter(|row| row.len() == 7 && row[0].parse::<u32>().is_ok());
    let own: Vec<&str> = pes.map(|row| row[2]).collect();
    assert!(own.len() == 2 && own.iter().all(|own| own.ends_with('%')), "{shown}");
    let json = top(&["--json", "--every", "0.1", &pid.to_string()]).succeeds();
    check(&serde_json::from_str(&json.out).unwrap(), pid);

    let mut connection = Connection::to(pid).unwrap();
    let first = connection.look().unwrap();
    check(&first, pid);
    until("another look", || {
        Connection::to(pid).unwrap().look().unwrap().messages > first.messages
    });
    let rounds = job.end();
    assert!(first.messages <= rounds * u64::from(RANKS));
    assert_eq!(connection.look().unwrap_err().to_string(), "the job is over");
    let none = top(&[&pid.to_string()]);
    assert_eq!(none.status, Some(1), "{none}");
    assert!(none.err.contains(&format!("no job has process {pid}")), "{none}");
    let wrong = top(&["--every", "0"]);
    assert!(wrong.status == Some(2) && wrong.err.contains("from 0.1 to 3600"), "{wrong}");
}

/// Users who may not inspect the job are told so, not that no job exists.
#[test]
fn a_job_of_another_user() {
    let me = fs::metadata("/proc/self").unwrap().uid();
    if me != 0 {
        // Nobody else can become another user; what such a one is told is the same as of the first process.
        return;
    }
    let job = Running::start("");
    let pid = job.child.id();
    until("the job", || Connection::to(pid).is_ok());
    // A copy that anybody may execute.
    let place = TempDir::new().unwrap();
    let top = place.path().join("vrtrun-top");
    install(std::path::Path::new(VRTRUN).with_file_name("vrtrun-top"), &top);
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]).arg(&top).args(arguments);
        Job::of(command)
    };
    let other = as_nobody(&[&pid.to_string()]);
    assert_eq!(other.status, Some(1), "{other}");
    assert!(other.err.contains(&format!("process {pid} is another user's (number 0)")), "{other}");
    let none = as_nobody(&[]);
    assert!(none.status == Some(1) && none.err.contains("no job of yours runs"), "{none}");
    job.end();
}

#[test]
fn a_signal_prints_who_waits_for_what() {
    let job = Running::start("--no-bind");
    until("the job", || Connection::to(job.child.id()).is_ok());
    let mut tables = 0;
    // Between two rounds a rank that is seen may run.
    until("a rank that waits for its neighbour", || {
        assert!(
            Command::new("kill")
                .args(["-USR1", &job.child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        tables += 1;
        until("a table", || job.said().matches(" run or could, ").count() >= tables);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let said = job.said();
        (0..RANKS).any(|rank| {
            let before = (rank + RANKS - 1) % RANKS;
            said.contains(&format!(
                "rank {rank} (PE {}) waits in MPI_Recv with rank {before}, tag 7",
                rank / 4
            ))
        })
    });
    job.end();
}

/// Where a PE's time goes: into the runtime if ranks only send, and hardly any of it if they only compute.
#[test]
fn statistics_tell_the_runtimes_own_time_from_that_of_ranks() {
    let own = |arguments: &str| {
        let job = Job::of(SHARES.job("--pes 1 --ranks 2 --statistics", arguments));
        assert_eq!(job.status, Some(0), "{job}");
        let line = job.err.lines().find(|line| line.starts_with("vrt: PE 0: in ranks ")).unwrap();
        let (_, own) = line.split_once("the runtime's own ").unwrap();
        let (_, looks) = own.split_once('(').unwrap();
        let looks: u32 = looks.split_once(' ').unwrap().0.parse().unwrap();
        assert!(looks > 10, "{line}");
        own.split_once('%').unwrap().0.parse::<f64>().unwrap()
    };
    let (sends, computes) = (own("sends"), own("computes"));
    assert!(computes < 10.0 && sends > computes + 10.0, "{sends}% and {computes}%");
}
