//! The program as its users run it.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn sparse_mini(options: &str) -> Output {
    Command::new("timeout")
        .args(["--kill-after=5", "300", env!("CARGO_BIN_EXE_sparse-mini")])
        .args(options.split_whitespace())
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("the program starts")
}

#[track_caller]
fn good(options: &str) -> String {
    let output = sparse_mini(options);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options}: {text}{errors}");
    text
}

#[track_caller]
fn line<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line {name:?} in:\n{text}")).trim()
}

const RANKS: [&str; 3] = [
    "--pes 2 --ranks 7",
    "--pes 2 --ranks 64",
    "--pes 4 --ranks 9 --lb random --lb-period 1ms --node-size 1",
];
const OTHER_RANKS: [&str; 4] = [
    "--pes 1 --ranks 1",
    "--pes 2 --ranks 2",
    "--pes 4 --ranks 9 --lb random --lb-period 1ms",
    "--pes 2 --ranks 5 --lb rotate --move state",
];
const PROTOCOLS: [&str; 6] = ["auto", "pex", "pcx", "rsx", "nbx", "nbx-node"];

fn every_program_is_right_on(ranks: &[&str]) {
    for ranks in ranks {
        for program in [
            "bfs --searches 3 --vertices 200",
            "bfs --searches 3 --graph kronecker --scale 10",
            "cg --matrix laplace3d:12",
            "cg --matrix laplace2d:40",
            "nbody --bodies 500 --steps 10",
            "nbody --bodies 500 --steps 10 --cut volume",
        ] {
            let text = good(&format!("{program} {ranks}"));
            assert_eq!(line(&text, "verification"), "ok", "{program} {ranks}");
        }
    }
}

#[test]
fn every_program_is_right_on_many_ranks() {
    every_program_is_right_on(&RANKS);
}

#[test]
#[ignore = "takes long: scripts/test --all"]
fn every_program_is_right_on_any_number_of_ranks() {
    every_program_is_right_on(&OTHER_RANKS);
}

#[test]
fn every_protocol_serves_every_program() {
    for protocol in PROTOCOLS {
        let job = format!("--pes 4 --ranks 9 --node-size 2 --exchange {protocol}");
        for program in [
            "bfs --searches 3 --graph kronecker --scale 9",
            "cg --matrix box3d:8",
            "nbody --bodies 300 --steps 10",
        ] {
            assert_eq!(line(&good(&format!("{program} {job}")), "verification"), "ok");
        }
        let text = good(&format!("bench --rounds 20 --repeat 1 --among 2,9 {job}"));
        assert!(text.ends_with(": ok\n") && text.contains(protocol), "{text}");
    }
}

#[test]
fn a_matrix_is_read_from_a_file() {
    let file = format!("{}/tridiagonal.mtx", env!("CARGO_TARGET_TMPDIR"));
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n100 100 199\n".to_owned();
    for i in 1..=100 {
        text += &format!("{i} {i} 2.5\n");
        if i > 1 {
            text += &format!("{i} {} -1\n", i - 1);
        }
    }
    std::fs::write(&file, text).unwrap();
    let text = good(&format!("cg --matrix {file} --pes 2 --ranks 7"));
    assert_eq!(line(&text, "verification"), "ok");
    assert_eq!(line(&text, "neighbours k"), "mean 1.71, at most 2, on 7 ranks");
    let text = good(&format!("cg --matrix {file} --neighbors 4,10"));
    assert!(text.contains("100 rows, 298 elements") && text.contains("1.80        2"), "{text}");
}

#[test]
fn what_loggp_measures_is_used() {
    let file = format!("{}/network.json", env!("CARGO_TARGET_TMPDIR"));
    let text = good(&format!("loggp --pes 2 --ranks 3 --output {file}"));
    for parameter in ["L", "o", "g", "G", "L_s"] {
        let value = line(&text, &format!("{parameter} ")).split(' ').next().unwrap();
        assert!((0.0..1e5).contains(&value.parse::<f64>().unwrap()), "{text}");
    }
    let bench = format!("bench --pes 1 --ranks 4 --rounds 5 --exchange auto --loggp {file}");
    assert!(good(&bench).contains("auto"));
    assert!(good(&format!("simulate --processes 64 --machine {file}")).contains("64"));
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    for (options, words) in [
        ("bench --among 9 --pes 1 --ranks 4", "the job has 4 ranks"),
        ("bench --longest 0", "from 1 up"),
        ("bfs --probability 1.5", "from 0 to 1"),
        ("bfs --graph random", "balanced, kronecker"),
        ("cg --matrix laplace4d:3", "laplace4d:3"),
        ("cg --matrix /dev/zero", "line 1: the line has 65536 bytes"),
        ("bench --pes 1 --ranks 1 --loggp /dev/zero", "/dev/zero: 1048576 bytes or more"),
        ("simulate --machine /dev/zero", "/dev/zero: 1048576 bytes or more"),
        ("cg --tolerance 0", "more than 0"),
        ("nbody --exchange all", "nbx-node"),
        ("loggp --pes 1 --ranks 1", "at least 2 ranks"),
        ("simulate --machine cray", "intrepid, jaguar, bigred"),
        ("simulate --processes 1", "2..=4194304"),
    ] {
        let output = sparse_mini(options);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}: {text}");
        assert!(text.contains(words) && !text.contains("panicked"), "{options}: {text}");
    }
}

#[test]
fn a_solver_that_gives_up_is_not_taken_for_right() {
    let output = sparse_mini("cg --matrix laplace3d:12 --max-iterations 3 --pes 1 --ranks 2");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("WRONG: not converged"));
    let output = sparse_mini("nbody --bodies 50 --steps 30 --time-step 5 --pes 1 --ranks 2");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("WRONG: energy"));
}

/// The last number before some words in a line.
#[track_caller]
fn number_before(line: &str, words: &str) -> f64 {
    let (before, _) = line.split_once(words).unwrap_or_else(|| panic!("no {words:?} in {line}"));
    before.trim().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn balancing_takes_imbalance_away() {
    let program = "nbody --bodies 3000 --steps 20 --cut volume --pes 2 --ranks 16";
    let still = good(program);
    let still = line(&still, "imbalance");
    let promised = number_before(still, " of PEs if");
    assert!(promised > 0.4, "{still}");
    assert!((number_before(still, " as they went") - promised).abs() < 1e-3, "{still}");
    // Loads are measured in time, so they tell nothing while others use the cores.
    let mut last = String::new();
    let balanced = (0..3).any(|_| {
        last = good(&format!("{program} --lb greedy-refine"));
        number_before(line(&last, "imbalance"), " as they went") < promised / 2.0
    });
    assert!(balanced, "{last}");
}
