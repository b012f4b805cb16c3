//! What a rank holds outside its slot: it stays while it does, and goes when it has let go.

use vrt_tests::job;

/// Runs a program of this crate; returns its status, its output, and what it said.
fn run(program: &str, arguments: &str) -> (Option<i32>, String, String) {
    let output = job::program(program)
        .args(arguments.split_whitespace())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const HOLDS: &str = env!("CARGO_BIN_EXE_holds");
const FORKS: &str = env!("CARGO_BIN_EXE_forks");

/// Each kind of thing is taken; the program checks that it pins with the right reason while it is
/// held, and not before or after, whoever lets go.
#[test]
fn things_pin_while_they_are_held() {
    let (status, out, err) = run(HOLDS, "--pes 2 --ranks 4");
    assert_eq!(status, Some(0), "{out}{err}");
    let ok = out.lines().filter(|line| line.ends_with(": ok")).count();
    assert!(ok > 80, "{out}");
    assert_eq!(out.lines().last(), Some(format!("{ok} things").as_str()), "{out}");
}

#[test]
fn a_rank_may_end_with_all_of_them_open() {
    let (status, out, err) = run(HOLDS, "--pes 2 --ranks 4 --leave");
    assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
}

#[test]
fn a_rank_does_not_copy_its_process() {
    for (how, call) in [
        ("fork", "fork()"),
        ("underscore-fork", "_Fork()"),
        ("vfork", "vfork()"),
        ("daemon", "daemon()"),
        ("forkpty", "forkpty()"),
        ("clone", "clone()"),
        ("fork-by-number", "fork()"),
        ("vfork-by-number", "vfork()"),
        ("clone-by-number", "clone()"),
        ("clone3-by-number", "clone3()"),
    ] {
        let (status, out, err) = run(FORKS, &format!("--pes 2 --ranks 4 {how}"));
        assert_eq!(status, Some(70), "{how}: {out}{err}");
        let message = format!("rank 1 called {call}: a virtual rank's stack is shared memory");
        assert!(err.contains(&message) && err.contains("posix_spawn"), "{how}: {err}");
        assert_eq!(out, "", "{how}");
    }
}

#[test]
fn programs_can_be_started_and_threads_may_fork() {
    for how in ["spawn", "in-thread"] {
        let (status, out, err) = run(FORKS, &format!("--pes 2 --ranks 4 {how}"));
        assert_eq!((status, err.as_str()), (Some(0), ""), "{how}: {out}");
        assert!(out.starts_with("rank 1 goes on"), "{how}: {out}");
    }
}

const TASKS: &str = env!("CARGO_BIN_EXE_tasks");

/// A task that a rank has spawned is its PE's runtime's: a rank that went while it had one gave the
/// reference back to the runtime of another PE, which ended with "failed to wake I/O driver".
#[test]
fn async_ranks_wait_for_tasks_while_they_are_moved() {
    for nodes in ["", "", "", "--node-size 1"] {
        let job = format!("--pes 2 --ranks 8 --rounds 100 --lb random --lb-period 1ms {nodes}");
        let (status, out, err) = run(TASKS, &job);
        assert_eq!(status, Some(0), "{nodes}: {out}{err}");
        assert!(out.starts_with("tasks: 100 rounds, ") && out.ends_with(" moves, ok\n"), "{out}");
    }
}

const ANSWERS: &str = env!("CARGO_BIN_EXE_answers");

#[test]
fn what_libc_has_answered_moves_along() {
    for nodes in ["", "--node-size 1"] {
        let (status, out, err) = run(ANSWERS, &format!("--pes 2 --ranks 4 {nodes}"));
        assert_eq!(status, Some(0), "{nodes}: {out}{err}");
        assert_eq!(out, "answers of 4 ranks are right\n");
    }
}
