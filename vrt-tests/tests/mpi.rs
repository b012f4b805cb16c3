//! Jobs whose PEs are MPI processes: they compute what local jobs compute, and end as cleanly.
//!
//! `VRT_MPIRUN` names the launcher of the MPI library that the tests were built with; without it it
//! is `mpirun`.
#![cfg(feature = "mpi")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use vrt_tests::job::{Job, nodes};
use vrt_tests::pages;
use vrt_tests::running::Running;

const MISBEHAVE: &str = env!("CARGO_BIN_EXE_misbehave");
const PAGES: &str = env!("CARGO_BIN_EXE_pages");
const STRESS: &str = env!("CARGO_BIN_EXE_migrate_stress");
const SOAK: &str = env!("CARGO_BIN_EXE_soak");
const COLLECTIVES: &str = env!("CARGO_BIN_EXE_collectives");

fn launcher() -> String {
    std::env::var("VRT_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned())
}

/// A launcher's command, allowed to run as root (in containers) and more processes than cores.
fn with_arguments(mut command: Command, arguments: &str) -> Command {
    command
        .args(arguments.split_whitespace())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("RUST_BACKTRACE", "0");
    command
}

fn mpirun(arguments: &str) -> Command {
    with_arguments(Command::new(launcher()), arguments)
}

/// Runs a job, which is ended if it hangs.
fn job(arguments: &str) -> Job {
    job_with(arguments, &[])
}

/// The same with variables in its environment.
fn job_with(arguments: &str, variables: &[(&str, &str)]) -> Job {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300"]).arg(launcher()).envs(variables.iter().copied());
    let mut job = Job::of(with_arguments(command, arguments));
    job.name = format!("mpirun {arguments}");
    job
}

#[track_caller]
fn ends(arguments: &str, status: i32, words: &[&str]) {
    let job = job(arguments);
    assert_eq!(job.status, Some(status), "{job}");
    for word in words {
        // A launcher may print everything to its own standard output.
        let said = job.out.contains(word) || job.err.contains(word);
        assert!(said, "{word:?} is missing: {job}");
    }
}

#[test]
fn random_traffic_arrives_while_ranks_stay_and_move() {
    for nodes in nodes() {
        for moves in ["", "--lb random --lb-period 1ms"] {
            for more in ["", "--longest 100000 --eager 0"] {
                let soak = format!("-n 4 {SOAK} --ranks 32 --seconds 1 {moves} {nodes} {more}");
                let job = job(&soak).is_right();
                assert!(job.number_before("messages") > 0, "{job}");
                if !moves.is_empty() {
                    job.is_right_after_moves(10);
                }
            }
        }
    }
}

#[test]
fn large_heaps_have_large_pages() {
    for nodes in nodes() {
        let kib = |more: &str| {
            pages::kib_that_it_says(mpirun(&format!("-n 2 {PAGES} --ranks 8 {nodes} {more}")))
        };
        assert_eq!(kib("") >= 16 << 10, pages::may_be_large(), "{nodes}");
        assert_eq!(kib("--no-huge-pages"), 0, "{nodes}");
    }
}

#[test]
fn ranks_move_by_memory_and_by_state() {
    for nodes in nodes() {
        for by_state in ["", "--plain --move state"] {
            let rotate = "--ranks 4 --rounds 500 --lb rotate";
            let job = job(&format!("-n 2 {STRESS} {rotate} {by_state} {nodes}")).is_right();
            all_orders_were_followed(&job, 2000);
        }
    }
}

#[test]
fn long_messages_come_without_a_copy_in_between_and_whole() {
    let long = "--ranks 4 --rounds 20 --bytes 3000000 --lb rotate";
    for nodes in nodes() {
        let job = job(&format!("-n 2 {STRESS} {long} {nodes}")).is_right();
        all_orders_were_followed(&job, 80);
    }
}

/// All these ranks were moved, except a few of which something seems to refer to their memory: that is
/// searched for by values, and an MPI library's threads have many. (The job says why it stayed.)
#[track_caller]
fn all_orders_were_followed(job: &Job, orders: u64) {
    let moved = job.number_before("moves");
    let pinned = format!("{} orders not followed: {0} pinned", orders - moved);
    assert!(moved == orders || moved * 20 >= orders * 19 && job.err.contains(&pinned), "{job}");
}

#[test]
fn collectives_agree_with_the_oracle() {
    for nodes in nodes() {
        let job = job(&format!("-n 3 {COLLECTIVES} --ranks 5 --counts 1,200 {nodes}")).is_right();
        assert!(job.number_before("cases") > 1000, "{job}");
    }
}

#[test]
fn statuses_and_messages_are_those_of_a_local_job() {
    for nodes in ["", "--node-size 1"] {
        let two = |what: &str| format!("-n 2 {MISBEHAVE} {what} --ranks 8 {nodes}");
        ends(&two("nothing"), 0, &["all is well"]);
        ends(&two("panic"), 101, &["panic in rank 5 on PE 1", "this is what went wrong"]);
        ends(&two("exit3"), 3, &[]);
        ends(&two("exit0"), 0, &[]);
        ends(&two("leave-early"), 0, &[]);
        // A launcher may name the status of the PE that it has killed for this one.
        let recursion = job(&two("recursion"));
        let said = "rank 5 on PE 1 overflowed its stack";
        assert!(recursion.status != Some(0) && recursion.err.contains(said), "{recursion}");
        let words = ["deadlock: every rank waits", "rank 7 (PE 1) waits in receive", "tag 7"];
        ends(&two("deadlock"), 70, &words);
    }
}

#[test]
fn what_cannot_be_a_job_is_refused() {
    let two = format!("-n 1 {MISBEHAVE} nothing : -n 1 {SOAK}");
    ends(&two, 2, &["PE 1 runs another program"]);
    let unlike = format!("-n 1 {MISBEHAVE} nothing --ranks 8 : -n 1 {MISBEHAVE} nothing --ranks 9");
    ends(&unlike, 2, &["PE 1 has other options"]);
    ends(&format!("-n 2 {MISBEHAVE} nothing --pes 3"), 2, &["--pes 3", "started 2 processes"]);
    ends(&format!("-n 2 {MISBEHAVE} nothing --ranks 0"), 2, &["0"]);
}

#[test]
fn without_equal_addresses_ranks_move_by_state_only() {
    // What a PE says to itself when it has executed itself: it does not try again.
    let random = |arguments: &str| {
        let arguments = format!("-n 2 {STRESS} --ranks 4 --rounds 100 {arguments}");
        job_with(&arguments, &[("VRT_EXECUTED_AGAIN", "1")]).is_right()
    };
    let job = random("--lb rotate");
    let said = "ranks could move by their state only";
    assert!(job.err.contains(said) && job.err.contains("PE 1"), "{job}");
    assert_eq!(job.number_before("moves"), 0, "{job}");
    let job = random("--lb rotate --plain --move state");
    assert_eq!(job.number_before("moves"), 400, "{job}");
}

fn start(what: &str) -> Running {
    Running::start(mpirun(&format!("-n 2 {MISBEHAVE} {what} --ranks 8 --node-size 1")))
}

/// Sends a signal to a process; sees that everything ends. Returns the launcher's status.
#[track_caller]
fn end_by(mut running: Running, signal: i32, pid: i32) -> ExitStatus {
    // SAFETY: a plain system call on our own processes.
    unsafe { libc::kill(pid, signal) };
    let start = Instant::now();
    let status = running.parent.wait().unwrap();
    running.expect_end(start, Duration::from_secs(60));
    status
}

#[test]
fn killing_a_pe_or_the_launcher_ends_the_job() {
    for what in ["run-forever", "wait-forever"] {
        let running = start(what);
        let pe = running.pes[1];
        let status = end_by(running, libc::SIGKILL, pe);
        assert!(!status.success(), "{status}");
        let running = start(what);
        let launcher = running.parent.id() as i32;
        end_by(running, libc::SIGTERM, launcher);
        let running = start(what);
        let launcher = running.parent.id() as i32;
        end_by(running, libc::SIGKILL, launcher);
    }
}
