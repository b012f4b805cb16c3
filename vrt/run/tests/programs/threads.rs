//! Threads and stacks that ranks make for themselves.

use crate::places::{BETWEEN_NODES, MOVING, ON_ONE_PE, STILL};
use crate::program::Program;

/// Ranks with running threads stay where they are.
#[test]
fn threads_of_cpp() {
    const THREADS: Program = Program { options: &["-pthread"], ..Program::new("threads.cc") };
    for place in [STILL, ON_ONE_PE, MOVING, BETWEEN_NODES] {
        let _ = THREADS.run(&place.with(4)).is_right();
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
    for place in [STILL, ON_ONE_PE, MOVING, BETWEEN_NODES] {
        let _ = OPENMP.run(&place.with(4)).is_right();
    }
}

/// Stacks from the heap, with messages on each of them.
mod contexts {
    use super::*;

    const CONTEXTS: Program = Program::new("contexts.c");

    in_places! { CONTEXTS, 6, |_| (); still, moving, on_one_pe }

    /// What libc's switch saves may be taken for an address of another rank: then it stays.
    #[test]
    fn between_nodes() {
        let _ = CONTEXTS.run(&BETWEEN_NODES.with(6)).is_right();
    }
}
