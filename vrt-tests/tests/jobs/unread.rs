//! Jobs whose messages nobody reads: they end with the same status, and soon.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vrt_tests::job::{self, takes_all_cases};
use vrt_tests::running::Running;

const MISBEHAVE: &str = env!("CARGO_BIN_EXE_misbehave");

/// A job of `misbehave` by this command.
fn job(mut command: Command, what: &str) -> Command {
    command.args(["--pes", "2", "--ranks", "8", what]).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null());
    command
}

/// Places for messages that take none, with what has to live as long.
fn deaf() -> Vec<(&'static str, Stdio, Option<OwnedFd>)> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = OwnedFd::from(writer);
    let full_device = File::options().write(true).open("/dev/full").unwrap();
    let pipe = |flags: i32| {
        let (reader, writer) = std::io::pipe().unwrap();
        let end = writer.as_raw_fd();
        // SAFETY: plain system calls on our own pipe.
        unsafe { libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK) };
        let mut writer = File::from(OwnedFd::from(writer));
        while writer.write(&[b'x'; 4096]).is_ok() {}
        while writer.write(b"x").is_ok() {}
        // SAFETY: as above.
        unsafe { libc::fcntl(end, libc::F_SETFL, flags) };
        (Stdio::from(writer), Some(OwnedFd::from(reader)))
    };
    let (waiting, unread) = pipe(0);
    let (refusing, unread_too) = pipe(libc::O_NONBLOCK);
    vec![
        ("a closed pipe", closed.into(), None),
        ("a full device", full_device.into(), None),
        ("a full pipe", waiting, unread),
        ("a full pipe that does not wait", refusing, unread_too),
    ]
}

/// Does something for each of these places at a time: most jobs wait a while for a reader.
fn with_each_place(check: impl Fn(&str, Stdio) + Sync) {
    std::thread::scope(|scope| {
        for (place, stderr, reader) in deaf() {
            let check = &check;
            scope.spawn(move || {
                check(place, stderr);
                drop(reader);
            });
        }
    });
}

#[test]
fn signals_end_a_job_with_their_status_though_nobody_reads_its_messages() {
    let signals = [(libc::SIGTERM, 143), (libc::SIGHUP, 129), (libc::SIGINT, 130)];
    for (signal, status) in signals.into_iter().take(if takes_all_cases() { 3 } else { 1 }) {
        with_each_place(|place, stderr| {
            let mut running =
                Running::start_with_stderr(job(job::unlimited(MISBEHAVE), "wait-forever"), stderr);
            let start = Instant::now();
            // SAFETY: a plain system call on our own process.
            unsafe { libc::kill(running.parent.id() as i32, signal) };
            let got = running.parent.wait().unwrap();
            assert_eq!(got.code(), Some(status), "{place}: {got}");
            running.expect_end(start, Duration::from_secs(60));
        });
    }
}

#[test]
fn a_killed_pe_ends_a_job_though_nobody_reads_its_messages() {
    with_each_place(|place, stderr| {
        let mut running =
            Running::start_with_stderr(job(job::unlimited(MISBEHAVE), "wait-forever"), stderr);
        let start = Instant::now();
        // SAFETY: a plain system call on our own process.
        unsafe { libc::kill(running.pes[1], libc::SIGKILL) };
        let got = running.parent.wait().unwrap();
        assert_eq!(got.code(), Some(137), "{place}: {got}");
        running.expect_end(start, Duration::from_secs(60));
    });
}

#[test]
fn a_job_that_goes_wrong_by_itself_keeps_its_status_though_nobody_reads_its_messages() {
    let wrong = [("deadlock", 70), ("null-pointer", 139), ("recursion", 70)];
    for (what, status) in wrong.into_iter().take(if takes_all_cases() { 3 } else { 2 }) {
        with_each_place(|place, stderr| {
            let got = job(job::program(MISBEHAVE), what)
                .stdout(Stdio::null())
                .stderr(stderr)
                .status()
                .unwrap();
            assert_eq!(got.code(), Some(status), "{what}, {place}: {got}");
        });
    }
    with_each_place(|place, stderr| {
        let mut wrong = job(job::program(MISBEHAVE), "nothing");
        let got = wrong.arg("--stack").arg("10").stderr(stderr).status().unwrap();
        assert_eq!(got.code(), Some(2), "{place}: {got}");
    });
}
