//! Operations for an instruction counter: one PE in this process, no clock.

use mpi::collective::SystemOperation;
use mpi::point_to_point::send_receive_into;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

/// An operation whose instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Operation {
    /// A switch from a rank to another.
    Switch,
    /// 8 bytes sent by one rank and received by another, including the switches between them.
    Message,
    /// A probe that finds nothing, by a single rank.
    Probe,
    /// 8 bytes sent to the right and 8 received from the left by each rank of a
    /// ring: the share of one rank.
    Ring,
    /// A sum of doubles that every rank gets: the share of one rank.
    Allreduce,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 5] =
        [Self::Switch, Self::Message, Self::Probe, Self::Ring, Self::Allreduce];

    /// Its name on the command line and in the file of committed figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Message => "message",
            Self::Probe => "probe",
            Self::Ring => "ring",
            Self::Allreduce => "allreduce",
        }
    }

    fn ranks(self) -> u32 {
        match self {
            Self::Switch | Self::Message => 2,
            Self::Probe => 1,
            Self::Ring | Self::Allreduce => 32,
        }
    }

    /// Operations of all ranks together per iteration.
    pub fn in_an_iteration(self) -> u32 {
        match self {
            Self::Switch | Self::Message | Self::Probe => 2,
            Self::Ring | Self::Allreduce => self.ranks(),
        }
    }
}

/// Executes `iterations` iterations of [`Operation::in_an_iteration`] operations.
///
/// # Panics
///
/// If a wrong value arrives.
pub fn count(operation: Operation, iterations: u32) {
    mpi::run_local(operation.ranks(), |world: &SimpleCommunicator| {
        for iteration in 0..iterations {
            match operation {
                // Each of two ranks yields once.
                Operation::Switch => mpi::yield_now(),
                Operation::Message => exchange(world, iteration),
                Operation::Probe => {
                    assert!(world.any_process().immediate_probe().is_none());
                    assert!(world.any_process().immediate_probe().is_none());
                }
                Operation::Ring => pass_on(world, iteration),
                Operation::Allreduce => add(world, iteration),
            }
        }
    });
}

/// A message to the other rank and one back.
fn exchange(world: &SimpleCommunicator, iteration: u32) {
    let other = world.process_at_rank(1 - world.rank());
    let mut incoming = 0_u64;
    if world.rank() == 0 {
        other.send(&u64::from(iteration));
        other.receive_into(&mut incoming);
    } else {
        other.receive_into(&mut incoming);
        other.send(&u64::from(iteration));
    }
    assert_eq!(incoming, u64::from(iteration));
}

/// A number from the rank on the left.
fn pass_on(world: &SimpleCommunicator, iteration: u32) {
    let (rank, ranks) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % ranks);
    let left = world.process_at_rank((rank + ranks - 1) % ranks);
    let mut incoming = 0_u64;
    send_receive_into(&u64::from(iteration), &right, &mut incoming, &left);
    assert_eq!(incoming, u64::from(iteration));
}

/// The sum of a number of each rank.
fn add(world: &SimpleCommunicator, iteration: u32) {
    let mut sum = 0.0;
    world.all_reduce_into(&f64::from(iteration), &mut sum, SystemOperation::sum());
    assert_eq!(sum, f64::from(iteration) * f64::from(world.size()));
}
