//! `rocket-mini solid` as its users run it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{in_all_jobs, line, refused, report};

#[test]
fn a_struck_beam_moves_alike_in_all_jobs() {
    let reports = in_all_jobs(&["solid", "--size", "16", "--steps", "12", "--migrate-every", "2"]);
    let fingerprints: Vec<f64> =
        reports.iter().map(|text| line(text, "fingerprint").parse().unwrap()).collect();
    for other in &fingerprints {
        assert!((other / fingerprints[0] - 1.0).abs() < 1e-5, "{fingerprints:?}");
    }
}

#[test]
fn every_problem_is_right() {
    for problem in ["patch", "cantilever", "wave"] {
        report(&["solid", "--problem", problem, "--size", "16", "--pes", "2", "--ranks", "32"]);
    }
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    refused(&["solid", "--size", "1"], 2, "2..=2048");
    refused(&["solid", "--size", "-32"], 2, "-32 is not in 2..=2048");
    refused(&["solid", "--steps", "-2"], 2, "invalid value '-2' for '--steps <COUNT>'");
    refused(&["solid", "--tolerance", "0"], 2, "above 0");
    refused(&["solid", "--tolerance", "nan"], 2, "above 0");
    refused(&["solid", "--pes", "1", "--ranks", "9", "--size", "8"], 2, "9 ranks cannot each have");
    let never = ["solid", "--size", "8", "--pes", "1", "--ranks", "2", "--tolerance", "1e-300"];
    refused(&never, 1, "conjugate gradients left a residual of NaN");
    let cantilever = ["solid", "--problem", "cantilever", "--pes", "1", "--ranks", "2"];
    refused(&[&cantilever[..], &["--max-iterations", "3"]].concat(), 1, "after 3 iterations");
}
