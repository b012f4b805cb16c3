//! Very many ranks: their start-up time, their memory, and the cost of the simplest operations
//! among them.

use std::time::Instant;

use mpi::collective::SystemOperation;
use mpi::point_to_point::send_receive_into;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_value, outcome};

/// What is measured for many ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Aspect {
    /// From the start of the job until every rank has reached a barrier.
    Start,
    /// A switch from a rank to the next one.
    Switch,
    /// A barrier.
    Barrier,
    /// A sum of doubles for every rank.
    Allreduce,
    /// 8 bytes from each rank to the next.
    Ring,
    /// A balancing step, for which all ranks offer themselves to be moved; configured by the job.
    Balance,
}

/// Seconds of one operation of all ranks; for a switch, of one rank.
///
/// The outcome also contains the memory per rank: that of all PEs, including their page tables,
/// divided by the ranks.
///
/// # Errors
///
/// If a wrong value arrives.
pub fn many(
    world: &SimpleCommunicator,
    what: Aspect,
    job_began: Instant,
    effort: Effort,
) -> Outcome {
    let (rank, ranks) = (world.rank(), world.size());
    world.barrier();
    let start = job_began.elapsed().as_secs_f64();
    let right = world.process_at_rank((rank + 1) % ranks);
    let left = world.process_at_rank((rank + ranks - 1) % ranks);
    let mut seconds = Vec::new();
    for repetition in 0..=effort.repetitions {
        if what == Aspect::Start {
            seconds = vec![start];
            break;
        }
        world.barrier();
        let begin = Instant::now();
        let mut is_right = true;
        for _ in 0..effort.operations {
            match what {
                Aspect::Start => {}
                Aspect::Switch => mpi::yield_now(),
                Aspect::Barrier => world.barrier(),
                Aspect::Allreduce => {
                    let mut sum = 0.0;
                    world.all_reduce_into(&1.0, &mut sum, SystemOperation::sum());
                    is_right &= sum == f64::from(ranks);
                }
                Aspect::Ring => {
                    let mut came = 0;
                    send_receive_into(&rank, &right, &mut came, &left);
                    is_right &= came == left.rank();
                }
                Aspect::Balance => world.migrate(&mut ()),
            }
        }
        world.barrier();
        let mut operation = begin.elapsed().as_secs_f64() / f64::from(effort.operations);
        if what == Aspect::Switch {
            operation /= f64::from(ranks) / f64::from(pes(world));
        }
        if repetition > 0 {
            seconds.push(operation);
        }
        expect_value(is_right, "many", repetition)?;
    }
    let bytes = bytes_of_pes(world) / f64::from(ranks);
    let mut outcome = outcome(world, "many", &seconds)?;
    if let Some(measured) = &mut outcome {
        measured.bytes_per_rank = Some(bytes);
    }
    Ok(outcome)
}

/// The highest number of a PE with ranks, plus one.
fn pes(world: &SimpleCommunicator) -> u32 {
    let mut highest = 0;
    world.all_reduce_into(&mpi::statistics().pe, &mut highest, SystemOperation::max());
    highest + 1
}

/// Memory of all PEs together.
fn bytes_of_pes(world: &SimpleCommunicator) -> f64 {
    let (pe, rank) = (mpi::statistics().pe, world.rank());
    // The lowest rank of each PE speaks for it.
    let mut lowest = vec![i32::MAX; pes(world) as usize];
    let mut mine = lowest.clone();
    mine[pe as usize] = rank;
    world.all_reduce_into(&mine[..], &mut lowest[..], SystemOperation::min());
    let own = if lowest[pe as usize] == rank { bytes_of_process() } else { 0.0 };
    let mut sum = 0.0;
    world.all_reduce_into(&own, &mut sum, SystemOperation::sum());
    sum
}

/// Memory that this process has touched, and its page tables. Pages of the arena are attributed to
/// the process that runs their rank.
fn bytes_of_process() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kibibytes = |name: &str| -> f64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
    };
    1024.0 * ["RssAnon:", "RssShmem:", "VmPTE:"].map(kibibytes).iter().sum::<f64>()
}
