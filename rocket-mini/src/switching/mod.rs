//! The cost of a switch from one blocking rank to another, over the depth of the stack in use (the paper's figure 3).
//!
//! Each rank calls itself until this many bytes of its stack are in use, and there yields to the
//! next rank repeatedly. On the way back it checks that its stack still has its contents.
//!
//! | file | stacks |
//! |---|---|
//! | `ranks` | each rank has its own stack, at an address that is unique in all processes: nothing is copied. Or all share one stack, so that a rank's contents are copied out and in with each switch, as early implementations of migrating threads did |
//! | `threads` | those of threads of the operating system, which cannot move to another process |
//! | `stack` | using a stack to a depth |

mod ranks;
mod stack;
mod threads;

pub use ranks::switch_ranks;
pub use threads::{keep_to_first_core, switch_threads};

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which stacks.
    pub stacks: Stacks,
    /// The bytes of each stack that are in use.
    pub depth: usize,
    /// How often each rank yields.
    pub switches: usize,
}

/// Which stacks are switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// Each rank has its own.
    Slots,
    /// The same, and this many bytes are copied out and in with each switch.
    Copied,
    /// Each thread has its own.
    Threads,
}

/// The measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Run {
    /// Number of ranks or threads.
    pub ranks: usize,
    /// Seconds from the first switch to the last.
    pub seconds: f64,
    /// Total number of yields.
    pub switches: usize,
    /// The least depth of a stack in use, in bytes.
    pub depth: usize,
    /// Number of parts of stacks that had changed.
    pub spoiled: usize,
    /// Number of yields after which none of the others ran.
    pub alone: usize,
}

impl Run {
    /// Seconds per switch.
    pub fn seconds_each(&self) -> f64 {
        self.seconds / self.switches as f64
    }

    /// Checks that stacks were used to their depth, kept their contents, and were switched.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn verify(&self, settings: &Settings) -> Result<(), Wrong> {
        let &Self { ranks, switches, depth, spoiled, alone, .. } = self;
        if spoiled > 0 {
            return Err(Wrong::Spoiled { spoiled });
        }
        if depth < settings.depth {
            return Err(Wrong::Shallow { depth, expected: settings.depth });
        }
        // While the first begin and the last end, the others have not begun or have ended.
        if alone > ranks + switches / 20 {
            return Err(Wrong::Alone { alone, switches });
        }
        Ok(())
    }
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no other rank, or it is on another PE.
    #[error(
        "switches are between ranks of one PE: expected --pes 1 and 2 ranks at least, not {ranks} ranks on {pes} PEs"
    )]
    Ranks {
        /// The ranks.
        ranks: usize,
        /// The PEs.
        pes: usize,
    },
    /// The operating system cannot create more threads, or does not keep them on one core.
    #[error("cannot start {threads} threads on one core: {why}")]
    Threads {
        /// How many.
        threads: usize,
        /// The system's error.
        why: std::io::Error,
    },
}

/// Why a result is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Stacks were overwritten.
    #[error("{spoiled} parts of stacks do not hold what they did before the switches")]
    Spoiled {
        /// How many.
        spoiled: usize,
    },
    /// Stacks were not used to their depth.
    #[error("a stack was in use for {depth} bytes, not for {expected}")]
    Shallow {
        /// What was in use.
        depth: usize,
        /// The required depth.
        expected: usize,
    },
    /// Yields did not switch.
    #[error("{alone} of {switches} times a rank handed over and no other ran")]
    Alone {
        /// How often that happened.
        alone: usize,
        /// How often a rank yielded.
        switches: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTH: usize = 20_000;

    fn settings(stacks: Stacks) -> Settings {
        Settings { stacks, depth: DEPTH, switches: 300 }
    }

    #[test]
    fn all_stacks_are_deep_and_keep_what_they_hold() {
        for stacks in [Stacks::Slots, Stacks::Copied] {
            mpi::run_local(5, move |world| {
                let settings = settings(stacks);
                if let Some(run) = switch_ranks(world, &settings).unwrap() {
                    assert_eq!(run.verify(&settings), Ok(()), "{run:?}");
                    assert_eq!((run.ranks, run.switches), (5, 1500));
                    assert!(run.seconds > 0.0);
                }
            });
        }
        let settings = settings(Stacks::Threads);
        let run = switch_threads(5, &settings).unwrap();
        assert_eq!(run.verify(&settings), Ok(()), "{run:?}");
        assert_eq!((run.switches, run.alone), (1500, 0));
    }

    #[test]
    fn one_alone_has_nobody_to_switch_to() {
        mpi::run_local(1, |world| {
            let error = switch_ranks(world, &settings(Stacks::Slots)).unwrap_err();
            assert!(error.to_string().contains("1 ranks on 1 PEs"), "{error}");
        });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let settings = settings(Stacks::Slots);
        let run = Run { ranks: 2, switches: 600, depth: DEPTH, ..Run::default() };
        assert_eq!(run.verify(&settings), Ok(()));
        let wrong = |run: Run| run.verify(&settings).map_err(|it| it.to_string());
        assert!(wrong(Run { spoiled: 1, ..run }).unwrap_err().starts_with("1 parts"));
        assert!(wrong(Run { depth: 8, ..run }).unwrap_err().contains("for 8 bytes"));
        assert!(wrong(Run { alone: 300, ..run }).unwrap_err().contains("300 of 600"));
    }
}
