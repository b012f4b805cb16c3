//! Ranks drop and forget futures whose messages are on their way between PEs and nodes: nothing is
//! lost, and no memory is touched that is not the runtime's.

use std::process::Stdio;

use vrt_tests::job;

/// Runs a job inside a node, and between nodes.
#[track_caller]
fn right(what: &str, ranks: &str) {
    for node in ["2", "1"] {
        let output = job::program(env!("CARGO_BIN_EXE_dropped"))
            .args(["--pes", "2", "--ranks", ranks, "--node-size", node, what])
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{what}, nodes of {node}: {text}");
        assert!(out.contains("right"), "{what}, nodes of {node}: {out}");
        if what == "receives" {
            assert!(!out.contains("given up 0 times"), "no timeout was ever first: {out}");
        }
    }
}

#[test]
fn receives_are_given_up_and_lose_no_message() {
    right("receives", "2");
}

#[test]
fn sends_are_given_up_and_their_rank_moves() {
    right("sends", "2");
}

#[test]
fn accesses_to_windows_are_given_up_and_forgotten() {
    right("accesses", "2");
}

#[test]
fn parts_in_collective_operations_are_given_up() {
    right("collectives", "5");
}
