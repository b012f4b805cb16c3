//! Programs in the manner of ordinary ones are right wherever their ranks are moved, or their ranks
//! stay and say why.

use vrt_tests::job::{self, Job};

const EVERYDAY: &str = env!("CARGO_BIN_EXE_everyday");
const EVERY_MS: &str = "--lb random --lb-period 1ms";

/// Runs each program of a list once, with 8 ranks on 2 PEs.
#[track_caller]
fn run_each(list: &str, options: &str) -> Vec<Job> {
    let names = Job::of({
        let mut names = job::unlimited(EVERYDAY);
        names.arg(list);
        names
    });
    let names: Vec<String> = names.succeeds().out.lines().map(str::to_owned).collect();
    assert!(names.len() > 10, "{names:?}");
    names
        .iter()
        .map(|name| {
            let arguments = format!("{name} --pes 2 --ranks 8 {options}");
            Job::run(EVERYDAY, &arguments).is_right()
        })
        .collect()
}

/// The same while ranks are moved: each of the programs has ranks that moved, or that stayed and
/// said why.
#[track_caller]
fn run_each_moving(list: &str, options: &str) {
    for job in run_each(list, options) {
        let has_seen = |job: &Job| job.moved() > 0 || job.err.contains("cannot be moved: ");
        // On a busy machine there may have been no step.
        let again =
            |ms| Job::run(EVERYDAY, &format!("{} --milliseconds {ms}", job.name)).is_right();
        assert!(
            has_seen(&job) || [1000, 10_000].into_iter().any(|ms| has_seen(&again(ms))),
            "no rank has moved or said why not: {job}"
        );
    }
}

#[test]
fn programs_are_right_while_their_ranks_stay() {
    for job in run_each("names", "") {
        assert!(!job.err.contains("cannot be moved"), "{job}");
    }
}

/// Threads that had ended were joined in another process; scopes of threads gave a handle of their
/// thread back to another PE's; both destroyed the heap of that process.
#[test]
fn programs_are_right_while_their_ranks_are_moved_inside_the_node() {
    run_each_moving("names", EVERY_MS);
}

#[test]
fn programs_are_right_while_their_ranks_are_moved_between_nodes() {
    run_each_moving("names", &format!("{EVERY_MS} --node-size 1"));
}

#[test]
fn programs_are_right_while_their_ranks_are_moved_by_their_state() {
    run_each_moving("names-by-state", &format!("{EVERY_MS} --move state"));
    run_each_moving("names-by-state", &format!("{EVERY_MS} --move state --node-size 1"));
}
