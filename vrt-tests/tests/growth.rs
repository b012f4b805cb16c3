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

/// On the same PE, on another one, and on another node.
const WAYS: [&str; 3] = ["--pes 1", "--pes 2", "--pes 2 --node-size 1"];

/// Messages that nobody received took memory without limit.
#[test]
fn unexpected_messages_have_a_limit() {
    for way in WAYS {
        for kind in [
            "--bytes 8 --rounds 100000",
            "--bytes 1000 --rounds 20000",
            "--bytes 8000 --rounds 4000",
            "--bytes 1000 --rounds 20000 --from-static",
        ] {
            let limit = "--unexpected 1M --limit 1048576";
            let (out, _) = run(GROWTH, &format!("{way} --ranks 2 {limit} {kind} flood"));
            assert!(out.contains("messages, ") && out.contains("ok"), "{out}");
        }
    }
}

/// A rank that moves takes along that it is held.
#[test]
fn unexpected_messages_have_a_limit_where_ranks_move() {
    let moving = "--pes 2 --ranks 4 --lb random --lb-period 1ms";
    for nodes in NODES {
        for kind in ["--bytes 8 --rounds 200000", "--bytes 1000 --rounds 40000"] {
            let limit = "--unexpected 1M --limit 1048576";
            let (out, err) = run(GROWTH, &format!("{moving} {nodes} {limit} {kind} flood"));
            assert!(out.contains("messages, ") && out.contains("ok"), "{out}");
            assert!(moved(&err) > 0, "{err}");
        }
    }
}

/// Below the limit sends do not wait for receives.
#[test]
fn sends_are_buffered_up_to_the_limit() {
    for way in WAYS {
        let job = format!("{way} --ranks 2 --unexpected 64M --bytes 1000 --rounds 20000 flood");
        let (out, _) = run(GROWTH, &job);
        let kept: u64 = out.split_whitespace().nth(2).unwrap().parse().unwrap();
        assert!(kept > 20_000_000, "{out}");
    }
}

/// What messages had taken was kept for ever.
#[test]
fn memory_of_messages_is_given_back() {
    for kind in ["--bytes 8 --rounds 600000", "--bytes 5000 --rounds 20000"] {
        let job = format!("--pes 2 --ranks 2 --unexpected 1G {kind} give-back");
        let (out, _) = run(GROWTH, &job);
        assert!(out.contains("KiB after") && out.contains("ok"), "{out}");
    }
}

#[test]
fn a_deadlock_by_the_limit_names_it() {
    for way in WAYS {
        let job = format!("{way} --ranks 2 --unexpected 10K --rounds 1000 unsafe");
        let output = Command::new("timeout")
            .args(["--kill-after=5", "120", GROWTH])
            .args(job.split_whitespace())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{err}");
        let row = err.lines().find(|line| line.contains("rank 1 (PE ")).unwrap();
        assert!(row.contains("waits in receive") && row.contains("--unexpected"), "{err}");
    }
}

/// All that programs and the runtime itself send goes through when nothing is buffered.
#[test]
fn nothing_hangs_without_any_room_for_unexpected_messages() {
    for nodes in ["", "--node-size 2", "--node-size 1"] {
        let chaos = "--pes 4 --ranks 32 --seconds 1 --longest 20000 --lb random --lb-period 2ms";
        run(env!("CARGO_BIN_EXE_soak"), &format!("{chaos} --unexpected 0 {nodes}"));
        run(env!("CARGO_BIN_EXE_soak"), &format!("{chaos} --unexpected 20K {nodes}"));
    }
    let (out, _) =
        run(env!("CARGO_BIN_EXE_migrate_comms"), "--pes 2 --ranks 6 --rounds 20 --unexpected 0");
    assert!(out.contains("ok"), "{out}");
}

/// Ranks that the balancer has moved, as the job's last lines say.
fn moved(err: &str) -> u64 {
    let line = err.lines().find(|line| line.contains("load balancing:")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("rank")).unwrap();
    words[at - 1].parse().unwrap()
}
