//! The programs that `vrt-bench` runs, one for each figure.
//!
//! Each is a function that all ranks of a world call; rank 0 gets the measurements. The programs
//! check what they receive: a wrong value is an error.

mod allreduce;
mod collective;
mod counts;
mod jacobi;
mod line;
mod many;
pub mod metg;
mod moving;
mod onesided;
mod pack;
mod pingpong;
mod ring;
mod switch;
mod threads;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

pub use allreduce::allreduce;
pub use collective::{CollectiveOperation, collective};
pub use counts::{Operation, count};
pub use jacobi::jacobi;
pub use line::line;
pub use many::{Aspect, many};
pub use metg::metg;
pub use moving::{first_touch, moving};
pub use onesided::{RemoteAccess, onesided};
pub use pack::pack;
pub use pingpong::pingpong;
pub use ring::ring;
pub use switch::switch;
pub use threads::{Work, threads};

use crate::measure::Measured;

/// How much a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct Effort {
    /// Operations per repetition
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = vrt_cli::positive::<u32>)]
    pub operations: u32,

    /// Repetitions; their median is printed
    #[arg(long, value_name = "COUNT", default_value_t = 11, value_parser = vrt_cli::positive::<u32>)]
    pub repetitions: u32,
}

/// Why a program has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The program requires another number of ranks.
    #[error("{program} needs {expected} ranks, but there are {found}")]
    Ranks {
        /// The program.
        program: &'static str,
        /// The required number of ranks.
        expected: i32,
        /// The number of ranks.
        found: i32,
    },
    /// The received value is not the one sent.
    #[error("{program}: a wrong value arrived in repetition {repetition}")]
    WrongValue {
        /// The program.
        program: &'static str,
        /// The repetition; 0 is the warm-up.
        repetition: u32,
    },
    /// A task received a wrong input.
    #[error(
        "metg: the task of timestep {step} in column {column} got a wrong input from column {from}"
    )]
    WrongInput {
        /// The timestep.
        step: usize,
        /// The column of the task.
        column: usize,
        /// The column of the input.
        from: usize,
    },
    /// A rank has too many columns.
    #[error("metg: a rank has {found} columns, and can have {most}")]
    Columns {
        /// Its columns.
        found: usize,
        /// The most there can be.
        most: usize,
    },
    /// Threads cannot be created.
    #[error("no threads: {0}")]
    Threads(String),
    /// A rank could not be moved.
    #[error(transparent)]
    Move(#[from] mpi::CannotMove),
    /// The solver failed.
    #[error(transparent)]
    Solver(#[from] rocket_mini::jacobi::Error),
}

/// The measurements on rank 0; `None` on the other ranks.
pub type Outcome = Result<Option<Measured>, Error>;

/// The outcome of a rank that has the seconds of each repetition.
fn outcome(world: &SimpleCommunicator, program: &'static str, seconds: &[f64]) -> Outcome {
    Ok((world.rank() == 0).then(|| Measured::from_repetitions(program, seconds)))
}

/// The seconds per operation of each repetition, after one as a warm-up; `once` runs the repetition of a number.
fn repetitions(
    effort: Effort,
    once: impl FnMut(u32) -> Result<f64, Error>,
) -> Result<Vec<f64>, Error> {
    let mut seconds = (0..=effort.repetitions).map(once).collect::<Result<Vec<f64>, Error>>()?;
    seconds.remove(0);
    Ok(seconds)
}

/// Refuses a world of another size.
fn expect_ranks(
    world: &SimpleCommunicator,
    program: &'static str,
    expected: i32,
) -> Result<(), Error> {
    let found = world.size();
    if found == expected { Ok(()) } else { Err(Error::Ranks { program, expected, found }) }
}

/// Refuses a wrong value.
fn expect_value(is_right: bool, program: &'static str, repetition: u32) -> Result<(), Error> {
    if is_right { Ok(()) } else { Err(Error::WrongValue { program, repetition }) }
}

#[cfg(test)]
mod tests;
