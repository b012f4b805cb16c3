//! Two ranks that send a message to and fro: the twin of `c/pingpong.c`.

use std::time::Instant;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_ranks, expect_value, outcome};

/// Seconds of a message of `bytes` bytes one way.
///
/// # Errors
///
/// When there are not two ranks, or wrong bytes arrive.
pub fn pingpong(world: &SimpleCommunicator, bytes: usize, effort: Effort) -> Outcome {
    expect_ranks(world, "pingpong", 2)?;
    let is_first = world.rank() == 0;
    let other_rank = 1 - world.rank();
    let other = world.process_at_rank(other_rank);
    let outgoing = vec![world.rank() as u8 + 1; bytes];
    let mut incoming = vec![0; bytes];
    let mut seconds = Vec::with_capacity(effort.repetitions as usize);
    for repetition in 0..=effort.repetitions {
        world.barrier();
        let start = Instant::now();
        for _ in 0..effort.operations {
            if is_first {
                other.send(&outgoing[..]);
            }
            other.receive_into(&mut incoming[..]);
            if !is_first {
                other.send(&outgoing[..]);
            }
        }
        let one_way = start.elapsed().as_secs_f64() / f64::from(effort.operations) / 2.0;
        if repetition > 0 {
            seconds.push(one_way);
        }
        let expected = other_rank as u8 + 1;
        let is_right = incoming.iter().all(|byte| *byte == expected);
        expect_value(is_right, "pingpong", repetition)?;
        incoming.fill(0);
    }
    outcome(world, "pingpong", seconds)
}
