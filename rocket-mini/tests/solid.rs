//! `rocket-mini solid` as its users run it.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

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

/// Writes a beam of two elements, with its text changed, and returns the file's name.
fn beam(folder: &Path, change: impl Fn(String) -> String) -> String {
    let mut text = String::from(
        "# vtk DataFile Version 2.0\nbeam\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 12 double\n",
    );
    for x in 0..3 {
        text += &format!("{x} 0 0 {x} 1 0 {x} 1 1 {x} 0 1\n");
    }
    text += "CELLS 2 18\n8 0 1 2 3 4 5 6 7\n8 4 5 6 7 8 9 10 11\nCELL_TYPES 2\n12\n12\n";
    let path = folder.join("beam.vtk");
    std::fs::write(&path, change(text)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_mesh_is_bent_alike_in_all_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let rocket = ["rocket", "--size", "16", "--intervals", "1", "--pes", "1", "--ranks", "1"];
    report(&[&rocket[..], &["--out", out]].concat());
    // Each of its hexahedra has points of its own.
    let mesh = folder.path().join("propellant-00001.vtk");
    let options = ["solid", "--mesh", mesh.to_str().unwrap(), "--migrate-every", "2"];
    let reports = in_all_jobs(&options);
    assert!(line(&reports[0], "mesh").starts_with("40 hexahedra of "), "{}", reports[0]);
    let fingerprints: Vec<f64> =
        reports.iter().map(|text| line(text, "fingerprint").parse().unwrap()).collect();
    for other in &fingerprints {
        assert!((other / fingerprints[0] - 1.0).abs() < 1e-5, "{fingerprints:?}");
    }
    for problem in ["patch", "cantilever"] {
        report(&[&options[..3], &["--problem", problem, "--pes", "2", "--ranks", "7"]].concat());
    }
}

#[test]
fn files_that_are_no_mesh_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(String) -> String, more: &[&str], status, message: &str| {
        let path = beam(folder.path(), change);
        let job = ["solid", "--mesh", &path, "--pes", "2", "--ranks", "2"];
        refused(&[&job[..], more].concat(), status, message);
    };
    report(&["solid", "--mesh", &beam(folder.path(), |text| text), "--pes", "2", "--ranks", "2"]);
    let with =
        |from: &'static str, to: &'static str| move |text: String| text.replacen(from, to, 1);
    refused(&|_| "3 1\n2 4\n".to_owned(), &[], 1, "it does not begin with `# vtk DataFile`");
    refused(&with("12\n12", "12\n10"), &[], 1, "cell 1 is a Tetra");
    refused(&with("8 0 1 2 3", "8 3 2 1 0"), &[], 1, "cell 0 is turned inside out");
    refused(&with("10 11", "10 12"), &[], 1, "cell 1 has a point beyond the last of 12");
    refused(&with("UNSTRUCTURED_GRID", "POLYDATA"), &[], 1, "is not a mesh of hexahedra");
    refused(&with("2 0 0", "2.5 0 0"), &["--problem", "cantilever"], 1, "its largest x");
    refused(&|text| text, &["--problem", "wave"], 2, "allowed with one are patch, cantilever");
    refused(&|text| text, &["--size", "8"], 2, "cannot be used with '--size");
    let path = beam(folder.path(), |text| text);
    let many = ["solid", "--mesh", &path, "--pes", "1", "--ranks", "3"];
    common::refused(&many, 2, "3 ranks cannot each have elements of a mesh of 2");
    let nowhere = ["solid", "--mesh", "/nowhere", "--pes", "2", "--ranks", "2"];
    common::refused(&nowhere, 1, "cannot read /nowhere: No such file");
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
