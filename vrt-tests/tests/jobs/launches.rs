//! Jobs and local runs in one process: each ends right, or is refused with a reason.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use vrt_tests::job;

fn command(what: &str) -> Command {
    let mut command = job::program(env!("CARGO_BIN_EXE_launches"));
    command.arg(what).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    command
}

/// Runs it; checks its status, and lines of its output and words of its messages.
#[track_caller]
fn run_as(mut command: Command, status: i32, lines: &[&str], words: &[&str]) -> Output {
    let output = command.output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{}:\n{out}\n{err}", output.status);
    for line in lines {
        assert!(out.lines().any(|other| other == *line), "{line:?} is missing in:\n{out}\n{err}");
    }
    for word in words {
        assert!(err.contains(word), "{word:?} is missing in:\n{err}");
    }
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn run(what: &str, status: i32, lines: &[&str], words: &[&str]) {
    run_as(command(what), status, lines, words);
}

#[test]
fn a_job_may_follow_a_job() {
    run("twice", 0, &["4 ranks sum 6", "job of 4: well"], &[]);
}

#[test]
fn a_second_job_may_have_more_ranks() {
    run("bigger", 0, &["4 ranks sum 6", "400 ranks sum 79800"], &[]);
}

#[test]
fn a_second_job_has_the_sizes_it_asks_for() {
    run("other-sizes", 0, &["4 ranks sum 6"], &[]);
}

#[test]
fn a_job_may_follow_local_runs() {
    run("local-launch", 0, &["local run of 4 sums 6", "4 ranks sum 6"], &[]);
    run("local-launch-big", 0, &["local run of 4 sums 6", "5000 ranks sum 12497500"], &[]);
}

#[test]
fn a_job_does_not_overwrite_what_local_ranks_have_left() {
    run("local-kept-launch", 2, &[], &["6 slots do not fit", "has 4096", "1 of them"]);
}

#[test]
fn local_runs_may_follow_a_job_and_each_other_whatever_their_size() {
    run("launch-local", 0, &["4 ranks sum 6", "local run of 100 sums 4950"], &[]);
    run("local-bigger", 0, &["local run of 5000 sums 12497500"], &[]);
}

#[test]
fn too_many_local_ranks_beside_others_are_refused_with_both_numbers() {
    let words = ["5001 slots do not fit", "has 4096", "3 of them are in use"];
    run("local-bigger-beside", 0, &["beside: Ok(Err(()))", "local run of 4 sums 6"], &words);
}

#[test]
fn a_pe_of_a_job_launches_nothing_and_the_job_goes_on() {
    let refused = ["this process is a PE of a job already"];
    run("launch-in-rank", 0, &["job of 1: not well", "4 ranks sum 6"], &refused);
    run("local-in-rank", 0, &["inner Err(())", "4 ranks sum 6"], &refused);
    run("local-in-thread-of-rank", 0, &["inner Ok(Err(()))", "4 ranks sum 6"], &refused);
    run("local-nested", 0, &["inner Err(())", "local run of 2 sums 1"], &refused);
}

#[test]
fn local_runs_go_on_in_several_threads() {
    run("local-threads", 0, &["0 threads panicked", "local run of 4 sums 6"], &[]);
}

#[test]
fn slots_of_runs_that_panicked_are_used_again() {
    let output = run_as(command("local-panics"), 0, &["local run of 3 sums 3"], &[]);
    let out = text(&output.stdout);
    let grown = out.lines().find_map(|line| line.strip_prefix("grown by ")?.strip_suffix(" KiB"));
    let grown: u64 = grown.unwrap().parse().unwrap();
    // 1300 runs have left some 100 MiB.
    assert!(grown < 30 << 10, "resident memory has grown by {grown} KiB");
}

#[test]
fn what_ranks_have_given_away_outlives_runs_that_panic() {
    let lines = ["130 lists, right: true", "kept, right: true", "local run of 3 sums 3"];
    run("local-panics-kept", 0, &lines, &[]);
}

#[test]
fn children_of_the_caller_are_left_to_it() {
    run("child-of-caller", 0, &["the child's status: Ok(Some(5))"], &[]);
}

#[test]
fn a_job_ends_where_ends_of_children_are_ignored() {
    let mut ignoring = command("twice");
    // SAFETY: a plain system call between fork and exec; ignored signals stay ignored.
    unsafe {
        ignoring.pre_exec(|| {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut job = ignoring.stdout(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = job.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(60) {
            job.kill().unwrap();
            panic!("the job does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_variable_that_is_set_to_nothing_is_unset() {
    let mut empty = job::program(env!("CARGO_BIN_EXE_misbehave"));
    empty.args(["--pes", "2", "--ranks", "8", "nothing"]);
    for name in ["VRT_MOVE", "VRT_STACK", "VRT_NO_BIND", "VRT_LB", "VRT_LB_ARG", "VRT_LB_DUMP"] {
        empty.env(name, "");
    }
    run_as(empty, 0, &["all is well"], &[]);
}

#[test]
fn address_space_that_is_too_small_is_named_in_units_that_fit() {
    let mut small = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_misbehave");
    small.args(["-c", &format!("ulimit -v 400000 && exec {program} --pes 1 --ranks 8 nothing")]);
    let words = ["GiB of address space for 9 slots", "limit of 390.6 MiB", "fewer ranks", "--slot"];
    let output = run_as(small, 2, &[], &words);
    assert!(!text(&output.stderr).contains(" 0 "), "{}", text(&output.stderr));
}
