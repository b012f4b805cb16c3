//! Ranks that are moved all the time compute what they compute when they stay.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a program of this crate; returns what it printed.
#[track_caller]
fn run(program: &str, arguments: &str) -> (String, String) {
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments}: {out}{err}");
    (out, err)
}

/// The number in front of a word.
#[track_caller]
fn number_before(text: &str, word: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|w| w.trim_end_matches(',') == word).unwrap();
    words[at - 1].parse().unwrap()
}

const WANDER: &str = env!("CARGO_BIN_EXE_wander");
const SOAK: &str = env!("CARGO_BIN_EXE_soak");
const WINDOWS: &str = env!("CARGO_BIN_EXE_windows");
const ROAM: &str = env!("CARGO_BIN_EXE_roam");

/// All PEs in one node, two nodes, and a node for each PE.
const NODES: [&str; 3] = ["", "--node-size 2", "--node-size 1"];

#[test]
fn ranks_move_with_all_they_own_at_migrate() {
    for nodes in NODES {
        let (out, _) = run(WANDER, &format!("--pes 2 --ranks 2 --rounds 3000 --lb rotate {nodes}"));
        assert_eq!(number_before(&out, "moves"), 6000, "{out}");
        let random = "--pes 4 --ranks 13 --rounds 500 --bytes 300000 --lb random";
        let (out, _) = run(WANDER, &format!("{random} {nodes}"));
        assert!(number_before(&out, "moves") > 2000, "{out}");
    }
}

#[test]
fn ranks_are_moved_wherever_they_wait() {
    for nodes in NODES {
        let chaos = "--pes 4 --ranks 16 --rounds 3000 --lb random --lb-period 500us";
        let (out, _) = run(WANDER, &format!("{chaos} {nodes}"));
        assert!(number_before(&out, "moves") > 100, "{out}");
    }
}

#[test]
fn ranks_begin_again_from_their_state() {
    for nodes in NODES {
        let state = "--pes 2 --ranks 5 --rounds 100 --bytes 1000 --plain --lb rotate --move state";
        let (out, _) = run(WANDER, &format!("{state} {nodes}"));
        assert_eq!(number_before(&out, "moves"), 500, "{out}");
        let (out, _) = run(WANDER, &format!("{state} {nodes} --lb-period 1ms"));
        assert!(out.contains("ok"), "{out}");
    }
}

#[test]
fn async_ranks_move_too() {
    for nodes in NODES {
        let at_migrate = "--pes 2 --ranks 6 --rounds 500 --bytes 50000 --asynchronous --lb rotate";
        let (out, _) = run(WANDER, &format!("{at_migrate} {nodes}"));
        assert_eq!(number_before(&out, "moves"), 3000, "{out}");
        let anywhere = "--pes 4 --ranks 16 --rounds 3000 --asynchronous --lb random";
        let (out, _) = run(WANDER, &format!("{anywhere} --lb-period 500us {nodes}"));
        assert!(number_before(&out, "moves") > 100, "{out}");
    }
}

#[test]
fn a_pe_that_dies_in_the_middle_of_a_step_ends_the_job() {
    for nodes in NODES {
        let forever = "--pes 4 --ranks 16 --rounds 1000000000 --lb rotate";
        let mut job = Command::new(WANDER)
            .args(format!("{forever} {nodes}").split_whitespace())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let children = format!("/proc/{0}/task/{0}/children", job.id());
        let pes: Vec<i32> = std::fs::read_to_string(children)
            .unwrap()
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        assert_eq!(pes.len(), 4);
        // SAFETY: a plain system call on a process of ours.
        unsafe { libc::kill(pes[2], libc::SIGKILL) };
        let began = Instant::now();
        let mut err = String::new();
        job.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(job.wait().unwrap().code(), Some(137), "{err}");
        assert!(err.contains("PE 2") && err.contains("SIGKILL"), "{err}");
        assert!(began.elapsed() < Duration::from_secs(1), "it took {:?}", began.elapsed());
        for pe in pes {
            assert!(!std::path::Path::new(&format!("/proc/{pe}")).exists(), "PE {pe} lives on");
        }
    }
}

#[test]
fn ranks_that_hold_something_stay_until_they_let_go() {
    for (what, reason) in [
        ("file", "descriptor open"),
        ("socket", "descriptor open"),
        ("thread", "thread that it started"),
        ("mapping", "mmap"),
        // Inside a node its memory stays where it is, whoever owns it.
        ("static --node-size 1", "static or thread-local"),
    ] {
        let hold = format!("--pes 2 --ranks 4 --rounds 200 --lb rotate --hold {what}");
        let (out, err) = run(WANDER, &hold);
        // All but rank 0 move in all rounds, rank 0 in the second half of them.
        let moves = number_before(&out, "moves");
        assert!((600 + 99..=600 + 100).contains(&moves), "{out}{err}");
        assert!(err.contains("rank 0 on PE 0 cannot be moved") && err.contains(reason), "{err}");
        let output = Command::new(WANDER)
            .args(format!("{hold} --move-pinned error").split_whitespace())
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(70), "{err}");
        assert!(err.contains(reason) && err.contains("--move-pinned error"), "{err}");
    }
}

#[test]
fn what_statics_refer_to_stays() {
    let job = "--pes 4 --ranks 32 --rounds 300 --lb random";
    let moves =
        ["", "--node-size 2", "--node-size 1", "--move state", "--node-size 1 --move state"];
    for more in moves {
        let (out, err) = run(env!("CARGO_BIN_EXE_statics"), &format!("{job} {more}"));
        assert!(number_before(&out, "moves") > 1000, "{out}{err}");
        let stay = number_before(&out, "ranks");
        // Those that filled the statics of the PEs, where moving would take their memory away.
        assert!(if more.is_empty() { stay == 0 } else { (4..=32).contains(&stay) }, "{out}{err}");
    }
}

#[test]
fn states_are_encoded_in_place() {
    let in_place = "--pes 2 --ranks 5 --rounds 50 --bytes 1000 --plain --lb null --move in-place";
    let (out, _) = run(WANDER, in_place);
    assert_eq!(number_before(&out, "moves"), 0, "{out}");
}

#[test]
fn random_traffic_arrives_while_ranks_move() {
    for nodes in NODES {
        for more in ["", "--longest 100000 --eager 0", "--longest 64"] {
            let chaos = "--pes 4 --ranks 64 --seconds 2 --lb random --lb-period 1ms --statistics";
            let (out, err) = run(SOAK, &format!("{chaos} {nodes} {more}"));
            assert!(out.contains(" ok") || err.contains(" ok"), "{out}{err}");
            let totals = err.lines().find(|line| line.contains("load balancing:")).unwrap();
            assert!(number_before(totals, "ranks") > 100, "{err}");
        }
    }
}

#[test]
fn windows_reach_ranks_wherever_they_are() {
    for nodes in NODES {
        for kind in ["", "--asynchronous"] {
            let still = "--pes 4 --ranks 9 --rounds 5";
            let (out, _) = run(WINDOWS, &format!("{still} {nodes} {kind}"));
            assert!(out.contains("ok"), "{out}");
            let chaos = "--pes 4 --ranks 9 --rounds 30 --lb random --lb-period 500us";
            let (out, _) = run(WINDOWS, &format!("{chaos} {nodes} {kind}"));
            assert!(number_before(&out, "moves") > 20, "{out}");
        }
    }
}

#[test]
fn wrong_balancing_options_are_named() {
    for (arguments, words) in [
        ("--lb gredy", ["gredy", "greedy-refine"]),
        ("--lb greedy --lb-arg tolerance=1", ["tolerance", "home-bias"]),
        ("--lb greedy --lb-arg home-bias=2", ["home-bias=2", "0 to 1"]),
        ("--lb greedy --lb-period 5", ["5", "ms"]),
        ("--lb greedy --move by-foot", ["by-foot", "memory"]),
    ] {
        let output = Command::new(WANDER).args(arguments.split_whitespace()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{arguments}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn communicators_windows_and_persistent_requests_move_along() {
    let (out, _) = run(ROAM, "--pes 2 --ranks 6 --rounds 100");
    assert!(out.contains("ok"), "{out}");
    let (out, _) = run(ROAM, "--pes 4 --ranks 9 --rounds 60 --lb random --lb-period 300us");
    assert!(out.contains("ok") && number_before(&out, "moves") > 100, "{out}");
    let (out, _) =
        run(ROAM, "--pes 4 --ranks 9 --rounds 60 --node-size 2 --lb random --lb-period 1ms");
    assert!(out.contains("ok"), "{out}");
    let (out, _) = run(ROAM, "--pes 2 --ranks 33 --rounds 40 --lb random --lb-period 300us");
    assert!(out.contains("ok"), "{out}");
}
