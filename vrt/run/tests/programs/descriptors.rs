//! Files, pipes and sockets that ranks have open: they move with the ranks inside a node, and pin them otherwise.

use tempfile::TempDir;
use vrt_tests::job::Job;

use crate::places::{BETWEEN_NODES, MOVING, ON_ONE_PE, Place, STILL};
use crate::program::Program;

const DESCRIPTORS: Program = Program::new("descriptors.c");
const RANKS: usize = 8;
const REASON: &str = "it has a file, socket or other descriptor open";

fn in_place(place: Place, case: &str) -> Job {
    with(&place.with(RANKS), case)
}

fn with(options: &str, case: &str) -> Job {
    let folder = TempDir::new().unwrap();
    let mut command = DESCRIPTORS.job(options, case);
    command.current_dir(folder.path());
    let mut job = Job::of(command);
    job.name = format!("{options} {case}");
    job
}

/// Ranks move with everything they have open; open descriptors pin them only between nodes.
#[track_caller]
fn goes_along(case: &str) {
    for place in [STILL, ON_ONE_PE] {
        let _ = in_place(place, case).is_right();
    }
    for options in
        [MOVING.with(RANKS), format!("--pes 4 --lb random --lb-period 1ms --ranks {RANKS}")]
    {
        let job = with(&options, case).is_right();
        assert!(job.moved() > 10 && !job.err.contains("pinned"), "{job}");
    }
    // Two nodes of two PEs: it depends on where a rank is to go.
    let two_nodes = format!("--pes 4 --node-size 2 --lb random --lb-period 1ms --ranks {RANKS}");
    for options in [BETWEEN_NODES.with(RANKS), two_nodes] {
        let job = with(&options, case).is_right();
        assert!(job.err.contains(REASON), "{job}");
    }
}

#[test]
fn streams() {
    goes_along("streams");
}

#[test]
fn files() {
    goes_along("plain");
}

#[test]
fn pipes_and_sockets() {
    goes_along("pipes");
}

#[test]
fn many_files() {
    goes_along("many");
}

/// Ranks are pinned, for this reason.
#[track_caller]
fn stays(case: &str, reason: &str) {
    for place in [STILL, ON_ONE_PE, BETWEEN_NODES] {
        let _ = in_place(place, case).is_right();
    }
    let job = in_place(MOVING, case).is_right();
    assert!(job.err.contains(reason), "{job}");
}

#[test]
fn locks_are_a_processes() {
    stays("locks", REASON);
}

#[test]
fn watched_descriptors_are_a_processes() {
    stays("watched", REASON);
}

#[test]
fn numbers_that_the_program_has_chosen() {
    stays("numbered", REASON);
}

#[test]
fn mapped_files() {
    stays("mapped", REASON);
}

#[test]
fn signals_come_to_one_process() {
    stays("owned", REASON);
}

/// It may keep what it opens on behalf of any rank.
#[test]
fn a_shared_library_keeps_files_where_they_are() {
    let job = with(&format!("{} --share libm.so", MOVING.with(RANKS)), "streams").is_right();
    assert!(job.err.contains(REASON), "{job}");
}

/// Then no descriptor number is free for the move.
#[test]
fn few_descriptors_are_allowed() {
    let folder = TempDir::new().unwrap();
    let mut command = std::process::Command::new("sh");
    let job = DESCRIPTORS.job(&MOVING.with(RANKS), "streams");
    command.args(["-c", "ulimit -n 100; exec \"$0\" \"$@\""]).arg(job.get_program());
    command.args(job.get_args()).current_dir(folder.path());
    let job = Job::of(command).is_right();
    assert!(job.err.contains(REASON), "{job}");
}
