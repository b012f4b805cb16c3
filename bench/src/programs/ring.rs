//! All ranks send to the right and receive from the left at the same time: the twin of `c/ring.c`.

use std::time::Instant;

use mpi::point_to_point::send_receive_into;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_value, outcome, repetitions};

/// Seconds of a step in which every rank sends and receives 8 bytes.
///
/// # Errors
///
/// If a wrong value arrives.
pub fn ring(world: &SimpleCommunicator, effort: Effort) -> Outcome {
    let (rank, ranks) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % ranks);
    let left = world.process_at_rank((rank + ranks - 1) % ranks);
    let seconds = repetitions(effort, |repetition| {
        let mut value = i64::from(rank);
        let mut next = 0_i64;
        world.barrier();
        let start = Instant::now();
        for _ in 0..effort.operations {
            send_receive_into(&value, &right, &mut next, &left);
            value = next;
        }
        world.barrier();
        let step = start.elapsed().as_secs_f64() / f64::from(effort.operations);
        // The value has come `operations` ranks to the right.
        let came_from = i64::from(rank) - i64::from(effort.operations);
        let is_right = value == came_from.rem_euclid(i64::from(ranks));
        expect_value(is_right, "ring", repetition)?;
        Ok(step)
    })?;
    outcome(world, "ring", &seconds)
}
