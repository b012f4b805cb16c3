//! Ranks that are moved all the time compute what they compute when they stay.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

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

#[test]
fn ranks_with_all_they_own_are_handed_over_at_migrate() {
    let (out, _) = run(WANDER, "--pes 2 --ranks 2 --rounds 3000 --lb rotate");
    assert_eq!(number_before(&out, "moves"), 6000, "{out}");
    let (out, _) = run(WANDER, "--pes 4 --ranks 13 --rounds 500 --bytes 300000 --lb random");
    assert!(number_before(&out, "moves") > 2000, "{out}");
}

#[test]
fn ranks_are_moved_wherever_they_wait() {
    let chaos = "--pes 4 --ranks 16 --rounds 3000 --lb random --lb-period 500us";
    let (out, _) = run(WANDER, chaos);
    assert!(number_before(&out, "moves") > 100, "{out}");
}

#[test]
fn ranks_begin_again_from_their_state() {
    let state = "--pes 2 --ranks 5 --rounds 100 --bytes 1000 --plain --lb rotate --move state";
    let (out, _) = run(WANDER, state);
    assert_eq!(number_before(&out, "moves"), 500, "{out}");
    let (out, _) = run(WANDER, &format!("{state} --lb-period 1ms"));
    assert!(out.contains("ok"), "{out}");
}

#[test]
fn states_are_encoded_in_place() {
    let in_place = "--pes 2 --ranks 5 --rounds 50 --bytes 1000 --plain --lb null --move in-place";
    let (out, _) = run(WANDER, in_place);
    assert_eq!(number_before(&out, "moves"), 0, "{out}");
}

#[test]
fn random_traffic_arrives_while_ranks_move() {
    for more in ["", "--longest 100000 --eager 0", "--longest 64"] {
        let chaos = "--pes 4 --ranks 64 --seconds 2 --lb random --lb-period 1ms --statistics";
        let (out, err) = run(SOAK, &format!("{chaos} {more}"));
        assert!(out.contains(" ok") || err.contains(" ok"), "{out}{err}");
        let totals = err.lines().find(|line| line.contains("load balancing:")).unwrap();
        assert!(number_before(totals, "ranks") > 100, "{err}");
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
    const ROAM: &str = env!("CARGO_BIN_EXE_roam");
    let (out, _) = run(ROAM, "--pes 2 --ranks 6 --rounds 100");
    assert!(out.contains("ok"), "{out}");
    let (out, _) = run(ROAM, "--pes 4 --ranks 9 --rounds 60 --lb random --lb-period 300us");
    assert!(out.contains("ok") && number_before(&out, "moves") > 100, "{out}");
    let (out, _) = run(ROAM, "--pes 2 --ranks 33 --rounds 40 --lb random --lb-period 300us");
    assert!(out.contains("ok"), "{out}");
}
