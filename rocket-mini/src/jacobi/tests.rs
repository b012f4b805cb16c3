//! Parallel runs in one process, compared with the sequential solver.

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::kernel::Change;
use super::*;

fn settings(size: usize) -> Settings {
    Settings {
        problem: Problem { size },
        cut: Cut::Blocks,
        max_iterations: 60,
        tolerance: 1e-3,
        check_every: 5,
        migrate_every: 10,
    }
}

/// Solves on several ranks of this process and calls `check` on the rank that has the outcome.
fn run(ranks: u32, settings: &Settings, uneven: Option<Uneven>, check: impl Fn(&Run) + Sync) {
    mpi::run_local(ranks, |world: &SimpleCommunicator| {
        let run = solve(world, settings, uneven, |_, _| ()).unwrap();
        assert_eq!(run.is_some(), world.rank() == 0);
        if let Some(run) = run {
            check(&run);
        }
    });
}

#[test]
fn any_number_of_ranks_computes_the_bits_of_the_sequential_solver() {
    for size in [12, 17] {
        let settings = settings(size);
        let reference = solve_sequentially(&settings);
        for ranks in [1, 2, 3, 5, 7, 8, 12] {
            run(ranks, &settings, None, |run| {
                assert_eq!(run.solution.difference_from(&reference), None, "{ranks} ranks");
                assert_eq!(run.solution.error.to_bits(), reference.error.to_bits());
                assert_eq!(run.compute_seconds.len(), ranks as usize);
                assert!(run.compute_seconds.iter().sum::<f64>() <= run.seconds);
            });
        }
    }
}

#[test]
fn convergence_stops_all_ranks_in_one_iteration() {
    let settings =
        Settings { max_iterations: 10_000, tolerance: 1e-9, check_every: 3, ..settings(9) };
    let reference = solve_sequentially(&settings);
    assert!(reference.converged);
    run(6, &settings, None, |run| {
        assert!(run.solution.converged);
        assert_eq!(run.solution.difference_from(&reference), None);
        assert!(run.solution.error < 1e-6);
    });
}

#[test]
fn costly_cells_change_no_result() {
    let settings = settings(16);
    let reference = solve_sequentially(&settings);
    let costly: Costly = "0.5:40".parse().unwrap();
    // The costly part moves and goes several times in a run of milliseconds.
    let moving = Uneven { wander: Some(1e-4), come_and_go: Some(3e-4), ..costly.into() };
    for uneven in [costly.into(), moving] {
        run(2, &settings, Some(uneven), |run| {
            assert_eq!(run.solution.difference_from(&reference), None);
        });
    }
}

#[test]
fn slabs_async_ranks_and_event_loops_compute_the_same_bits() {
    for cut in [Cut::Slabs, Cut::Blocks] {
        let settings = Settings { cut, ..settings(12) };
        let reference = solve_sequentially(&settings);
        let costly: Costly = "0.5:5".parse().unwrap();
        let uneven = Some(Uneven { wander: Some(1e-4), ..costly.into() });
        let same = |run: Option<Run>, world: &SimpleCommunicator| {
            assert_eq!(run.is_some(), world.rank() == 0);
            if let Some(run) = run {
                assert_eq!(run.solution.difference_from(&reference), None, "{cut:?}");
            }
        };
        for ranks in [1, 2, 5, 12] {
            mpi::run_local(ranks, |world: &SimpleCommunicator| {
                same(solve(world, &settings, uneven, |_, _| ()).unwrap(), world);
            });
            mpi::run_local(ranks, |world: &SimpleCommunicator| {
                let run = mpi::block_on(solve_async(world, &settings, uneven, |_, _| ()));
                same(run.unwrap(), world);
            });
        }
        for (ranks, chunks) in [(1, 1), (1, 12), (2, 12), (3, 8), (5, 5)] {
            mpi::run_local(ranks, |world: &SimpleCommunicator| {
                let run = solve_by_events(world, &settings, chunks, uneven, |_, _| ());
                same(run.unwrap(), world);
            });
        }
    }
}

#[test]
fn fewer_chunks_than_ranks_and_more_slabs_than_planes_are_errors() {
    mpi::run_local(5, |world: &SimpleCommunicator| {
        let error = solve_by_events(world, &settings(8), 4, None, |_, _| ()).unwrap_err();
        assert_eq!(error, Error::TooFewChunks { ranks: 5, chunks: 4 });
        let slabs = Settings { cut: Cut::Slabs, ..settings(4) };
        let error = solve(world, &slabs, None, |_, _| ()).unwrap_err();
        assert_eq!(error, Error::TooManySlabs { ranks: 5, size: 4 });
    });
}

#[test]
fn no_iteration_at_all_leaves_the_first_iterate() {
    let settings = Settings { max_iterations: 0, ..settings(8) };
    let reference = solve_sequentially(&settings);
    run(8, &settings, None, |run| {
        assert_eq!(run.solution.iterations, 0);
        assert_eq!(run.solution.difference_from(&reference), None);
    });
}

#[test]
fn more_ranks_than_cells_are_an_error_on_every_rank() {
    mpi::run_local(9, |world: &SimpleCommunicator| {
        let error = solve(world, &settings(2), None, |_, _| ()).unwrap_err();
        assert_eq!(error, Error::TooManyRanks { ranks: 9, size: 2 });
    });
}

/// Changes near round-off are equal, and sums of equal terms are rounded in one direction for long: by 5e-12 of their
/// size with a million cells, but not in the parts of eight ranks.
#[test]
fn sums_in_another_order_are_no_difference() {
    let size = 96;
    let (old, new) = (vec![0.0; size], vec![2.4379989e-11; size]);
    let l2 = |squares: f64| (squares / size.pow(3) as f64).sqrt();
    let sum_of_rows = |rows: usize| {
        let mut change = Change::default();
        (0..rows).for_each(|_| change.add_row(&old, &new));
        change.squares()
    };
    let of_ranks = l2((0..8).map(|_| sum_of_rows(size * size / 8)).sum());
    let of_one = l2((0..size.pow(3)).map(|_| new[0] * new[0]).sum());
    let distance = (of_ranks - of_one).abs() / of_one;
    assert!(distance > 1e-12, "the roundings are too small for this test: {distance:e}");

    let reference = Solution {
        residuals: vec![new[0]],
        l2: of_one,
        cells: size.pow(3),
        iterations: 1,
        converged: false,
        error: 0.0,
        checksum: 0,
    };
    let found = Solution { l2: of_ranks, ..reference.clone() };
    assert_eq!(found.difference_from(&reference), None);
    // One cell among all has changed by twice as much as it should.
    let squares = 1.0 + 3.0 / size.pow(3) as f64;
    let wrong = Solution { l2: of_ranks * squares.sqrt(), ..reference.clone() };
    assert!(matches!(wrong.difference_from(&reference), Some(Difference::L2 { .. })));
    let not_a_number = Solution { l2: f64::NAN, ..reference.clone() };
    assert!(matches!(not_a_number.difference_from(&reference), Some(Difference::L2 { .. })));
}

#[test]
fn every_kind_of_difference_is_found() {
    let solution = solve_sequentially(&settings(6));
    let changed = |change: fn(&mut Solution)| {
        let mut other = solution.clone();
        change(&mut other);
        other.difference_from(&solution)
    };
    assert_eq!(changed(|_| ()), None);
    assert_eq!(changed(|s| s.l2 *= 1.0 + 1e-14), None);
    assert!(matches!(changed(|s| s.l2 *= 1.0 + 1e-11), Some(Difference::L2 { .. })));
    assert!(matches!(
        changed(|s| s.residuals[1] = s.residuals[1].next_up()),
        Some(Difference::Residual { check: 2, .. })
    ));
    assert!(matches!(changed(|s| s.checksum += 1), Some(Difference::Cells { .. })));
    assert!(matches!(changed(|s| s.iterations += 1), Some(Difference::Iterations { .. })));
}

#[test]
fn the_checksum_sees_a_changed_bit_and_a_moved_cell() {
    let grid = |values: [f64; 2]| {
        (0..)
            .zip(values)
            .map(|(number, value)| cell_checksum(number, value))
            .fold(0, u64::wrapping_add)
    };
    let sum = grid([1.0, 2.0]);
    assert_ne!(sum, grid([1.0, 2.0_f64.next_up()]));
    assert_ne!(sum, grid([2.0, 1.0]));
    assert_ne!(grid([0.0, 0.0]), grid([-0.0, 0.0]));
}
