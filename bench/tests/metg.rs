//! `vrt-bench run metg` in jobs of several PEs, with and without moving ranks, compared with `c/metg.c`.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::limited;
use vrt_bench::measure::Measured;
use vrt_bench::programs::metg::{Graph, Pattern};

const STEPS: usize = 200;
const ITERATIONS: [u32; 2] = [20, 1];

/// Runs a program that must succeed.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

fn checksums(output: &Output) -> Vec<String> {
    let lines = String::from_utf8_lossy(&output.stdout);
    lines
        .lines()
        .map(|line| serde_json::from_str::<Measured>(line).unwrap().checksum.unwrap())
        .collect()
}

fn expected(pattern: Pattern, width: usize) -> Vec<String> {
    let graph = Graph { pattern, width, steps: STEPS };
    ITERATIONS.map(|it| format!("{:016x}", graph.checksum(it))).to_vec()
}

fn job(pattern: Pattern, width: usize, options: &[&str]) -> Output {
    let mut command = limited(env!("CARGO_BIN_EXE_vrt-bench"));
    command.args([
        "run",
        "metg",
        "--pattern",
        pattern.name(),
        "--steps",
        "200",
        "--iterations",
        "20,1",
    ]);
    command.args(["--width", &width.to_string(), "--repetitions", "1", "--pes", "2", "--no-bind"]);
    run(command.args(options))
}

#[test]
fn graphs_come_out_as_one_after_the_other() {
    for pattern in Pattern::ALL {
        for (width, ranks) in [(2, "2"), (13, "8")] {
            let output = job(pattern, width, &["--ranks", ranks, "--bytes", "48"]);
            assert_eq!(checksums(&output), expected(pattern, width), "{pattern:?} {width} {ranks}");
        }
    }
}

#[test]
fn ranks_that_move_give_the_same() {
    for pattern in Pattern::ALL {
        let output = job(pattern, 8, &["--ranks", "8", "--lb", "rotate", "--lb-period", "1ms"]);
        assert_eq!(checksums(&output), expected(pattern, 8), "{pattern:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(" ranks moved") && !said.contains(" 0 ranks moved"), "{said}");
    }
}

#[test]
fn the_c_twin_gives_the_same() {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_there("mpicc") || !is_there("mpirun") {
        eprintln!("left out: there is no mpicc or no mpirun");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("metg");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/metg.c");
    let mut compiler = Command::new("mpicc");
    compiler.args(["-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-ffp-contract=off"]);
    run(compiler.arg(source).arg("-o").arg(&program));
    for (pattern, width) in
        [(Pattern::Stencil, 2), (Pattern::Fft, 13), (Pattern::Sweep, 9), (Pattern::Tree, 13)]
    {
        // Open MPI and MPICH have one option in common.
        let mut command = Command::new("mpirun");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1").args(["-n", "2"]).arg(&program);
        command.args([pattern.name(), &width.to_string(), "200", "20,1", "48", "1"]);
        assert_eq!(checksums(&run(&mut command)), expected(pattern, width), "{pattern:?}");
    }
}

#[test]
fn wrong_options_are_named() {
    for (option, value) in [("--bytes", "20"), ("--pattern", "ring"), ("--iterations", "few")] {
        let mut command = limited(env!("CARGO_BIN_EXE_vrt-bench"));
        let output = command.args(["run", "metg", option, value]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(option), "{option}");
    }
    for wrong in [
        &["--pattern", "ring"][..],
        &["--rounds", "0"],
        &["--quick", "--steps", "7"],
        &["--lb", "luck"],
    ] {
        let mut command = limited(env!("CARGO_BIN_EXE_vrt-bench"));
        let output = command.arg("metg").args(wrong).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wrong[0]) && said.lines().count() == 1, "{said}");
    }
}
