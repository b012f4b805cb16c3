//! What does not grow, however long a job runs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

/// Runs a job; what it printed and said. It is ended after two minutes.
#[track_caller]
fn run(program: &str, arguments: &str) -> (String, String) {
    let output = Command::new("timeout")
        .args(["--kill-after=5", "120", program])
        .args(arguments.split_whitespace())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments}: {}: {out}{err}", output.status);
    (out, err)
}

const GROWTH: &str = env!("CARGO_BIN_EXE_growth");

/// All PEs in one node, and a node for each.
const NODES: [&str; 2] = ["", "--node-size 1"];

/// Each communicator and window left an entry in its PE for ever, which made every later move
/// slower.
#[test]
fn dropped_communicators_and_windows_are_forgotten() {
    let (out, _) = run(GROWTH, "--pes 2 --ranks 6 --rounds 300 dropped");
    assert!(out.contains("300 rounds, ok"), "{out}");
    for nodes in NODES {
        let moving = "--pes 2 --ranks 6 --rounds 150 --lb random --lb-period 1ms";
        let (out, err) = run(GROWTH, &format!("{moving} {nodes} dropped"));
        assert!(out.contains("150 rounds, ok"), "{out}");
        assert!(moved(&err) > 0, "{err}");
    }
}

/// A rank that began again from its state stayed in all groups that it had been in.
#[test]
fn communicators_of_a_former_life_are_forgotten() {
    for nodes in NODES {
        let (out, _) =
            run(GROWTH, &format!("--pes 2 --ranks 6 --rounds 20 --move state {nodes} abandoned"));
        assert!(out.contains("20 lives, ok"), "{out}");
    }
}

/// A PE reports the groups that are left when it ends.
#[test]
fn communicators_of_ranks_that_have_ended_are_forgotten() {
    for nodes in NODES {
        let job = format!("--pes 2 --ranks 6 --rounds 20 --statistics {nodes} forgotten");
        let (out, err) = run(GROWTH, &job);
        assert!(out.contains("20 rounds, ok"), "{out}");
        let lines: Vec<&str> =
            err.lines().filter(|line| line.contains("groups of ranks")).collect();
        assert_eq!(lines.len(), 2, "{err}");
        assert!(lines.iter().all(|line| line.contains(" 0 groups of ranks")), "{err}");
    }
}

/// Ranks that the balancer has moved, as the job's last lines say.
fn moved(err: &str) -> u64 {
    let line = err.lines().find(|line| line.contains("load balancing:")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("rank")).unwrap();
    words[at - 1].parse().unwrap()
}
