//! Ranks with thread-locals of their own: values, destructors, panics, and moves that would not be possible
//! without.

use std::path::Path;
use std::process::{Command, Output};

use vrt_tests::job;

const SHARES: &str = env!("CARGO_BIN_EXE_shares");
const OWN_LOCALS: &str = env!("CARGO_BIN_EXE_own_locals");

/// Ways in which ranks move.
const MOVES: [&str; 3] = [
    "",
    "--lb random --lb-period 1ms --lb-report off",
    "--lb random --lb-period 1ms --lb-report off --node-size 1",
];

fn run(program: impl AsRef<Path>, arguments: &str) -> (Output, String) {
    let output = job::program(program.as_ref())
        .args(arguments.split_whitespace())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let all = format!("{arguments}: {out}{err}");
    (output, all)
}

#[track_caller]
fn prints_ok(what: &str) {
    for moves in MOVES {
        let (output, all) =
            run(OWN_LOCALS, &format!("--pes 2 --ranks 8 --private-thread-locals {moves} {what}"));
        assert!(output.status.success(), "{all}");
        assert!(all.contains("ok\n"), "{all}");
    }
}

#[test]
fn values_are_a_ranks_own() {
    prints_ok("values --rounds 2000");
}

#[test]
fn messages_go_out_of_thread_locals_and_into_them() {
    prints_ok("messages --rounds 500");
}

#[test]
fn libraries_work() {
    prints_ok("libraries");
}

#[test]
fn threads_of_a_rank_have_others() {
    prints_ok("threads");
}

/// To the standard library, ranks of a PE that share its thread-locals are one thread.
#[test]
fn ranks_of_a_pe_are_threads() {
    let (output, all) = run(OWN_LOCALS, "--pes 1 --ranks 3 --private-thread-locals neighbours");
    assert!(output.status.success() && all.contains("ok\n"), "{all}");
}

#[test]
fn destructors_run_when_a_rank_ends() {
    for moves in MOVES {
        let (output, all) =
            run(OWN_LOCALS, &format!("--pes 2 --ranks 6 --private-thread-locals {moves} drops"));
        assert!(output.status.success(), "{all}");
        for rank in 0..6 {
            // The last one that was used goes first.
            let (uses, drops) = (format!("it was {}\n", rank + 1), format!("rank {rank} drops\n"));
            assert!(all.matches(&uses).count() == 1 && all.matches(&drops).count() == 1, "{all}");
        }
    }
}

#[test]
fn a_panic_ends_the_job() {
    for moves in MOVES {
        let (output, all) =
            run(OWN_LOCALS, &format!("--pes 2 --ranks 4 --private-thread-locals {moves} panics"));
        assert_eq!(output.status.code(), Some(101), "{all}");
        assert!(all.contains("rank 1 gives up at 1000"), "{all}");
    }
}

/// Without thread-locals of their own, they stay: `shares.rs` has the reasons.
#[test]
fn ranks_that_use_thread_locals_move() {
    for what in ["thread-local-rc", "thread-local-borrow", "random-numbers"] {
        for node_size in [2, 1] {
            let options = format!("--pes 2 --ranks 4 --node-size {node_size}");
            let (output, all) = run(SHARES, &format!("{options} --private-thread-locals {what}"));
            assert!(output.status.success() && all.contains("moved\nok\n"), "{all}");
        }
    }
}

#[test]
fn a_program_without_symbols_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("stripped");
    let status = Command::new("strip").arg("-o").arg(&program).arg(OWN_LOCALS).status().unwrap();
    assert!(status.success());
    let (output, all) = run(&program, "--pes 1 --private-thread-locals values");
    assert!(!output.status.success(), "{all}");
    assert!(all.contains("--private-thread-locals: the program has no symbols"), "{all}");
    let (output, all) = run(&program, "--pes 1 --ranks 1 values");
    assert!(output.status.success() && all.contains("ok\n"), "{all}");
}
