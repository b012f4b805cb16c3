//! `rocket-mini flow` as its users run it.

mod common;

use common::{in_all_jobs, line, refused, report};

#[test]
fn a_chamber_has_the_same_bits_in_all_jobs() {
    let options = ["flow", "--size", "36", "--end", "0.2", "--uneven", "2", "--migrate-every", "5"];
    let mut checksums: Vec<String> =
        in_all_jobs(&options).iter().map(|text| line(text, "checksum").to_owned()).collect();
    let many = ["--pes", "2", "--ranks", "32", "--lb", "random", "--lb-period", "1ms"];
    checksums.push(line(&report(&[&options[..], &many].concat()), "checksum").to_owned());
    checksums.dedup();
    assert_eq!(checksums.len(), 1, "{checksums:?}");
}

#[test]
fn every_problem_is_right() {
    for problem in ["sod", "lax", "vortex", "blast", "bomb"] {
        let text =
            report(&["flow", "--problem", problem, "--size", "24", "--pes", "2", "--ranks", "4"]);
        assert_eq!(text.contains("in the mean density"), !["blast", "bomb"].contains(&problem));
    }
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    refused(&["flow", "--size", "0"], 2, "4..=100000");
    refused(&["flow", "--size", "-64"], 2, "-64 is not in 4..=100000");
    refused(&["flow", "--cfl", "-1"], 2, "above 0");
    refused(&["flow", "--end", "-0.5"], 2, "invalid value '-0.5' for '--end <TIME>'");
    refused(&["flow", "--uneven", "0"], 2, "from 0.01 to 100");
    refused(&["flow", "--end", "soon"], 2, "above 0");
    let sod = ["flow", "--problem", "sod", "--size", "40", "--pes", "1"];
    refused(&[&sod[..], &["--ranks", "21"]].concat(), 2, "21 ranks cannot each have a block");
    refused(
        &[&sod[..], &["--ranks", "3", "--cfl", "5"]].concat(),
        1,
        "the flow blew up after step",
    );
}
