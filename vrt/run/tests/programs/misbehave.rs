//! What ends programs, and what they do besides sending messages: as for processes under `mpirun`.

use std::time::{Duration, Instant};

use tempfile::TempDir;
use vrt_tests::job::Job;

use crate::places::{BETWEEN_NODES, HELD_ON_NODES, MOVING, ON_ONE_PE, Place, STILL};
use crate::program::Program;

const MISBEHAVE: Program = Program {
    libraries: &["misbehave_library.c"],
    options: &["-Wl,--as-needed"],
    ..Program::new("misbehave.c")
};
const RANKS: usize = 4;

/// Runs a case in its own directory.
fn in_place(place: Place, case: &str) -> Job {
    let folder = TempDir::new().unwrap();
    let mut command = MISBEHAVE.job(&place.with(RANKS), case);
    command.current_dir(folder.path());
    let mut job = Job::of(command);
    job.name = case.to_owned();
    job
}

fn still(case: &str) -> Job {
    in_place(STILL, case)
}

/// A job that must end with this status and print these words.
#[track_caller]
fn ends(case: &str, status: i32, words: &[&str]) -> Job {
    let job = still(case);
    assert_eq!(job.status, Some(status), "{job}");
    for word in words {
        assert!(job.err.contains(word), "{word:?}: {job}");
    }
    job
}

/// Ranks that crash: the job reports which, where and how, and ends with the status that a shell gives a process killed
/// by the signal.
mod crashes {
    use super::*;

    const SEGV: i32 = 128 + libc::SIGSEGV;
    const ABRT: i32 = 128 + libc::SIGABRT;

    /// Rank 1 must crash in a line of this function.
    #[track_caller]
    fn crashes(case: &str, status: i32, words: &[&str]) {
        let job = ends(case, status, &["vrt: rank 1 on PE 0", "misbehave.c:"]);
        let names_function = job.err.lines().any(|line| line.ends_with(&format!(": {case}")));
        assert!(names_function, "{job}");
        for word in words {
            assert!(job.err.contains(word), "{word:?}: {job}");
        }
    }

    #[test]
    fn invalid_address() {
        crashes("segfault", SEGV, &["invalid memory access at address 0x8", "write_to"]);
    }

    #[test]
    fn constant() {
        crashes("write_constant", SEGV, &["invalid memory access at address 0x", "write_to"]);
    }

    #[test]
    fn function_at_null() {
        crashes("call_null", SEGV, &["invalid memory access at address 0x0"]);
    }

    #[test]
    fn abort() {
        crashes("aborts", ABRT, &["rank 1 on PE 0 aborted (signal 6)"]);
    }

    #[test]
    fn assertion() {
        crashes("assertion", ABRT, &["Assertion `rank != ONE' failed", "rank 1 on PE 0 aborted"]);
    }

    #[test]
    fn division_by_zero() {
        crashes("divides", 128 + libc::SIGFPE, &["division by zero"]);
    }

    #[test]
    fn illegal_instruction() {
        crashes("illegal", 128 + libc::SIGILL, &["illegal instruction"]);
    }

    #[test]
    fn endless_recursion() {
        let begin = Instant::now();
        let job = still("recursion");
        assert!(begin.elapsed() < Duration::from_secs(20), "{job}");
        assert!(!matches!(job.status, Some(0) | None), "{job}");
        assert!(job.err.contains("rank 1 on PE 0 overflowed its stack of 8192 KiB"), "{job}");
        assert!(job.err.contains("descend") && job.err.contains("misbehave.c:"), "{job}");
    }

    #[test]
    fn freed_twice() {
        crashes("frees_twice", ABRT, &["free"]);
        assert!(!still("frees_twice").err.contains("panicked"));
    }

    #[test]
    fn freed_but_never_allocated() {
        crashes("frees_wrong", ABRT, &["free"]);
        assert!(!still("frees_wrong").err.contains("panicked"));
    }

    #[test]
    fn killed() {
        let job = ends("kills_itself", 128 + libc::SIGTERM, &[]);
        assert!(job.err.contains("SIGTERM") || job.err.contains("signal 15"), "{job}");
    }
}

/// Ranks that exit.
mod exits {
    use super::*;

    #[test]
    fn a_ranks_status_is_the_jobs() {
        ends("exit3", 3, &[]);
        ends("exit300", 300 & 0xff, &[]);
        ends("exit_at_once", 5, &[]);
    }

    #[test]
    fn who_exited_is_said() {
        ends("exit3", 3, &["rank 1", "status 3"]);
    }

    #[test]
    fn a_rank_must_not_exit_between_initialisation_and_finalisation() {
        let words = ["rank 1 has ended without MPI_Finalize"];
        let job = still("exit0");
        assert!(job.status != Some(0) && job.err.contains(words[0]), "{job}");
        let job = still("no_finalize");
        assert!(job.status != Some(0) && job.err.contains("without MPI_Finalize"), "{job}");
    }

    /// Streams are not flushed and functions not called.
    #[test]
    fn exit_at_once_does_nothing_else() {
        let job = still("exit_at_once_0").succeeds();
        assert_eq!(job.out, "");
    }

    #[test]
    fn functions_registered_are_called() {
        let job = still("exit_in_library_order").succeeds();
        let mut lines: Vec<&str> = job.out.lines().collect();
        lines.sort_unstable();
        let expected: Vec<String> =
            (0..RANKS).map(|rank| format!("rank {rank}: at exit")).collect();
        assert_eq!(lines, expected, "{job}");
    }

    #[test]
    fn aborting_ends_the_job_with_the_code() {
        let job = ends("aborts_job", 7, &["rank 1 called MPI_Abort(MPI_COMM_WORLD, 7)"]);
        assert!(job.out.contains("rank 1 was here"), "{job}");
        ends("aborts_self", 9, &["rank 1 called MPI_Abort(MPI_COMM_SELF, 9)"]);
    }
}

/// Wrong use of MPI's functions.
mod wrong_use {
    use super::*;

    /// The job must end with a line that contains all of these words.
    #[track_caller]
    fn is_refused(case: &str, words: &[&str]) {
        let job = still(case);
        assert!(!matches!(job.status, Some(0 | 124) | None), "{job}");
        let says_all = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(job.err.lines().any(says_all), "no line says all of {words:?}: {job}");
    }

    #[test]
    fn handles() {
        is_refused("wrong_datatype", &["rank 1 in MPI_Send", "0x7777", "MPI_ERR_TYPE"]);
        is_refused("null_datatype", &["rank 1 in MPI_Send", "MPI_DATATYPE_NULL", "MPI_ERR_TYPE"]);
        is_refused("uncommitted", &["rank 1 in MPI_Send", "not committed", "MPI_ERR_TYPE"]);
        is_refused("freed_comm", &["rank 1 in MPI_Barrier", "freed", "MPI_ERR_COMM"]);
        is_refused("null_comm", &["rank 1 in MPI_Barrier", "MPI_COMM_NULL", "MPI_ERR_COMM"]);
        is_refused("freed_request", &["rank 1 in MPI_Wait", "freed", "MPI_ERR_REQUEST"]);
    }

    #[test]
    fn numbers() {
        is_refused(
            "wrong_rank",
            &["rank 1 in MPI_Send on MPI_COMM_WORLD", "99", "0 to 3", "MPI_ERR_RANK"],
        );
        is_refused("wrong_tag", &["rank 1 in MPI_Send", "-5", "MPI_ERR_TAG"]);
        is_refused("wrong_count", &["rank 1 in MPI_Send", "-3", "MPI_ERR_COUNT"]);
        is_refused("wrong_root", &["rank 1 in MPI_Bcast", "77", "MPI_ERR_ROOT"]);
        is_refused("wrong_op", &["rank 1 in MPI_Allreduce", "MPI_ERR_OP"]);
        is_refused("truncation", &["rank 1 in MPI_Recv", "8 bytes", "only 4", "MPI_ERR_TRUNCATE"]);
    }

    #[test]
    fn outside_of_initialisation_and_finalisation() {
        is_refused("before_init", &["in MPI_Barrier", "before MPI_Init"]);
        is_refused("after_finalize", &["in MPI_Barrier", "after MPI_Finalize"]);
    }

    #[test]
    fn in_a_thread() {
        is_refused("message_of_thread", &["MPI_Comm_rank", "thread", "MPI_THREAD_FUNNELED"]);
    }
}

/// Ranks that wait for something that never happens.
mod endless {
    use super::*;

    #[test]
    fn a_deadlock_is_said_with_who_waits_for_what() {
        let words = [
            "deadlock",
            "rank 0 (PE 0) waits in MPI_Allreduce",
            "rank 1 (PE 0) waits in MPI_Recv with rank 0, tag 42",
            "rank 3 (PE 1) waits in MPI_Allreduce",
        ];
        ends("deadlock", 70, &words);
        let all = |function: &str, tag: i32| -> Vec<String> {
            let line = |rank| {
                let (pe, next) = (rank / 2, (rank + 1) % 4);
                format!("rank {rank} (PE {pe}) waits in {function} with rank {next}, tag {tag}")
            };
            (0..RANKS).map(line).collect()
        };
        for (case, lines) in
            [("deadlock_of_all", all("MPI_Ssend", 43)), ("waits_for_itself", all("MPI_Wait", 44))]
        {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            ends(case, 70, &lines);
        }
    }

    /// A rank that computes forever is named; whoever waits for the job ends it.
    #[test]
    fn a_rank_that_never_waits_is_said() {
        let options = format!("{} --watchdog 200ms", STILL.with(RANKS));
        let job = Job::of(MISBEHAVE.job_within("2", &options, "spins"));
        assert_eq!(job.status, Some(124), "{job}");
        assert!(job.err.contains("rank 1 has kept the thread of PE 0"), "{job}");
    }
}

/// What works as in a process.
mod right {
    use super::*;

    all_is_right! {
        returned: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        own_handler: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        signals: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        sigactions: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        own_segfault_handler: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        alarms: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        jumps: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        forks: STILL, ON_ONE_PE, MOVING, BETWEEN_NODES;
        fork_only: STILL, ON_ONE_PE;
        fork_exit: STILL, ON_ONE_PE;
        pipes: STILL, MOVING, HELD_ON_NODES, ON_ONE_PE;
        systems: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        threads: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        questions_of_thread: STILL, MOVING;
        thread_keys: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        locks: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        lock_owners: STILL, ON_ONE_PE, MOVING, BETWEEN_NODES;
        reads_exe: STILL;
        #[ignore = "ranks cannot open libraries while they run"]
        opens_library: STILL, ON_ONE_PE, MOVING, BETWEEN_NODES;
        looks_up: STILL;
        changes_folder: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        masks: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        files: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        maps: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
        sleeps: STILL, MOVING, ON_ONE_PE;
        much_memory: STILL, MOVING, BETWEEN_NODES;
        deep_stack: STILL, MOVING, BETWEEN_NODES;
        reads_input: STILL;
        processes: STILL, MOVING;
    }

    #[test]
    fn a_childs_streams_are_written() {
        let job = in_place(STILL, "fork_exit").is_right();
        for rank in 0..RANKS {
            let line = format!("child of rank {rank}");
            assert_eq!(job.out.lines().filter(|found| *found == line).count(), 1, "{job}");
        }
    }
}
