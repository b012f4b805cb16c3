//! Every problem of every code on numbers of ranks that do not divide its mesh: all give one
//! fingerprint.
//!
//! The ignored test runs them on 1 to 8 ranks and takes minutes; the others use a few.

#[expect(dead_code, reason = "what the other tests use")]
mod common;

use common::{line, report, report_with};

const FEW: &[&str] = &["1", "3", "7"];
const ALL: &[&str] = &["1", "2", "3", "4", "5", "6", "7", "8"];

/// The value in a line of the report of a run on each number of ranks.
fn on_each(ranks: &[&str], options: &[&str], name: &str) -> Vec<String> {
    let of_job = |ranks: &&str| {
        let job = [options, &["--pes", "2", "--ranks", *ranks]].concat();
        line(&report(&job), name).to_owned()
    };
    ranks.iter().map(of_job).collect()
}

/// Asserts that all runs have the same bits.
fn have_one(ranks: &[&str], options: &[&str], name: &str) {
    let mut found = on_each(ranks, options, name);
    found.dedup();
    assert_eq!(found.len(), 1, "{options:?}: {found:?}");
}

/// Asserts that all runs have the same number, except for rounding: a sum over ranks is rounded in another order, so
/// the propellant's solver ends at another point within its tolerance.
fn are_close(ranks: &[&str], options: &[&str], name: &str) {
    let found = on_each(ranks, options, name);
    let number = |text: &String| {
        let first = text.split_whitespace().next().expect("a word");
        first.parse::<f64>().unwrap_or_else(|_| panic!("no number: {text}"))
    };
    let first = number(&found[0]);
    let same = found.iter().all(|other| (number(other) / first - 1.0).abs() < 1e-5);
    assert!(same, "{options:?}: {found:?}");
}

fn flows(ranks: &[&str], sizes: [(&str, &str); 6]) {
    for (problem, size) in sizes {
        have_one(ranks, &["flow", "--problem", problem, "--size", size], "checksum");
    }
}

fn other_codes(ranks: &[&str]) {
    let jacobi = ["jacobi", "--size", "19", "--max-iterations", "60"];
    have_one(ranks, &jacobi, "checksum");
    have_one(ranks, &[&jacobi[..], &["--dimensions", "1"]].concat(), "checksum");
    have_one(ranks, &["face", "--fluid", "23", "--solid", "17", "--rounds", "5"], "checksum");
    have_one(ranks, &["crack", "--size", "26", "--pressure", "3", "--heat", "32"], "checksum");
    are_close(
        ranks,
        &["rocket", "--size", "24", "--intervals", "4", "--heat", "32"],
        "displacement",
    );
    for problem in ["patch", "cantilever", "wave", "vibration"] {
        are_close(ranks, &["solid", "--problem", problem, "--size", "10"], "fingerprint");
    }
}

#[test]
fn a_flow_has_the_same_bits_on_any_number_of_ranks() {
    let sizes = [
        ("sod", "101"),
        ("lax", "101"),
        ("vortex", "29"),
        ("blast", "14"),
        ("bomb", "17"),
        ("chamber", "24"),
    ];
    flows(FEW, sizes);
}

#[test]
fn the_other_codes_have_one_result_on_any_number_of_ranks() {
    other_codes(FEW);
}

#[test]
#[ignore = "it takes minutes"]
fn every_problem_has_one_result_on_1_to_8_ranks() {
    let divisible = [
        ("sod", "64"),
        ("lax", "64"),
        ("vortex", "24"),
        ("blast", "16"),
        ("bomb", "24"),
        ("chamber", "32"),
    ];
    flows(ALL, divisible);
    let indivisible = [
        ("sod", "101"),
        ("lax", "101"),
        ("vortex", "29"),
        ("blast", "17"),
        ("bomb", "23"),
        ("chamber", "37"),
    ];
    flows(ALL, indivisible);
    other_codes(ALL);
}

/// A job's PEs may run on different processors, and glibc's functions round differently on a processor with fused
/// multiply-add.
#[test]
fn results_do_not_depend_on_what_the_processor_can_do() {
    let plain = [("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX2_Usable,-FMA_Usable")];
    for options in [
        &["flow", "--size", "32"][..],
        &["flow", "--problem", "vortex", "--size", "24"],
        &["face", "--fluid", "23", "--solid", "17", "--rounds", "5"],
        &["crack", "--size", "26", "--pressure", "3", "--heat", "32"],
    ] {
        let job = [options, &["--pes", "2", "--ranks", "2", "--no-verify"]].concat();
        let of_job = |under: &[_]| line(&report_with(&job, under), "checksum").to_owned();
        assert_eq!(of_job(&[]), of_job(&plain), "{options:?}");
    }
}
