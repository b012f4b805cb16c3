//! All ranks call one collective operation repeatedly: the twin of `c/collective.c`.

use std::time::Instant;

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_value, outcome, repetitions};

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CollectiveOperation {
    /// A sum of doubles for every rank.
    Allreduce,
    /// Bytes of rank 0 for every rank.
    Broadcast,
    /// Bytes of each rank for each rank.
    Alltoall,
    /// Bytes of each rank for every rank.
    Allgather,
    /// A sum of doubles for rank 0.
    Reduce,
    /// A sum of doubles, of which each rank gets a part.
    ReduceScatter,
    /// No bytes.
    Barrier,
}

const FROM_ROOT: u8 = 77;

/// Seconds of one operation to which each rank contributes this many bytes (for an all-to-all and a
/// reduce-scatter: this many per rank).
///
/// # Errors
///
/// If a wrong value arrives.
pub fn collective(
    world: &SimpleCommunicator,
    what: CollectiveOperation,
    bytes: usize,
    effort: Effort,
) -> Outcome {
    use CollectiveOperation::{
        Allgather, Allreduce, Alltoall, Barrier, Broadcast, Reduce, ReduceScatter,
    };
    let (rank, ranks) = (world.rank(), world.size() as usize);
    let root = world.process_at_rank(0);
    let numbers = bytes / 8;
    let parts = if what == ReduceScatter { ranks } else { 1 };
    let addends: Vec<f64> = (0..numbers * parts).map(|i| f64::from(rank) + i as f64).collect();
    let mut sums = vec![0.0; numbers];
    let outgoing = vec![rank as u8 + 1; if what == Alltoall { bytes * ranks } else { bytes }];
    let incoming_bytes = match what {
        Allreduce | Reduce | ReduceScatter | Barrier => 0,
        Broadcast => bytes,
        Alltoall | Allgather => bytes * ranks,
    };
    let seconds = repetitions(effort, |repetition| {
        let mut incoming = vec![0; incoming_bytes];
        if what == Broadcast && rank == 0 {
            incoming.fill(FROM_ROOT);
        }
        world.barrier();
        let start = Instant::now();
        for _ in 0..effort.operations {
            match what {
                Allreduce => {
                    world.all_reduce_into(&addends[..], &mut sums[..], SystemOperation::sum());
                }
                Reduce if rank == 0 => {
                    root.reduce_into_root(&addends[..], &mut sums[..], SystemOperation::sum());
                }
                Reduce => root.reduce_into(&addends[..], SystemOperation::sum()),
                ReduceScatter => world.reduce_scatter_block_into(
                    &addends[..],
                    &mut sums[..],
                    SystemOperation::sum(),
                ),
                Broadcast => root.broadcast_into(&mut incoming[..]),
                Alltoall => world.all_to_all_into(&outgoing[..], &mut incoming[..]),
                Allgather => world.all_gather_into(&outgoing[..], &mut incoming[..]),
                Barrier => world.barrier(),
            }
        }
        // A root runs ahead of its broadcasts, and others of a root: all have to be there.
        world.barrier();
        let operation = start.elapsed().as_secs_f64() / f64::from(effort.operations);
        let first = if what == ReduceScatter { rank as usize * numbers } else { 0 };
        let sum = |i: usize| (ranks * (ranks - 1) / 2 + ranks * i) as f64;
        let is_right = match what {
            Reduce if rank != 0 => true,
            Allreduce | Reduce | ReduceScatter => {
                sums.iter().enumerate().all(|(i, value)| *value == sum(first + i))
            }
            Broadcast => incoming.iter().all(|byte| *byte == FROM_ROOT),
            Alltoall | Allgather => {
                incoming.iter().enumerate().all(|(i, byte)| *byte == (i / bytes + 1) as u8)
            }
            Barrier => true,
        };
        expect_value(is_right, "collective", repetition)?;
        Ok(operation)
    })?;
    outcome(world, "collective", &seconds)
}
