//! Every example is a job that ends well and says what it found; the table in `docs/rust.md` has them all.
//!
//! Cargo builds examples for `cargo test` of the package, but not where `--test` names a test: then
//! `cargo build -p virtual-ranks --examples` has to come first.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An example, options beside the numbers of PEs and ranks, and what a line of its output has.
type Run = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const RUNS: &[Run] = &[
    ("async_ranks", &[], "64 questions were answered, the sum is 1120"),
    ("async_ring", &[], "the token has seen 8 ranks"),
    ("balancing", &[], "8 ranks have the right results after 0 moves"),
    ("balancing", &[("VRT_LB", "rotate")], "8 ranks have the right results after 32 moves"),
    ("balancing", &[("VRT_LB", "greedy-refine"), ("VRT_MOVE", "state")], "the right results"),
    ("collectives", &[], "8000 values: mean 3.01, deviation 2.27, 3429 above the mean"),
    ("communicators", &[], "4 ranks are odd, the last of them is 7"),
    ("datatypes", &[], "8 ranks have sent particles and columns"),
    ("immediate", &[], "heat of each part: [6.23, 3.47, 1.60,"),
    ("migration", &[], "8 ranks have made 16 visits to 2 PEs"),
    ("migration", &[("VRT_MOVE", "state")], "8 ranks have made 16 visits to 2 PEs"),
    ("migration", &[("VRT_NODE_SIZE", "1")], "8 ranks have made 16 visits to 2 PEs"),
    ("one_sided", &[], "1000 tasks, their steps in classes of 25: [220, 345, 108,"),
    ("persistent", &[], "all of 8 ranks have 3.500 after 125 steps"),
    ("point_to_point", &[], "7 greetings, and numbers that sum to 140"),
    ("ring", &[], "8 ranks add up to 28"),
    ("sparse_exchange", &[], "1600 particles, 50 steps, 1128 messages"),
    ("sparse_exchange", &[("VRT_EXCHANGE", "rsx")], "1600 particles, 50 steps, 1128 messages"),
    ("statistics", &[], "each has sent 10 messages"),
    ("topologies", &[], "a grid of 4 x 2 ranks, and a tree of 8"),
    ("values", &[], "12 different words; `the` comes 6 times"),
];

fn names() -> BTreeSet<&'static str> {
    RUNS.iter().map(|(name, ..)| *name).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// Where cargo has put the example: this test is in the folder `deps` beside that of the examples.
fn program(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let program = this.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    let written = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    assert!(
        written(&program) > written(&folder().join(name).with_extension("rs")),
        "{} is not built: `cargo build -p virtual-ranks --examples` does it",
        program.display()
    );
    program
}

#[test]
fn every_example_runs_as_a_job() {
    let mut wrong = Vec::new();
    for (name, options, line) in RUNS {
        let mut job = Command::new("timeout");
        job.args(["--kill-after=5", "300"]).arg(program(name)).stdin(Stdio::null());
        let inherited = std::env::vars_os().map(|(variable, _)| variable);
        for variable in inherited.filter(|v| v.to_string_lossy().starts_with("VRT_")) {
            job.env_remove(variable);
        }
        job.envs([("VRT_PES", "2"), ("VRT_RANKS", "8"), ("RUST_BACKTRACE", "0")]);
        let output = job.envs(options.iter().copied()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        if !output.status.success() || !out.lines().any(|said| said.contains(line)) {
            wrong.push(format!(
                "{name} {options:?}: {}, expected {line:?}\n{out}{err}",
                output.status
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_is_run() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(files.iter().map(String::as_str).collect::<BTreeSet<_>>(), names());
}

#[test]
fn the_book_has_every_example_and_no_other() {
    let page = include_str!("../../docs/rust.md");
    let (_, table) = page.split_once("| example |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    // A row may have several.
    let first_cells = rows.filter_map(|row| row.split('|').nth(1));
    let rows: BTreeSet<&str> =
        first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(rows, names(), "the table in docs/rust.md, and the examples that are run");
}
