//! Every collective operation, against a naive oracle, on jobs of several sizes, still and while
//! ranks are moved. The program `collectives` has the table.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

#[track_caller]
fn run(arguments: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_collectives"))
        .args(arguments.split_whitespace())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains(", ok"), "{arguments}: {out}{err}");
}

#[test]
fn on_few_ranks() {
    for ranks in [1, 2, 3] {
        run(&format!("--pes {} --ranks {ranks} --eager 1K", ranks.min(2)));
    }
}

#[test]
fn on_more_ranks() {
    run("--pes 2 --ranks 5 --eager 1K --counts 0,1,600");
    run("--pes 2 --ranks 8 --eager 1K --counts 1,600");
}

#[test]
fn on_many_ranks() {
    run("--pes 2 --ranks 64 --eager 64 --counts 0,1,9 --largest 10");
}

#[test]
fn while_ranks_move() {
    for (ranks, counts) in [(2, "0,1,200,600"), (5, "1,600"), (8, "1,600")] {
        let moving = "--pes 2 --eager 1K --lb random --lb-period 500us";
        run(&format!("{moving} --ranks {ranks} --counts {counts}"));
    }
    run("--pes 2 --ranks 64 --eager 64 --counts 1 --largest 10 --lb random --lb-period 1ms");
    // Operations that wait in long frames leave them whole when they move to another node.
    run("--pes 4 --ranks 8 --eager 1K --counts 1,600 --lb random --lb-period 1ms --node-size 1");
}
