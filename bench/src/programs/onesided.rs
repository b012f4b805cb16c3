//! Rank 0 reads or writes the memory of rank 1: the twin of `c/onesided.c`.

use std::time::Instant;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_ranks, expect_value, outcome, repetitions};

/// The access to the other rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RemoteAccess {
    /// It is written.
    Put,
    /// It is read.
    Get,
}

const ARRIVED: u8 = 78;

/// Seconds of an access to this many bytes, including the flush after it.
///
/// # Errors
///
/// If there are not two ranks, or wrong bytes arrive.
pub fn onesided(
    world: &SimpleCommunicator,
    what: RemoteAccess,
    bytes: usize,
    effort: Effort,
) -> Outcome {
    expect_ranks(world, "onesided", 2)?;
    let rank = world.rank();
    let is_put = what == RemoteAccess::Put;
    let window = world.allocate_window(vec![0_u8; bytes]);
    let seconds = repetitions(effort, |repetition| {
        let there = if rank == 1 && !is_put { ARRIVED } else { 0 };
        (0..bytes).for_each(|at| window.store(at, there));
        let mut own = vec![if is_put { ARRIVED } else { 0 }; bytes];
        world.barrier();
        window.lock_all();
        let start = Instant::now();
        if rank == 0 {
            for _ in 0..effort.operations {
                match what {
                    RemoteAccess::Put => window.put(1, 0, &own),
                    RemoteAccess::Get => window.get(1, 0, &mut own),
                }
                window.flush(1);
            }
        }
        let access = start.elapsed().as_secs_f64() / f64::from(effort.operations);
        window.unlock_all();
        world.barrier();
        let is_right = match (what, rank) {
            (RemoteAccess::Put, 1) => (0..bytes).all(|at| window.load(at) == ARRIVED),
            (RemoteAccess::Get, 0) => own.iter().all(|byte| *byte == ARRIVED),
            _ => true,
        };
        expect_value(is_right, "onesided", repetition)?;
        world.barrier();
        Ok(access)
    })?;
    outcome(world, "onesided", &seconds)
}
