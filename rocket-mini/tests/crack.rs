//! `rocket-mini crack` as its users run it.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

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

/// The files of a directory, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn pictures_are_the_same_bytes_while_ranks_begin_again_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "crack",
        "--size",
        "32",
        "--steps",
        "130",
        "--pressure",
        "3",
        "--migrate-every",
        "20",
        "--out-every",
        "60",
    ];
    let jobs: [&[&str]; 2] = [
        &["--pes", "1", "--ranks", "1"],
        &["--pes", "2", "--ranks", "7", "--lb", "random", "--move", "state"],
    ];
    let pictures = jobs.map(|job| {
        let out = folder.path().join(job.len().to_string()).join("pictures");
        let path = out.to_str().unwrap();
        let text = report(&[&options[..], job, &["--out", path]].concat());
        assert!(line(&text, "written").starts_with(path), "{text}");
        files(&out)
    });
    let names: Vec<&str> = pictures[0].keys().map(String::as_str).collect();
    let expected = ["crack-*.svg", "crack-*.vtk", "plate-*.vtk"]
        .map(|name| [0, 60, 120, 130].map(|step| name.replace('*', &format!("{step:05}"))));
    let mut expected = expected.concat();
    expected.sort();
    assert_eq!(names, expected);
    assert!(pictures[0] == pictures[1], "some file has other bytes");
    let title =
        |name: &str| String::from_utf8_lossy(&pictures[0][name]).contains(" 0 edges broken");
    assert!(title("crack-00000.svg") && !title("crack-00130.svg"));
}

#[test]
fn a_full_disk_is_noticed_at_the_last_byte() {
    for name in ["plate-00000.vtk", "crack-00000.vtk", "crack-00000.svg"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::os::unix::fs::symlink("/dev/full", &file).unwrap();
        let out = folder.path().to_str().unwrap();
        let options = ["crack", "--size", "8", "--pes", "1", "--ranks", "1", "--out", out];
        refused(&options, 1, &format!("rocket-mini: cannot write {}: ", file.display()));
    }
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    refused(&["crack", "--size", "9"], 2, "an even number from 8 to 8192");
    refused(&["crack", "--size", "-8"], 2, "invalid value '-8' for '--size <ELEMENTS>'");
    refused(&["crack", "--steps", "-1"], 2, "a whole number from 1 up is allowed");
    refused(&["crack", "--pressure", "-1"], 2, "above 0");
    refused(&["crack", "--heat", "2"], 2, "2 is not in 16..=4096");
    refused(&["crack", "--out-every", "3"], 2, "required arguments were not provided");
    refused(&["crack", "--out", "x", "--out-every", "0"], 2, "a whole number from 1 up is allowed");
    refused(&["crack", "--ranks", "-4"], 2, "invalid value '-4' for '--ranks <N>'");
    refused(&["crack", "--size", "8", "--pes", "1", "--ranks", "9"], 2, "9 ranks cannot each have");
    let long = ["crack", "--size", "16", "--pes", "1", "--ranks", "2", "--steps", "3000"];
    refused(&[&long[..], &["--courant", "3"]].concat(), 1, "the plate blew up before step");
    let out = ["crack", "--size", "8", "--pes", "1", "--ranks", "1", "--out", "/proc/crack"];
    refused(&out, 1, "rocket-mini: cannot write /proc/crack");
}
