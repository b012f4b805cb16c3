//! Communicators, groups, topologies, attributes, infos and error handlers.

use vrt_tests::job::Job;

use crate::program::Program;

const COMMUNICATORS: Program = Program::new("communicators.c");
const RANKS: usize = 6;

/// MPI-4.1 section 11.2.4: attributes of `MPI_COMM_SELF` are deleted when a rank finalizes.
fn attributes_of_self_were_deleted(job: &Job) {
    for rank in 0..RANKS {
        let line = format!("rank {rank}: deleted");
        assert_eq!(job.out.lines().filter(|found| *found == line).count(), 1, "{job}");
    }
}

in_places! { COMMUNICATORS, RANKS, attributes_of_self_were_deleted }
