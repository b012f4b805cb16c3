//! Ranks that call what blocks a thread: they are suspended, and their neighbours run.
//!
//! Most of these jobs hang if the thread of a PE is blocked, for the rank that would end the wait is
//! on the same PE.

use std::process::{Output, Stdio};

use vrt_tests::job;

/// Runs a job of `blocks` with 8 ranks on 2 PEs; one that hangs is killed.
#[track_caller]
fn run(arguments: &[&str]) -> Output {
    let mut command = job::program(env!("CARGO_BIN_EXE_blocks"));
    command.args(["--pes", "2", "--ranks", "8"]).args(arguments).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a job, without and with a thread in each PE that could do what the ranks wait for.
#[track_caller]
fn is_well(arguments: &[&str]) {
    for more in [&[][..], &["--beside-a-thread"]] {
        let output = run(&[arguments, more].concat());
        let text = stderr(&output);
        assert!(output.status.success(), "{arguments:?} {more:?}: {}: {text}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n", "{arguments:?}");
    }
}

/// The times, in milliseconds, that ranks say they slept. Four ranks of a PE that slept one after
/// another would have needed four times as long as the one of them that is first.
fn slept(output: &Output) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| line.strip_prefix("slept ")?.strip_suffix(" ms")?.parse().ok())
        .collect()
}

#[test]
fn sleeps_of_ranks_do_not_add_up() {
    let output = run(&["sleep"]);
    let times = slept(&output);
    assert!(times.len() == 1 && times[0] < 1200, "{times:?} {}", stderr(&output));
}

#[test]
fn an_async_rank_that_sleeps_stops_only_itself() {
    let output = run(&["sleep-async"]);
    let times = slept(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(times.len() == 8 && times.iter().all(|time| *time < 1200), "{times:?}");
}

#[test]
fn every_call_that_sleeps_suspends_the_rank() {
    is_well(&["sleep-calls"]);
}

#[test]
fn a_sleeping_rank_moves() {
    let moves = ["--lb", "rotate", "--lb-period", "2ms", "--statistics"];
    for nodes in ["1", "2"] {
        let output = run(&[&moves[..], &["--node-size", nodes, "sleep-moving"]].concat());
        let text = stderr(&output);
        assert!(output.status.success(), "{text}");
        let moved = text.split(" ranks moved").next().and_then(|all| all.rsplit(' ').next());
        assert!(moved.is_some_and(|moved| moved.parse::<u32>().is_ok_and(|n| n > 0)), "{text}");
    }
}

#[test]
fn a_lock_may_be_held_while_neighbours_run() {
    is_well(&["mutex"]);
    is_well(&["rw-lock"]);
}

#[test]
fn ranks_wake_each_other() {
    is_well(&["condvar"]);
    is_well(&["barrier"]);
    is_well(&["once"]);
}

#[test]
fn waits_for_a_time_do_not_add_up() {
    is_well(&["condvar-timeout"]);
    is_well(&["park-timeout"]);
}

#[test]
fn ranks_wait_for_threads() {
    is_well(&["scope"]);
    is_well(&["join"]);
    is_well(&["park"]);
    is_well(&["channel"]);
    is_well(&["stress"]);
}

#[test]
fn who_counts_on_the_thread_has_it() {
    is_well(&["rayon"]);
    is_well(&["tokio"]);
}

#[test]
fn ranks_that_wait_for_each_others_locks_are_a_deadlock() {
    let output = run(&["deadlock"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(70), "{text}");
    for rank in 0..2 {
        let row = format!("rank {rank} (PE 0) waits for a lock or condition at 0x");
        assert!(text.contains(&row), "{row:?} is missing in:\n{text}");
    }
    assert!(text.contains("rank 2 (PE 0) waits in barrier"), "{text}");
}
