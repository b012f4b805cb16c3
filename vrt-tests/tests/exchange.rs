//! Every exchange protocol on every pattern of messages, on ranks that stay and on ranks that move.
//! The program `exchange` has the table.
//! `VRT_SOAK_ROUNDS=16777216 cargo test --release -p vrt-tests --test exchange` makes the soak long.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

fn run_with_status(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_exchange"))
        .args(arguments.split_whitespace())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

/// Runs the program; returns how many moves its ranks have seen.
#[track_caller]
fn run(arguments: &str) -> u64 {
    let output = run_with_status(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains(", ok"), "{arguments}: {out}{err}");
    let (before, _) = out.split_once(" moves").unwrap_or((&out, ""));
    before.rsplit(' ').next().unwrap().parse().unwrap_or(0)
}

const NODES: [&str; 3] = ["", "--node-size 2", "--node-size 1"];

#[test]
fn on_ranks_that_stay() {
    for ranks in [1, 2, 3] {
        run(&format!("--pes {} --ranks {ranks} --largest 100000", ranks.min(2)));
    }
    run("--pes 2 --ranks 7 --rounds 2");
    for nodes in NODES {
        run(&format!("--pes 4 --ranks 9 --rounds 3 --largest 100000 {nodes}"));
    }
    run("--pes 2 --ranks 64 --rounds 1 --largest 10000");
}

#[test]
fn on_ranks_that_move() {
    for nodes in NODES {
        let chaos = "--pes 4 --ranks 16 --lb random --lb-period 1ms";
        let moves = run(&format!("{chaos} --largest 100000 {nodes}"));
        assert!(moves > 100, "{moves} moves");
    }
    run("--pes 2 --ranks 4 --rounds 1 --lb random --lb-period 1ms --node-size 1");
}

#[test]
fn on_async_ranks() {
    for nodes in NODES {
        let few = "--asynchronous --pes 4 --ranks 7 --rounds 2 --largest 100000";
        run(&format!("{few} {nodes}"));
        run(&format!("{few} --lb random --lb-period 1ms {nodes}"));
    }
}

#[test]
fn consecutive_rounds_never_mix() {
    let rounds = std::env::var("VRT_SOAK_ROUNDS").unwrap_or_else(|_| "20000".to_owned());
    run(&format!("--pes 2 --ranks 4 --soak {rounds}"));
    run(&format!("--pes 2 --ranks 4 --soak {rounds} --lb random --lb-period 1ms"));
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    for (arguments, words) in [
        ("--exchange nbc", ["`nbc`", "nbx-node"]),
        ("--loggp /nonexistent/file", ["/nonexistent/file", "No such file"]),
    ] {
        let output = run_with_status(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let output = run_with_status("--exchange list");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("remote summation"), "{text}");
}
