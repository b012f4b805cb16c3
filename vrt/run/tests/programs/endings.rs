//! How jobs end: ranks that have finalized run to completion, whatever status another rank returns.

use std::fs;

use tempfile::TempDir;
use vrt_tests::job::Job;

use crate::places::{BETWEEN_NODES, MOVING, ON_ONE_PE, Place, STILL};
use crate::program::Program;

const ENDINGS: Program = Program::new("endings.c");
const RANKS: usize = 4;
const PLACES: [Place; 4] = [STILL, MOVING, BETWEEN_NODES, ON_ONE_PE];

/// Runs a case in its own directory, which is then inspected.
fn in_place(place: Place, case: &str, look: impl FnOnce(&TempDir)) -> Job {
    let folder = TempDir::new().unwrap();
    let mut command = ENDINGS.job(&place.with(RANKS), case);
    command.current_dir(folder.path());
    let job = Job::of(command);
    look(&folder);
    job
}

/// Checks what each rank printed before `MPI_Finalize`.
#[track_caller]
fn says_all_sums(job: &Job) {
    for rank in 0..RANKS {
        let line = format!("rank {rank} has the sum 6");
        assert_eq!(job.out.lines().filter(|said| *said == line).count(), 1, "{line:?}: {job}");
    }
}

#[test]
fn all_ranks_fail() {
    for place in PLACES {
        let job = in_place(place, "all_fail", |_| ());
        assert_eq!(job.status, Some(1), "{job}");
        says_all_sums(&job);
        // Once for all of them.
        assert_eq!(job.err.matches("exited with status 1").count(), 1, "{job}");
    }
}

#[test]
fn the_others_run_to_their_end() {
    for place in PLACES {
        let job = in_place(place, "one_fails", |folder| {
            for rank in 0..3 {
                let text = fs::read_to_string(folder.path().join(format!("rank{rank}")));
                assert_eq!(text.unwrap_or_default().lines().count(), 1000, "rank {rank}");
            }
        });
        assert_eq!(job.status, Some(3), "{job}");
        says_all_sums(&job);
        for rank in 0..3 {
            assert!(job.out.contains(&format!("rank {rank}: last words\n")), "{job}");
        }
        assert!(job.err.contains("rank 3 exited with status 3"), "{job}");
    }
}

/// The program determines the order of the statuses of two ranks of one PE.
#[test]
fn the_first_status_is_the_jobs() {
    let job = in_place(ON_ONE_PE, "two_fail", |_| ());
    assert_eq!(job.status, Some(22), "{job}");
    says_all_sums(&job);
    let job = in_place(STILL, "at_once", |_| ());
    assert_eq!(job.status, Some(5), "{job}");
    says_all_sums(&job);
}

#[test]
fn who_ends_without_finalizing_ends_the_job() {
    for place in PLACES {
        let job = in_place(place, "without_finalize", |_| ());
        assert_eq!(job.status, Some(6), "{job}");
        assert!(job.err.contains("rank 1 exited with status 6; ending the job"), "{job}");
        assert!(job.out.contains("rank 1 has the sum 6\n"), "{job}");
    }
}

/// The balancer's work is reported.
#[test]
fn the_balancer_says_what_it_did() {
    for case in ["all_fail", "without_finalize", "abort", "fatal_error"] {
        let job = in_place(MOVING, case, |_| ());
        assert_eq!(job.err.matches("load balancing: random").count(), 1, "{job}");
    }
}

/// Threads do not count for MPI, which is reported when one calls it; until then there is no
/// deadlock.
#[test]
fn a_thread_that_calls_late_is_told() {
    for place in [STILL, ON_ONE_PE] {
        let job = in_place(place, "late_thread", |_| ());
        assert!(!matches!(job.status, Some(0 | 124)), "{job}");
        assert!(job.err.contains("MPI_Send was called by a thread"), "{job}");
        assert!(!job.err.contains("deadlock"), "{job}");
    }
}

/// A thread that waits for others cannot resolve the deadlock.
#[test]
fn a_thread_that_waits_for_ever_leaves_a_deadlock() {
    let job = in_place(STILL, "waiting_thread", |_| ());
    assert_eq!(job.status, Some(70), "{job}");
    assert!(job.err.contains("deadlock: every rank waits"), "{job}");
}
