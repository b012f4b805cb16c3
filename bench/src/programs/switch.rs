//! Two ranks that only yield to each other.

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_ranks, outcome};
use crate::measure::repeat;

/// Seconds of one switch from one rank of a PE to another.
///
/// # Errors
///
/// If there are not two ranks.
pub fn switch(world: &SimpleCommunicator, effort: Effort) -> Outcome {
    expect_ranks(world, "switch", 2)?;
    world.barrier();
    // Both ranks yield in turn, so each yield of one takes two switches.
    let switches = 2.0 * f64::from(effort.operations);
    let seconds = repeat(effort.repetitions, switches, || {
        for _ in 0..effort.operations {
            mpi::yield_now();
        }
    });
    outcome(world, "switch", &seconds)
}
