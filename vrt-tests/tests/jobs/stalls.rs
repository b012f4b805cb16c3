//! The watchdog: who keeps a PE's thread from its ranks is named.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Output, Stdio};

use vrt_tests::job;

/// A job of 4 ranks on 2 PEs whose standard input stays open.
fn start(arguments: &[&str]) -> Child {
    let mut command = job::program(env!("CARGO_BIN_EXE_stalls"));
    command.args(["--pes", "2", "--ranks", "4"]).args(arguments).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(arguments: &[&str]) -> (Output, String) {
    let output = start(arguments).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

/// The lines of standard error until one has all these words, or the end.
fn lines_until(stderr: &mut BufReader<ChildStderr>, words: &[&str]) -> (String, bool) {
    let mut text = String::new();
    for line in stderr.lines() {
        let line = line.unwrap();
        text += &format!("{line}\n");
        if words.iter().all(|word| line.contains(word)) {
            return (text, true);
        }
    }
    (text, false)
}

/// Starts a job that goes on when its standard input ends, which it does when the words are said.
#[track_caller]
fn is_said(what: &str, words: &[&str]) {
    let mut child = start(&["--watchdog", "200ms", what]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (mut text, found) = lines_until(&mut stderr, words);
    assert!(found, "{words:?} are missing in:\n{text}");
    drop(child.stdin.take());
    stderr.read_to_string(&mut text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}: {text}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n");
    let times = text.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    assert_eq!(times, 1, "once is enough:\n{text}");
}

#[test]
fn a_rank_that_blocks_its_thread_is_named_with_its_call() {
    is_said(
        "read",
        &["rank 0 has kept the thread of PE 0", "in the system call read", "have come"],
    );
}

#[test]
fn a_rank_that_computes_is_named_if_others_wait() {
    is_said("compute", &["rank 0 has kept the thread of PE 0", "computing", "have come"]);
}

#[test]
fn a_rank_that_nobody_waits_for_is_not() {
    let (output, text) = run(&["--watchdog", "50ms", "alone"]);
    assert!(output.status.success() && text.is_empty(), "{}: {text}", output.status);
}

#[test]
fn a_task_that_blocks_the_thread_is_not_taken_for_a_rank() {
    let words =
        ["a tokio task has kept the thread of PE 0", "in the system call read", "have come"];
    is_said("task", &words);
}

#[test]
fn a_lock_that_a_neighbour_holds_is_a_deadlock() {
    let (output, text) = run(&["--watchdog", "200ms", "mutex"]);
    assert_eq!(output.status.code(), Some(70), "{text}");
    for words in [
        "rank 1 has blocked the thread of PE 0",
        "no thread is there that could wake it",
        "vrt: deadlock",
        "rank 0 (PE 0) waits in receive with rank 1",
        "rank 1 (PE 0) waits for a lock or condition at 0x",
    ] {
        assert!(text.contains(words), "{words:?} is missing in:\n{text}");
    }
}

#[test]
fn a_lock_that_a_thread_may_unlock_is_none() {
    let words = ["rank 1 has kept the thread of PE 0", "waiting for a lock or condition at 0x"];
    is_said("mutex-and-thread", &words);
}

#[test]
fn the_watchdog_is_a_thread_of_each_pe_if_it_is_wanted() {
    let threads = [("off", r#"["vrt-shares"]"#), ("10s", r#"["vrt-shares", "vrt-watchdog"]"#)];
    for (watchdog, threads) in threads {
        let (output, text) = run(&["--watchdog", watchdog, "nothing"]);
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        for pe in 0..2 {
            let line = format!("PE {pe} has the threads {threads}");
            assert_eq!(out.matches(&line).count(), 2, "--watchdog {watchdog}: {out}{text}");
        }
    }
}

#[test]
fn wrong_times_are_named() {
    let (output, text) = run(&["--watchdog", "soon", "nothing"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("'soon'") && text.contains("`off` is allowed"), "{text}");
}

#[test]
fn a_panic_in_a_task_is_said_of_no_rank() {
    for what in ["task-panic", "task-panic-asked"] {
        let (output, text) = run(&[what]);
        assert!(output.status.success(), "{what}: {}: {text}", output.status);
        assert!(text.contains("vrt: panic in a tokio task on PE 0:"), "{what}: {text}");
        assert!(text.contains("this is what went wrong"), "{what}: {text}");
        assert!(!text.contains("panic in rank"), "{what}: {text}");
    }
}
