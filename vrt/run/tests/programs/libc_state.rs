//! State that libc keeps per process, and therefore per rank.

use vrt_tests::job::Job;

use crate::places::{HELD, HELD_ON_NODES, ON_ONE_PE, STILL};
use crate::program::Program;

const RANKS: usize = 6;

/// Arguments, streams, environment, errors, times, and the internal state of other functions.
mod state {
    use super::*;

    const STATE: Program = Program { arguments: "argument", ..Program::new("libc_state.c") };

    fn wrote_whole_lines_at_exit(job: &Job) {
        for rank in 0..RANKS {
            let halves = format!("rank {rank} writes half a line, rank {rank} the other half");
            assert!(job.out.lines().any(|line| line == halves), "rank {rank}: {job}");
            let last = format!("rank {rank}: 2 functions before the last, in order");
            assert!(job.out.lines().any(|line| line == last), "rank {rank}: {job}");
        }
        assert!(!job.out.contains("WRONG"), "{job}");
    }

    in_places! {
        STATE, RANKS, wrote_whole_lines_at_exit;
        still,
        moving,
        between_nodes,
        on_one_pe,
    }
}

mod locales {
    use super::*;

    const LOCALES: Program = Program::new("locales.c");

    in_places! {
        LOCALES, RANKS, |_| ();
        still,
        moving,
        between_nodes,
        on_one_pe,
    }
}

mod users_and_hosts {
    use super::*;

    const DATABASES: Program = Program::new("databases.c");

    in_places! { DATABASES, 4 }
}

/// Libc has opened libraries for them itself, so the ranks are pinned.
#[test]
fn character_sets() {
    const CHARACTER_SETS: Program = Program::new("character_sets.c");
    for place in [STILL, ON_ONE_PE, HELD, HELD_ON_NODES] {
        place.runs(|| CHARACTER_SETS.run(&place.with(4)).is_right());
    }
}
