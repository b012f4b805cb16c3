//! The program as its users run it.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn jacobi(options: &[&str]) -> Output {
    Command::new("timeout")
        .args(["--kill-after=5", "120", env!("CARGO_BIN_EXE_rocket-mini"), "jacobi"])
        .args(options)
        .output()
        .expect("the program starts")
}

fn line<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_else(|| panic!("no line {name:?} in:\n{text}"))
        .trim()
}

#[test]
fn any_number_of_ranks_and_pes_prints_one_solution() {
    let mut checksums = Vec::new();
    for (pes, ranks) in [("1", "1"), ("2", "2"), ("2", "7"), ("2", "12"), ("1", "5")] {
        let output =
            jacobi(&["--pes", pes, "--ranks", ranks, "--size", "20", "--max-iterations", "50"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{ranks} ranks:\n{text}");
        assert_eq!(line(&text, "verification"), "ok");
        assert!(line(&text, "decomposition").starts_with(&format!("{ranks} ranks as ")));
        assert_eq!(line(&text, "iterations"), "50, not converged");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        checksums.push(line(&text, "checksum").to_owned());
    }
    checksums.dedup();
    assert_eq!(checksums.len(), 1, "{checksums:?}");
}

#[test]
fn a_run_converges_on_an_uneven_domain() {
    let output = jacobi(&[
        "--pes",
        "2",
        "--ranks",
        "8",
        "--size",
        "10",
        "--tolerance",
        "1e-10",
        "--uneven",
        "0.25:20",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(line(&text, "iterations").ends_with(", converged"));
    assert_eq!(line(&text, "verification"), "ok");
    let imbalance = line(&text, "compute a rank").rsplit(' ').next().unwrap();
    assert!(imbalance.parse::<f64>().unwrap() > 0.3, "{text}");
}

#[test]
fn all_styles_and_cuts_print_one_solution() {
    let common = ["--size", "16", "--max-iterations", "60", "--migrate-every", "7"];
    let uneven = ["--uneven", "0.25:5", "--wander", "0.001", "--come-and-go", "0.003"];
    let moved = ["--pes", "2", "--lb", "random", "--lb-period", "1ms"];
    let mut checksums = Vec::new();
    for style in [
        &["--ranks", "8"][..],
        &["--ranks", "8", "--style", "async"],
        &["--ranks", "2", "--style", "events", "--chunks", "8"],
        &["--ranks", "3", "--style", "events"],
    ] {
        for dimensions in ["1", "3"] {
            let cut = ["--dimensions", dimensions];
            let output = jacobi(&[style, &cut, &common, &uneven, &moved].concat());
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{style:?} {cut:?}:\n{text}{errors}");
            assert_eq!(line(&text, "verification"), "ok");
            checksums.push(line(&text, "checksum").to_owned());
        }
    }
    checksums.dedup();
    assert_eq!(checksums.len(), 1, "{checksums:?}");
}

#[test]
fn verification_can_be_switched_off() {
    let output = jacobi(&["--pes", "1", "--ranks", "2", "--size", "8", "--no-verify"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(line(&text, "verification").starts_with("none"));
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    for (options, message) in [
        (&["--size", "0"][..], "1..=8192"),
        (&["--size", "-9"], "-9 is not in 1..=8192"),
        (&["--max-iterations", "-1"], "invalid value '-1' for '--max-iterations <COUNT>'"),
        (&["--tolerance", "-1"], "not negative"),
        (&["--uneven", "2:3"], "from 0 to 1"),
        (&["--uneven", "0.5:x"], "from 1 to 1000000"),
        (&["--dimensions", "2"], "expected 1 or 3"),
        (&["--wander", "1"], "required arguments were not provided"),
        (&["--uneven", "0.5:2", "--come-and-go", "0"], "above 0"),
        (&["--ranks", "2", "--pes", "1", "--chunks", "4"], "--chunks is for --style events"),
        (
            &["--ranks", "5", "--pes", "1", "--chunks", "4", "--style", "events"],
            "5 ranks cannot each have one of 4 chunks",
        ),
        (
            &["--ranks", "9", "--pes", "1", "--size", "8", "--dimensions", "1"],
            "9 ranks cannot each have a slab",
        ),
        (&["--ranks", "7", "--pes", "1", "--size", "6"], "7 ranks cannot each have a block"),
    ] {
        let output = jacobi(options);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {text}");
        assert_eq!(text.matches(message).count(), 1, "{options:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}
