//! C++ with a separate libc and libstdc++ for each rank.

use vrt_tests::job::Job;

use crate::program::Program;

const RANKS: usize = 6;

/// Constructors, exceptions, type information, streams, statics.
mod language {
    use super::*;

    const CPP: Program = Program::new("cpp.cc");

    fn destructors_ran(job: &Job) {
        let all = |rank| format!("rank {rank}: 3 destroyed, all");
        for rank in 0..RANKS {
            assert!(job.out.lines().any(|line| line == all(rank)), "rank {rank}: {job}");
        }
        assert!(!job.out.contains("out of order"), "{job}");
    }

    in_places! { CPP, RANKS, destructors_ran }
}

/// Exceptions thrown out of functions that MPI calls.
mod callbacks {
    use super::*;

    const CALLBACKS: Program = Program { options: &["-pthread"], ..Program::new("callbacks.cc") };

    in_places! { CALLBACKS, 4 }

    #[test]
    fn that_nobody_catches() {
        let job = Program { arguments: "uncaught", ..CALLBACKS }.run("--pes 2 --ranks 4");
        assert_eq!(job.status, Some(128 + libc::SIGABRT), "{job}");
        let words =
            ["terminate called after throwing", "std::runtime_error", "on_comm_error", "main"];
        assert!(words.iter().all(|word| job.err.contains(word)), "{job}");
    }

    /// Objects on the stack are destroyed, as by an exception.
    #[test]
    fn exit_of_the_first_thread() {
        let job = Program { arguments: "exit", ..CALLBACKS }.run("--pes 2 --ranks 3").succeeds();
        for rank in 0..3 {
            let prefix = format!("rank {rank}: ");
            let said: Vec<&str> =
                job.out.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
            assert_eq!(said, ["cleaned up", "destroyed", "exits"], "{job}");
        }
    }
}

/// What ends a process ends the job, with the runtime's message.
mod ends {
    use super::*;

    const UNCAUGHT: Program = Program::new("uncaught.cc");

    #[track_caller]
    fn aborts(arguments: &'static str, words: &[&str]) {
        let job = Program { arguments, ..UNCAUGHT }.run("--pes 2 --ranks 4");
        assert_eq!(job.status, Some(128 + libc::SIGABRT), "{job}");
        for word in words.iter().chain(&["rank 1 on PE 0 aborted", "main", "uncaught.cc:"]) {
            assert!(job.err.contains(word), "{word:?}: {job}");
        }
    }

    #[test]
    fn uncaught_exceptions() {
        let what = ["terminate called after throwing", "std::runtime_error", "nobody catches"];
        aborts("uncaught", &what);
        aborts("noexcept", &what);
    }

    #[test]
    fn pure_virtual_functions() {
        aborts("pure", &["pure virtual method called"]);
    }

    #[test]
    fn terminate() {
        aborts("terminate", &["terminate called without an active exception"]);
    }

    /// Statics are destroyed, objects on the stack are not.
    #[test]
    fn exit_in_the_middle() {
        let job = Program { arguments: "exit", ..UNCAUGHT }.run("--pes 2 --ranks 4");
        assert_eq!((job.status, job.out.as_str()), (Some(5), "destroyed\n"), "{job}");
        let job = Program { arguments: "quick_exit", ..UNCAUGHT }.run("--pes 2 --ranks 4");
        assert_eq!((job.status, job.out.as_str()), (Some(6), ""), "{job}");
    }
}
