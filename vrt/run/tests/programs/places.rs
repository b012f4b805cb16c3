//! The places in which a program has to give the same results.

use vrt_tests::job::Job;

use crate::program::Program;

/// Where the ranks of a job are.
#[derive(Clone, Copy)]
pub struct Place {
    options: &'static str,
    /// So many of them move, at least.
    moves: u64,
}

/// Ranks do not move.
pub const STILL: Place = Place { options: "--pes 2", moves: 0 };
/// All ranks take turns in one process.
pub const ON_ONE_PE: Place = Place { options: "--pes 1", moves: 0 };
/// Ranks move between the PEs of a node.
pub const MOVING: Place = Place { options: "--pes 2 --lb random --lb-period 1ms", moves: 2 };
/// Ranks move with their memory, as between machines.
pub const BETWEEN_NODES: Place =
    Place { options: "--pes 2 --node-size 1 --lb random --lb-period 1ms", moves: 2 };

impl Place {
    /// The options of a job of so many ranks here.
    pub fn with(self, ranks: usize) -> String {
        format!("{} --ranks {ranks}", self.options)
    }

    /// Runs a program here: it has to say that all is right, and its ranks have to move if they do here.
    #[track_caller]
    pub fn run(self, program: &Program, ranks: usize) -> Job {
        let job = program.run(&self.with(ranks)).is_right();
        if self.moves > 0 {
            let moved = job.moved();
            assert!(moved >= self.moves, "{moved} moves only: {job}");
        }
        job
    }
}

/// Tests of a program in all places or some, with so many ranks; what is checked of each job besides.
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

/// Tests of what a program does by name, for which the module that uses it has a function `in_place`: all
/// has to be right in these places.
macro_rules! all_is_right {
    ($($(#[$attribute:meta])* $case:ident: $($place:ident),+;)+) => {$(
        $(#[$attribute])*
        #[test]
        fn $case() {
            for place in [$($place),+] {
                let _ = in_place(place, stringify!($case)).is_right();
            }
        }
    )+};
}
