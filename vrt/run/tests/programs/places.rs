//! The placements under which a program must give the same results.

use vrt_tests::job::Job;

use crate::program::Program;

/// Where the ranks of a job run.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    options: &'static str,
    ranks: Ranks,
}

/// What ranks do in a place.
#[derive(Clone, Copy, PartialEq)]
enum Ranks {
    Stay,
    Move,
    /// They are told to move, and hold something that pins them.
    Hold,
}

/// The most jobs of a program to run until the balancer has moved ranks, as these may end before that.
const JOBS: usize = 100;

/// Ranks do not move.
pub(crate) const STILL: Place = Place { options: "--pes 2", ranks: Ranks::Stay };
/// All ranks share one process.
pub(crate) const ON_ONE_PE: Place = Place { options: "--pes 1", ranks: Ranks::Stay };
/// Ranks move between the PEs of a node.
pub(crate) const MOVING: Place =
    Place { options: "--pes 2 --lb random --lb-period 1ms", ranks: Ranks::Move };
/// Ranks move with their memory, as between machines.
pub(crate) const BETWEEN_NODES: Place =
    Place { options: "--pes 2 --node-size 1 --lb random --lb-period 1ms", ranks: Ranks::Move };
/// Ranks would move between PEs if they held nothing.
pub(crate) const HELD: Place = Place { ranks: Ranks::Hold, ..MOVING };
/// Ranks would move between nodes if they held nothing.
pub(crate) const HELD_ON_NODES: Place = Place { ranks: Ranks::Hold, ..BETWEEN_NODES };

impl Place {
    /// The options of a job of this many ranks here.
    pub(crate) fn with(self, ranks: usize) -> String {
        format!("{} --ranks {ranks}", self.options)
    }

    /// Runs a program here, again until its ranks have moved twice if they do here: each time it must report that all
    /// is right. The last job is returned.
    #[track_caller]
    pub(crate) fn run(self, program: &Program, ranks: usize) -> Job {
        let mut moved = 0;
        for _ in 0..JOBS {
            let job = program.run(&self.with(ranks)).is_right();
            if self.ranks != Ranks::Move {
                return job;
            }
            moved += job.moved();
            if moved >= 2 {
                return job;
            }
        }
        panic!("{moved} moves only in {JOBS} jobs of {ranks} ranks");
    }

    /// Runs jobs of a short program here, each of which `job` checks, until ranks have moved in one if they do here.
    #[track_caller]
    pub(crate) fn runs(self, job: impl Fn() -> Job) {
        for _ in 0..JOBS {
            let job = job();
            let is_seen = match self.ranks {
                Ranks::Stay => true,
                Ranks::Move => job.moved() > 0,
                Ranks::Hold => job.err.contains("pinned"),
            };
            if is_seen {
                return;
            }
        }
        panic!("{JOBS} jobs are right, and in none has a rank moved, or been held: {}", job());
    }
}

/// Tests a program in some or all places, with this many ranks; further checks of each job may be given.
macro_rules! in_places {
    ($program:expr, $ranks:expr) => {
        in_places! { $program, $ranks, |_| (); still, moving, between_nodes, on_one_pe }
    };
    ($program:expr, $ranks:expr, $check:expr) => {
        in_places! { $program, $ranks, $check; still, moving, between_nodes, on_one_pe }
    };
    ($program:expr, $ranks:expr, $check:expr; $($(#[$attribute:meta])* $place:ident),+ $(,)?) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $place() {
                let check: fn(&vrt_tests::job::Job) = $check;
                check(&in_places!(@ $place).run(&$program, $ranks));
            }
        )+
    };
    (@ still) => { $crate::places::STILL };
    (@ moving) => { $crate::places::MOVING };
    (@ between_nodes) => { $crate::places::BETWEEN_NODES };
    (@ on_one_pe) => { $crate::places::ON_ONE_PE };
}

/// Tests each case of a program by name, for which the module has a function `in_place`: everything must be right in
/// these places.
macro_rules! all_is_right {
    ($($(#[$attribute:meta])* $case:ident: $($place:ident),+;)+) => {$(
        $(#[$attribute])*
        #[test]
        fn $case() {
            for place in [$($place),+] {
                place.runs(|| in_place(place, stringify!($case)).is_right());
            }
        }
    )+};
}
