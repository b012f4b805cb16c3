//! `rocket-mini experiment`, and the tables of runs that it parses, as users start them.

#![allow(clippy::unwrap_used)]

mod common;

use common::{in_all_jobs, refused};

#[test]
fn names_and_folders_that_cannot_be_are_refused() {
    refused(&["experiment", "nonsense", "--out", "/tmp"], 2, "experiments: all, crack, rocket");
    refused(&["experiment", "crack"], 2, "required arguments were not provided");
    refused(&["experiment", "crack", "--out", "/proc/new"], 1, "cannot write /proc/new");
    let fewer = ["experiment", "crack", "--out", "/tmp", "--repeat", "-1"];
    refused(&fewer, 2, "a whole number from 1 up is allowed");
    let no_times = ["experiment", "crack", "--out", "/tmp", "--repeat", "0"];
    refused(&no_times, 2, "invalid value '0' for '--repeat <TIMES>'");
}

#[test]
fn a_run_tells_when_it_made_which_step() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.csv");
    let path = file.to_str().unwrap();
    // Each job begins the table anew; the ranks of the last begin again elsewhere, and go on with it.
    in_all_jobs(&["crack", "--size", "64", "--migrate-every", "40", "--history", path]);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("seconds,steps"), "{text}");
    let rows = lines.map(|line| line.split_once(',').unwrap());
    let (seconds, steps): (Vec<f64>, Vec<usize>) =
        rows.map(|(a, b)| (a.parse::<f64>().unwrap(), b.parse::<usize>().unwrap())).unzip();
    assert!(seconds.is_sorted() && steps.is_sorted(), "{text}");
    assert!(steps[0] == 1 && steps.len() > 1, "{text}");
    let nowhere = ["crack", "--size", "8", "--pes", "1", "--ranks", "1", "--history", "/proc/x/y"];
    refused(&nowhere, 1, "cannot write /proc/x/y");
}

#[test]
fn experiments_say_which_program_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let needed = [
        ("tables", "no `mpicc.openmpi`, which the twins in C need"),
        ("caches", "no `valgrind`, which counts instructions and cache misses: install valgrind"),
    ];
    for (name, message) in needed {
        let output = std::process::Command::new("/usr/bin/timeout")
            .args(["--kill-after=5", "120", env!("CARGO_BIN_EXE_rocket-mini")])
            .args(["experiment", name, "--out"])
            .arg(folder.path())
            .env("PATH", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(message), "{text}");
    }
}
