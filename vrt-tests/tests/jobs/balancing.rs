//! When balancing steps are taken, and what is said about them.

use std::process::Command;

use vrt_tests::job::{self, takes_all_cases};

/// Runs a job; what it said on stderr. It is ended after two minutes.
#[track_caller]
fn run(program: &str, arguments: &str) -> String {
    let output = Command::new("timeout")
        .args(["--kill-after=5", "120", program])
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let end: String = err.lines().rev().take(5).collect::<Vec<_>>().join("\n");
    assert!(output.status.success(), "{arguments}: {}: {end}", output.status);
    err
}

const SOAK: &str = env!("CARGO_BIN_EXE_soak");
const STRESS: &str = env!("CARGO_BIN_EXE_migrate_stress");

/// Steps began one after the other, and ranks with much memory only travelled.
#[test]
fn a_period_shorter_than_a_step_leaves_time_for_ranks() {
    let job = "--ranks 100 --seconds 1 --seed 299753271539813637 --longest 2000000 --pes 3";
    for strategy in ["random", "greedy"].into_iter().take(if takes_all_cases() { 2 } else { 1 }) {
        let lb = format!("--lb {strategy} --lb-period 200us --node-size 1 --no-huge-pages");
        let err = run(SOAK, &format!("{job} {lb}"));
        let line = err.lines().find(|line| line.contains("load balancing:")).unwrap();
        assert!(!line.contains(" 0 ranks moved"), "{line}");
    }
}

#[test]
fn a_summary_is_printed_at_the_end_where_balancing_was_asked_for() {
    let job = "--pes 2 --ranks 4 --rounds 20";
    let err = run(STRESS, &format!("{job} --lb rotate"));
    let lines: Vec<&str> = err.lines().filter(|line| line.contains("balancing")).collect();
    assert_eq!(lines.len(), 1, "{err}");
    assert!(lines[0].contains("load balancing: rotate: 20 steps, 80 ranks moved"), "{err}");
    assert!(!run(STRESS, job).contains("balancing"));
    assert!(!run(STRESS, &format!("{job} --lb rotate --lb-report off")).contains("balancing"));
}

#[test]
fn steps_are_told_one_by_one_where_that_was_asked_for() {
    let err = run(STRESS, "--pes 2 --ranks 4 --rounds 20 --lb rotate --lb-report steps");
    for step in 1..=20 {
        let line = format!("balancing step {step} (rotate): imbalance ");
        assert_eq!(err.lines().filter(|text| text.contains(&line)).count(), 1, "{line}: {err}");
    }
    assert!(err.contains("load balancing: rotate: 20 steps"), "{err}");
}

#[test]
fn pinned_ranks_are_named_at_the_end() {
    let err = run(STRESS, "--pes 2 --ranks 4 --rounds 20 --lb rotate --hold file");
    let line = err.lines().find(|line| line.contains("pinned: rank 0: ")).unwrap();
    assert!(line.contains("descriptor"), "{err}");
}

/// What is tried is told, and so is what has come of it.
#[test]
fn auto_says_what_it_tried_and_what_came_of_it() {
    let job = "--ranks 16 --seconds 1 --seed 5 --pes 2 --lb auto --lb-report steps";
    let err = run(SOAK, &format!("{job} --lb-arg strategies=pile --lb-period 10ms"));
    let count = |text: &str| err.lines().filter(|line| line.contains(text)).count();
    let tried = count("tries pile, which promises");
    let outcomes = ["takes pile back: ", "no gain by pile that can be told", "keeps pile: "];
    // The job may end in the middle of the last one.
    let decided: usize = outcomes.iter().map(|outcome| count(outcome)).sum();
    assert!(tried > 0 && (tried - 1..=tried).contains(&decided), "{err}");
    assert!(err.contains(&format!("tried {tried} placement")), "{err}");
    let told = err.lines().find(|line| line.contains("load balancing: auto: ")).unwrap();
    assert!(!told.contains(" 0 ranks moved"), "{err}");
    assert!(err.contains("s gained (+- ") || err.contains("s lost (+- "), "{err}");
    // Each trial has one outcome.
    let account = err.lines().find(|line| line.contains(&format!("tried {tried} placement")));
    let numbers = account.unwrap().split(&[' ', ',', ':'][..]);
    let numbers: Vec<u32> = numbers.filter_map(|word| word.parse().ok()).collect();
    let undecided = u32::from(account.unwrap().contains("1 was not decided yet"));
    assert_eq!(numbers[1..4].iter().sum::<u32>() + undecided, numbers[0], "{err}");
}

/// Ranks that call `migrate` go on at once, and are moved where they are.
#[test]
fn auto_needs_no_period() {
    let err = run(STRESS, "--pes 2 --ranks 4 --rounds 20 --lb auto");
    assert!(err.contains("load balancing: auto: "), "{err}");
    let err = run(STRESS, "--pes 2 --ranks 4 --rounds 20 --lb auto --move state --node-size 1");
    assert!(err.contains("load balancing: auto: "), "{err}");
}

#[test]
fn what_was_found_is_kept_for_the_next_run() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("learned");
    let job = format!("--pes 2 --ranks 4 --rounds 20 --lb auto --lb-learn {}", file.display());
    run(STRESS, &job);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&job) && text.contains("placement"), "{text}");
    run(STRESS, &job);

    std::fs::write(&file, "something else").unwrap();
    for (arguments, reason) in [
        (job, "is not a file of --lb-learn"),
        (format!("--lb greedy --lb-learn {}", file.display()), "--lb-learn needs --lb auto"),
        ("--lb auto --lb-arg by=2".to_owned(), "allowed is strategies=NAME+NAME.."),
        ("--lb auto --lb-arg strategies=gready".to_owned(), "no load-balancing strategy `gready`"),
    ] {
        let output = job::program(STRESS).args(arguments.split_whitespace()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {err}");
        assert!(err.contains(reason), "{arguments}: {err}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "something else");
}

#[test]
fn reports_that_there_are_not_are_refused() {
    let output = job::program(STRESS).args(["--lb-report", "always"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("always") && err.contains("steps, end, off"), "{err}");
}
