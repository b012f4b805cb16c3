//! `rocket-mini rocket` as its users run it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{in_all_jobs, line, refused, report};

#[test]
fn the_rocket_flies_alike_in_all_jobs() {
    let options =
        ["rocket", "--size", "24", "--intervals", "8", "--ignition", "0.5", "--heat", "32"];
    let mut reports = in_all_jobs(&options);
    let many = ["--pes", "2", "--ranks", "12", "--lb", "random", "--lb-period", "1ms"];
    reports.push(report(&[&options[..], &many].concat()));
    for name in ["pressure", "volume", "displacement"] {
        let mut values: Vec<&str> = reports.iter().map(|text| line(text, name)).collect();
        values.dedup();
        assert_eq!(values.len(), 1, "{name}: {values:?}");
    }
}

#[test]
fn pictures_are_written_while_ranks_begin_again_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new").join("pictures");
    report(&[
        "rocket",
        "--size",
        "16",
        "--intervals",
        "6",
        "--migrate-every",
        "1",
        "--pes",
        "2",
        "--ranks",
        "4",
        "--lb",
        "random",
        "--move",
        "state",
        "--out",
        out.to_str().unwrap(),
        "--out-every",
        "3",
    ]);
    let mut names: Vec<String> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["gas", "propellant", "rocket"].map(|name| {
        let ending = if name == "rocket" { "svg" } else { "vtk" };
        [0, 3, 6].map(|interval| format!("{name}-{interval:05}.{ending}"))
    });
    assert_eq!(names, expected.as_flattened());
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    refused(&["rocket", "--size", "3"], 2, "8..=4096");
    refused(&["rocket", "--size", "-48"], 2, "-48 is not in 8..=4096");
    refused(&["rocket", "--interval", "-0.1"], 2, "invalid value '-0.1' for '--interval <TIME>'");
    refused(&["rocket", "--ignition", "-1"], 2, "not negative");
    refused(&["rocket", "--heat", "2"], 2, "16..=4096");
    refused(&["rocket", "--out-every", "3"], 2, "required arguments were not provided");
    refused(
        &["rocket", "--size", "8", "--pes", "1", "--ranks", "9"],
        2,
        "9 ranks cannot each have",
    );
    let fast = ["rocket", "--size", "16", "--pes", "1", "--ranks", "2", "--interval", "0.5"];
    refused(&[&fast[..], &["--cfl", "20"]].concat(), 1, "the flow blew up after step");
    let thin = ["rocket", "--size", "8", "--pes", "1", "--ranks", "2", "--interval", "5"];
    refused(&thin, 1, "the propellant has burned through after");
    let out = ["rocket", "--size", "8", "--pes", "1", "--ranks", "1", "--out", "/proc/rocket"];
    refused(&out, 1, "cannot write /proc/rocket");
}
