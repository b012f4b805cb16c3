//! A program's environment: the processor's state, its stack and memory, pipes and streams.

use std::fs::{self, File};
use std::process::Stdio;

use tempfile::TempDir;
use vrt_tests::job::Job;

use crate::places::{BETWEEN_NODES, HELD, MOVING, ON_ONE_PE, Place, STILL};
use crate::program::Program;

const SURROUNDINGS: Program = Program::new("surroundings.c");
const RANKS: usize = 4;

fn in_place(place: Place, case: &str) -> Job {
    let folder = TempDir::new().unwrap();
    let mut command = SURROUNDINGS.job(&place.with(RANKS), case);
    command.current_dir(folder.path());
    let mut job = Job::of(command);
    job.name = case.to_owned();
    job
}

all_is_right! {
    rounding: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    traps: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    flags: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    own_stack: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    allocations: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    #[ignore = "sbrk is refused"]
    program_break: STILL, MOVING;
    sockets: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    handled_pipe: STILL, MOVING;
    blocked_signals: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    children: STILL, MOVING, ON_ONE_PE;
    temporary_files: STILL, MOVING, BETWEEN_NODES;
    clocks: STILL, ON_ONE_PE;
    pipelines: STILL, MOVING;
    spawned: STILL, MOVING, ON_ONE_PE;
    timers: STILL, MOVING, ON_ONE_PE;
    exited_threads: STILL, MOVING, ON_ONE_PE;
    cancelled_threads: STILL, MOVING, ON_ONE_PE;
    running_threads: STILL, HELD, ON_ONE_PE;
    threads_for_the_kernel: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    conditions: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    semaphores: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    shared_memory: STILL, MOVING, BETWEEN_NODES, ON_ONE_PE;
    loaded_objects: STILL, MOVING;
    #[ignore = "libc asks the loader past the dladdr in front"]
    named_frames: STILL;
}

#[test]
fn what_libc_does_in_threads_of_its_own_is_refused_by_name() {
    let job = in_place(MOVING, "threads_inside_libc").is_right();
    for name in ["aio_write", "timer_create with SIGEV_THREAD"] {
        assert!(job.err.contains(&format!("{name} is not supported")), "{job}");
    }
}

#[test]
fn a_trapped_division_is_its_ranks() {
    let job = in_place(STILL, "trapped");
    assert_eq!(job.status, Some(128 + libc::SIGFPE), "{job}");
    assert!(job.err.contains("rank 1 on PE 0: arithmetic error"), "{job}");
}

/// Neighbouring stacks are not overwritten.
#[test]
fn a_frame_larger_than_the_stack_ends_the_job() {
    let job = in_place(STILL, "large_frame");
    assert!(job.status == Some(70) || job.status == Some(128 + libc::SIGSEGV), "{job}");
    assert!(job.err.contains("rank 1") && job.err.contains("stack"), "{job}");
    assert!(!job.err.contains("deadlock"), "{job}");
}

#[test]
fn a_broken_pipe_ends_the_job() {
    let job = in_place(STILL, "broken_pipe");
    assert_eq!(job.status, Some(128 + libc::SIGPIPE), "{job}");
}

/// Streams are written in pieces, so lines of several ranks may be mixed.
#[test]
fn output_is_complete() {
    let line =
        |rank, at| format!("rank {rank}, line {at} of an output that fills pipes and buffers\n");
    let lines = (0..RANKS).flat_map(|rank| (0..5000).map(move |at| line(rank, at).len()));
    let expected = lines.sum::<usize>() + "much_output: 4 ranks, ok\n".len();
    for place in [STILL, ON_ONE_PE, BETWEEN_NODES] {
        let job = in_place(place, "much_output").succeeds();
        assert_eq!(job.out.len(), expected);
        assert_eq!(job.out.lines().count(), 5000 * RANKS + 1);
    }
}

#[test]
fn output_past_the_streams() {
    let job = in_place(STILL, "direct_output").is_right();
    for rank in 0..RANKS {
        assert!(job.out.lines().any(|line| line == format!("rank {rank} to 1")), "{job}");
        assert!(job.err.lines().any(|line| line == format!("rank {rank} to 2")), "{job}");
    }
}

/// As under `mpirun`, rank 0 gets the job's input.
#[test]
fn input_is_rank_0s() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("input");
    fs::write(&file, "42\n").unwrap();
    for place in [STILL, ON_ONE_PE] {
        let mut command = SURROUNDINGS.job(&place.with(RANKS), "input");
        let output = command.stdin(Stdio::from(File::open(&file).unwrap())).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("input: 4 ranks, ok"), "{said}");
    }
}

#[test]
fn ends_inside_of_others() {
    for (case, status) in [
        ("abort_in_operation", 11),
        ("exit_in_exit", 9),
        ("abort_in_exit", 128 + libc::SIGABRT),
        ("fails_after_finalize", 3),
    ] {
        let job = in_place(STILL, case);
        assert_eq!(job.status, Some(status), "{job}");
    }
}
