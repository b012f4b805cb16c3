//! Parallel runs in one process, against the sequential solver.

use super::*;

fn settings(size: usize) -> Settings {
    Settings {
        problem: Problem { size },
        max_iterations: 60,
        tolerance: 1e-3,
        check_every: 5,
        migrate_every: 10,
    }
}

/// Solves on some ranks of this process and calls `check` where the outcome is.
fn run(ranks: u32, settings: &Settings, costly: Option<Costly>, check: impl Fn(&Run) + Sync) {
    mpi::run_local(ranks, |world: &SimpleCommunicator| {
        let run = solve(world, settings, costly, |_, _| ()).unwrap();
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
    let costly = "0.5:40".parse().unwrap();
    run(2, &settings, Some(costly), |run| {
        assert_eq!(run.solution.difference_from(&reference), None);
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
