//! All ranks add a double: the twin of `c/allreduce.c`.

use std::time::Instant;

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_value, outcome, repetitions};

/// Seconds of one reduction to all ranks.
///
/// # Errors
///
/// If a sum is wrong.
pub fn allreduce(world: &SimpleCommunicator, effort: Effort) -> Outcome {
    let (rank, ranks) = (f64::from(world.rank()), f64::from(world.size()));
    let seconds = repetitions(effort, |repetition| {
        let mut sum = 0.0;
        world.barrier();
        let start = Instant::now();
        for operation in 0..effort.operations {
            let operation = f64::from(operation);
            world.all_reduce_into(&(rank + operation), &mut sum, SystemOperation::sum());
            let is_right = sum == ranks * (ranks - 1.0) / 2.0 + ranks * operation;
            expect_value(is_right, "allreduce", repetition)?;
        }
        let reduction = start.elapsed().as_secs_f64() / f64::from(effort.operations);
        Ok(reduction)
    })?;
    outcome(world, "allreduce", &seconds)
}
