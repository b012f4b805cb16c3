//! The programs on the ranks of this process.

use super::*;

const EFFORT: Effort = Effort { operations: 20, repetitions: 3 };

/// Runs a program on several ranks and checks the form of its outcome.
fn runs(ranks: u32, program: impl Fn(&SimpleCommunicator) -> Outcome + Sync) {
    mpi::run_local(ranks, |world: &SimpleCommunicator| {
        let measured = program(world).unwrap();
        assert_eq!(measured.is_some(), world.rank() == 0);
        if let Some(measured) = measured {
            assert!(measured.seconds > 0.0);
            assert_eq!(measured.repetitions, Some(EFFORT.repetitions));
            assert!(measured.least.unwrap() <= measured.seconds);
            assert!(measured.most.unwrap() >= measured.seconds);
        }
    });
}

#[test]
fn every_program_measures_something() {
    runs(2, |world| switch(world, EFFORT));
    for bytes in [1, 8, 4_000, 100_000] {
        for touches in [false, true] {
            runs(2, |world| pingpong(world, bytes, touches, EFFORT));
        }
    }
    for ranks in [1, 2, 3, 7] {
        runs(ranks, |world| ring(world, EFFORT));
        runs(ranks, |world| allreduce(world, EFFORT));
    }
}

#[test]
fn collective_operations_of_every_kind_and_length_are_measured() {
    use CollectiveOperation::{
        Allgather, Allreduce, Alltoall, Barrier, Broadcast, Reduce, ReduceScatter,
    };
    for ranks in [1, 2, 5] {
        for what in [Allgather, Allreduce, Alltoall, Barrier, Broadcast, Reduce, ReduceScatter] {
            for bytes in [8, 4096, 40_000] {
                runs(ranks, |world| collective(world, what, bytes, EFFORT));
            }
        }
    }
}

#[test]
fn many_ranks_are_measured() {
    use Aspect::{Allreduce, Balance, Barrier, Ring, Start, Switch};
    for what in [Start, Switch, Barrier, Allreduce, Ring, Balance] {
        mpi::run_local(50, |world: &SimpleCommunicator| {
            let begin = std::time::Instant::now();
            if let Some(measured) = many(world, what, begin, EFFORT).unwrap() {
                assert!(measured.seconds > 0.0);
                assert!(measured.bytes_per_rank.unwrap() > 4096.0);
            }
        });
    }
}

#[test]
fn memory_is_packed_and_accessed() {
    for by_hand in [true, false] {
        runs(1, |world| pack(world, 20, by_hand, EFFORT));
    }
    for what in [RemoteAccess::Put, RemoteAccess::Get] {
        runs(2, |world| onesided(world, what, 8, EFFORT));
    }
}

#[test]
fn a_solver_returns_the_bits_of_its_c_twin() {
    mpi::run_local(3, |world: &SimpleCommunicator| {
        if let Some(measured) = jacobi(world, 20, 30, 10, None).unwrap() {
            assert_eq!(measured.residual, Some(C_RESIDUAL));
            assert_eq!(measured.checksum.as_deref(), Some(C_CHECKSUM));
        }
    });
}

/// As printed by `c/jacobi 20 30 10`.
const C_RESIDUAL: f64 = 0.020082441915537208;
const C_CHECKSUM: &str = "217e0996293218f0";

#[test]
fn programs_for_two_ranks_refuse_three() {
    mpi::run_local(3, |world: &SimpleCommunicator| {
        for (program, outcome) in
            [("switch", switch(world, EFFORT)), ("pingpong", pingpong(world, 8, false, EFFORT))]
        {
            let error = Error::Ranks { program, expected: 2, found: 3 };
            assert_eq!(outcome, Err(error));
        }
    });
}

#[test]
fn counted_operations_end() {
    for operation in Operation::ALL {
        count(operation, 50);
    }
}
