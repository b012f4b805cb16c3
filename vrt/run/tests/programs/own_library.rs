//! Programs with their own libraries, of which each rank has a copy.

use vrt_tests::job::Job;

use crate::program::Program;

const RANKS: usize = 6;

const OWN_LIBRARY: Program =
    Program { libraries: &["own_library_library.c"], ..Program::new("own_library.c") };

/// The program's destructors run before those of its dependencies.
fn destructors_ran(job: &Job) {
    let of_library = job.out.lines().filter(|line| *line == "library: destructor").count();
    assert_eq!(of_library, RANKS, "{job}");
    for rank in 0..RANKS {
        let both = format!("rank {rank}: destructor\nlibrary: destructor\n");
        assert!(job.out.contains(&both), "rank {rank}: {job}");
    }
}

in_places! { OWN_LIBRARY, RANKS, destructors_ran }
