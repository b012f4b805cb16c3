//! Operations for an instruction counter: one PE in this process, no clock.

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

/// An operation whose instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Operation {
    /// A switch from a rank to another.
    Switch,
    /// 8 bytes sent by a rank and received by another, the switches between
    /// them included.
    Message,
    /// A probe that finds nothing, by a rank that is alone.
    Probe,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 3] = [Self::Switch, Self::Message, Self::Probe];

    /// The name on the command line and in the file of committed figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Message => "message",
            Self::Probe => "probe",
        }
    }

    fn ranks(self) -> u32 {
        match self {
            Self::Switch | Self::Message => 2,
            Self::Probe => 1,
        }
    }
}

/// Makes `iterations` iterations of two operations each.
///
/// # Panics
///
/// When a wrong value arrives.
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
