//! `rocket-mini face` as its users run it.

mod common;

use common::{in_all_jobs, line, refused, report};

#[test]
fn loads_and_motions_have_the_same_bits_in_all_jobs() {
    let options = ["face", "--fluid", "25", "--solid", "14", "--rounds", "20"];
    let mut checksums: Vec<String> =
        in_all_jobs(&options).iter().map(|text| line(text, "checksum").to_owned()).collect();
    let many = ["--pes", "2", "--ranks", "32", "--lb", "random", "--lb-period", "1ms"];
    checksums.push(line(&report(&[&options[..], &many].concat()), "checksum").to_owned());
    checksums.dedup();
    assert_eq!(checksums.len(), 1, "{checksums:?}");
}

#[test]
fn ranks_may_have_nothing_of_a_mesh() {
    report(&["face", "--fluid", "3", "--solid", "2", "--pes", "2", "--ranks", "9"]);
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    refused(&["face", "--fluid", "0"], 2, "1..=2048");
    refused(&["face", "--fluid", "-7"], 2, "-7 is not in 1..=2048");
    refused(&["face", "--rounds", "-1"], 2, "invalid value '-1' for '--rounds <COUNT>'");
    refused(&["face", "--solid", "many"], 2, "invalid value 'many'");
}
