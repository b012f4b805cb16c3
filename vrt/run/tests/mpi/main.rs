//! C programs whose PEs are MPI processes: as the ranks of local jobs, but started by an MPI launcher, by a `vrtrun`
//! that is linked with an MPI library that the programs must not see.
//!
//! `VRT_MPIRUN` names the launcher of the library that `vrtrun` was built with; the default is `mpirun`.
#![cfg(feature = "mpi")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use vrt_tests::job::Job;

use crate::program::Program;

mod looking;
#[path = "../programs/program.rs"]
#[allow(dead_code, reason = "it also makes local jobs")]
mod program;

const GLOBALS: Program = Program::new("globals.c");
const MISBEHAVE: Program = Program {
    libraries: &["misbehave_library.c"],
    options: &["-Wl,--as-needed"],
    ..Program::new("misbehave.c")
};
const VRTRUN: &str = env!("CARGO_BIN_EXE_vrtrun");
/// Where ranks are: still, moved inside a node, and with each process a node.
const MOVING: &str = "--lb random --lb-period 1ms";
const TWO_NODES: &str = "--node-size 1";

/// A job of what the launcher starts, allowed to run as root (in containers) and with more processes than cores.
fn job(started: &str) -> Job {
    let command = command(started);
    let name = format!("{:?}", command.get_args().collect::<Vec<_>>());
    let mut job = Job::of(command);
    job.name = name;
    job
}

/// Its command.
fn command(started: &str) -> Command {
    let launcher = std::env::var("VRT_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let mut command = Command::new("env");
    // A crash has a backtrace, whatever panics of the tests are to have.
    command
        .args(["-u", "RUST_BACKTRACE", "timeout", "--kill-after=5", "120", &launcher])
        .args(started.split_whitespace())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command
}

fn two(options: &str, program: &Program, arguments: &str) -> Job {
    job(&format!("-n 2 {VRTRUN} {options} {} {arguments}", program.file().display()))
}

#[test]
fn each_rank_has_its_own_globals() {
    for nodes in ["", TWO_NODES] {
        let _ = two(&format!("--ranks 8 {nodes}"), &GLOBALS, "50").is_right();
    }
}

#[test]
fn ranks_move() {
    for nodes in ["", TWO_NODES] {
        // Long enough for more than the first step, at which some have not run yet.
        two(&format!("--ranks 8 {MOVING} {nodes}"), &GLOBALS, "4000").is_right_after_moves(1);
    }
}

/// The program that it starts is the job, as if it were a script.
#[test]
fn a_program_may_be_started_by_another() {
    let _ = two("--ranks 8 env", &GLOBALS, "20").is_right();
}

/// A launcher may print everything on its own standard output.
#[track_caller]
fn ends(job: &Job, status: i32, words: &[&str]) {
    assert_eq!(job.status, Some(status), "{job}");
    says(job, words);
}

#[track_caller]
fn says(job: &Job, words: &[&str]) {
    for word in words {
        assert!(job.out.contains(word) || job.err.contains(word), "{word:?}: {job}");
    }
}

#[test]
fn statuses_and_messages_are_those_of_a_local_job() {
    for nodes in ["", TWO_NODES] {
        let misbehaves = |case: &str| two(&format!("--ranks 4 {nodes}"), &MISBEHAVE, case);
        ends(&misbehaves("exit3"), 3, &["rank 1 exited with status 3"]);
        ends(&misbehaves("aborts_job"), 7, &["rank 1 called MPI_Abort(MPI_COMM_WORLD, 7)"]);
        let words = ["deadlock", "rank 1 (PE 0) waits in MPI_Recv with rank 0, tag 42"];
        ends(&misbehaves("deadlock"), 70, &words);
        // MPICH's launcher returns the signal itself.
        let job = misbehaves("segfault");
        assert!(matches!(job.status, Some(139 | libc::SIGSEGV)), "{job}");
        says(&job, &["rank 1 on PE 0: invalid memory access at address 0x8", "misbehave.c:"]);
    }
}

#[test]
fn all_processes_run_the_same_program() {
    let [globals, misbehave] = [GLOBALS, MISBEHAVE].map(|program| program.file());
    let (globals, misbehave) = (globals.display(), misbehave.display());
    let job = job(&format!("-n 1 {VRTRUN} {globals} : -n 1 {VRTRUN} {misbehave} signals"));
    ends(&job, 2, &["PE 1 runs another program"]);
}
