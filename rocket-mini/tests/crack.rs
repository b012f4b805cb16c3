//! `rocket-mini crack` as its users run it.

mod common;

use common::{in_all_jobs, line, refused, report};

#[test]
fn a_crack_has_the_same_bits_in_all_jobs() {
    let options =
        ["crack", "--size", "32", "--pressure", "2.5", "--heat", "32", "--migrate-every", "20"];
    let mut reports = in_all_jobs(&options);
    let many = ["--pes", "2", "--ranks", "32", "--lb", "random", "--lb-period", "1ms"];
    reports.push(report(&[&options[..], &many].concat()));
    for name in ["checksum", "edges", "tip"] {
        let mut values: Vec<&str> = reports.iter().map(|text| line(text, name)).collect();
        values.dedup();
        assert_eq!(values.len(), 1, "{name}: {values:?}");
    }
    assert!(!line(&reports[0], "edges").starts_with("0 "));
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    refused(&["crack", "--size", "9"], 2, "an even number from 8 to 8192");
    refused(&["crack", "--size", "-8"], 2, "invalid value '-8' for '--size <ELEMENTS>'");
    refused(&["crack", "--steps", "-1"], 2, "-1 is not in 1..");
    refused(&["crack", "--pressure", "-1"], 2, "above 0");
    refused(&["crack", "--heat", "2"], 2, "2 is not in 16..=4096");
    refused(&["crack", "--ranks", "-4"], 2, "invalid value '-4' for '--ranks <N>'");
    refused(&["crack", "--size", "8", "--pes", "1", "--ranks", "9"], 2, "9 ranks cannot each have");
    let long = ["crack", "--size", "16", "--pes", "1", "--ranks", "2", "--steps", "3000"];
    refused(&[&long[..], &["--courant", "3"]].concat(), 1, "the plate blew up before step");
}
