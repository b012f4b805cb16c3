//! Programs with a global allocator of their own.

use vrt_tests::job::{self, Job};

/// Their ranks moved without what they had allocated.
#[test]
fn ranks_stay_where_another_allocator_has_their_memory() {
    let mut command = job::unlimited(env!("CARGO_BIN_EXE_allocator"));
    command.envs([("VRT_PES", "2"), ("VRT_RANKS", "4")]);
    command.envs([("VRT_LB", "rotate"), ("VRT_LB_PERIOD", "5ms")]);
    let job = Job::of(command).is_right();
    assert!(job.out.contains("global allocator"), "{job}");
    assert!(job.err.contains("global allocator"), "{job}");
    assert_eq!(job.moved(), 0, "{job}");
}
