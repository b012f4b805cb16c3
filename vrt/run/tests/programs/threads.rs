//! Threads and stacks that ranks create themselves.

use crate::places::{BETWEEN_NODES, HELD, HELD_ON_NODES, MOVING, ON_ONE_PE, STILL};
use crate::program::Program;

/// Ranks with running threads are pinned.
#[test]
fn threads_of_cpp() {
    const THREADS: Program = Program { options: &["-pthread"], ..Program::new("threads.cc") };
    for place in [STILL, ON_ONE_PE, HELD, HELD_ON_NODES] {
        place.runs(|| THREADS.run(&place.with(4)).is_right());
    }
}

#[test]
#[ignore = "the stack of the first thread is taken for memory of the rank for ever"]
fn ranks_move_again_when_their_threads_have_ended() {
    const JOINED: Program = Program { options: &["-pthread"], ..Program::new("joined.c") };
    for place in [MOVING, BETWEEN_NODES] {
        let job = place.run(&JOINED, 4);
        assert!(!job.err.contains("pinned: "), "{job}");
    }
}

#[test]
fn openmp() {
    const OPENMP: Program = Program { options: &["-fopenmp"], ..Program::new("openmp.c") };
    for place in [STILL, ON_ONE_PE, HELD, HELD_ON_NODES] {
        place.runs(|| OPENMP.run(&place.with(4)).is_right());
    }
}

const THREAD_EXIT: Program =
    Program { options: &["-pthread", "-Wl,-z,execstack"], ..Program::new("thread_exit.c") };

/// `pthread_exit` in `main`: the rank continues with its other threads, and then exits.
#[test]
fn exit_of_the_first_thread() {
    for place in [STILL, ON_ONE_PE] {
        let job = THREAD_EXIT.run(&place.with(4)).succeeds();
        for rank in 0..4 {
            let prefix = format!("rank {rank}: ");
            let said: Vec<&str> =
                job.out.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
            let value = format!("value {rank}");
            let expected = ["leaves inner", "leaves outer", &value, "last words", "exits"];
            assert_eq!(said, expected, "{job}");
        }
    }
}

/// Nested functions, whose code GCC puts on the stack.
#[test]
fn code_on_the_stack() {
    for place in [STILL, ON_ONE_PE, MOVING, BETWEEN_NODES] {
        let nested = Program { arguments: "nested", ..THREAD_EXIT };
        place.runs(|| nested.run(&place.with(4)).is_right());
    }
}

/// Stacks from the heap, with messages on each of them.
mod contexts {
    use super::*;

    const CONTEXTS: Program = Program::new("contexts.c");

    in_places! { CONTEXTS, 6, |_| (); still, moving, on_one_pe }

    /// What libc's switch saves may look like an address of another rank: then the rank is pinned.
    #[test]
    fn between_nodes() {
        HELD_ON_NODES.runs(|| CONTEXTS.run(&HELD_ON_NODES.with(6)).is_right());
    }
}
