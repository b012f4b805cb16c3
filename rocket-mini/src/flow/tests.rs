//! Verification: exact solutions, orders, conservation, and runs on ranks against one block.

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::*;

fn settings(problem: Problem, size: usize) -> Settings {
    Settings {
        problem,
        cells: problem.cells(size),
        end_time: problem.end_time(),
        cfl: 0.4,
        limiter: Limiter::VanAlbada,
        unevenness: 1.0,
        migrate_every: 0,
    }
}

fn error(problem: Problem, size: usize, limiter: Limiter) -> f64 {
    let settings = Settings { limiter, ..settings(problem, size) };
    solve_alone(&settings).unwrap().error(problem).unwrap()
}

#[test]
fn shock_tubes_converge_to_the_exact_solution() {
    for problem in [Problem::Sod, Problem::Lax] {
        for limiter in [Limiter::Minmod, Limiter::VanLeer, Limiter::VanAlbada] {
            let errors = [100, 200, 400].map(|size| error(problem, size, limiter));
            let orders = [0, 1].map(|at| (errors[at] / errors[at + 1]).log2());
            println!("{problem:?} {limiter:?}: {errors:.5?}, orders {orders:.2?}");
            // At contacts second-order schemes converge with order 2/3, at shocks with 1.
            assert!(
                orders.iter().all(|order| *order > 0.66),
                "{problem:?} {limiter:?}: {orders:?}"
            );
            assert!(errors[2] < error(problem, 400, Limiter::None) / 2.0);
        }
    }
}

#[test]
fn a_vortex_is_carried_with_second_order() {
    let errors = [32, 64, 128].map(|size| error(Problem::Vortex, size, Limiter::VanAlbada));
    let orders = [0, 1].map(|at| (errors[at] / errors[at + 1]).log2());
    println!("vortex: {errors:.5?}, orders {orders:.2?}");
    assert!(orders[1] > 1.8, "{errors:?}: {orders:?}");
    let first_order = [32, 64].map(|size| error(Problem::Vortex, size, Limiter::None));
    let order = (first_order[0] / first_order[1]).log2();
    assert!((0.4..1.2).contains(&order) && first_order[1] > 3.0 * errors[1], "{order}");
}

#[test]
fn mass_and_energy_are_conserved_to_round_off() {
    for problem in [Problem::Blast, Problem::Bomb, Problem::Chamber, Problem::Vortex, Problem::Sod]
    {
        let settings = Settings { end_time: 0.5 * problem.end_time(), ..settings(problem, 16) };
        let outcome = solve_alone(&settings).unwrap();
        assert_eq!(outcome.verify(&settings, &outcome).err(), None, "{problem:?}");
    }
}

#[test]
fn a_closed_chamber_fills_as_thermodynamics_says_and_grows_by_what_burns() {
    let settings = settings(Problem::Bomb, 16);
    let outcome = solve_alone(&settings).unwrap();
    assert_eq!(outcome.verify(&settings, &outcome), Ok(()));
    let grown = outcome.last.volume - outcome.first.volume;
    let density = settings.problem.propellant().density;
    let burned = outcome.last.gained[0];
    assert!((burned / (density * grown) - 1.0).abs() < 1e-12);
    assert!(outcome.mean_pressure() > 1.5, "{}", outcome.mean_pressure());
}

/// A wave of the surface that moves through uniform flow does not change the flow.
#[test]
fn a_moving_grid_leaves_a_uniform_flow_as_it_is() {
    let problem = Problem::Vortex;
    let cells = [12, 10, 6];
    let extent = Blocks::new(1, cells, 1.0).unwrap().extent(0);
    let mut block = Block::new(problem, Limiter::VanLeer, cells, extent);
    let uniform = problem.gas().conserved([1.3, 0.4, -0.7, 0.9, 2.1]);
    block.set_all(uniform);
    for (at, height) in block.heights.iter_mut().enumerate() {
        *height += 0.8 * (1.7 * at as f64).sin();
    }
    for (at, motion) in block.motion.iter_mut().enumerate() {
        *motion = (2.3 * at as f64).cos();
    }
    let before = block.clone();
    for _ in 0..20 {
        block.begin_step();
        for is_second in [false, true] {
            Alone.fill(&mut block);
            block.fill_boundary(1);
            // The gas that the ends of columns move into is the same.
            block.stage(0.02, is_second);
        }
    }
    let mut changed: f64 = 0.0;
    block.for_each_cell(|cell| {
        changed = changed.max((block.volume(cell) / before.volume(cell) - 1.0).abs());
    });
    assert!(changed > 0.01, "{changed}");
    block.for_each_cell(|cell| {
        let state = block.state(cell);
        let expected = [1.3, 0.4, -0.7, 0.9, 2.1];
        let distance = state.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(distance < 1e-12, "{cell:?}: {state:?}");
    });
}

/// The length of a step follows from the fastest wave of all blocks, so it must not depend on how the domain is cut,
/// even if the cells of a block along x do not fill the last lanes.
#[test]
fn the_fastest_wave_is_the_same_however_the_domain_is_cut() {
    let (problem, cells) = (Problem::Chamber, [28, 4, 6]);
    let fastest = |ranks: usize| {
        let blocks = Blocks::new(ranks, cells, 1.0).unwrap();
        let of_block = (0..ranks).map(|rank| {
            let extent = blocks.extent(rank);
            let mut block = Block::new(problem, Limiter::VanLeer, cells, extent);
            block.set_all(problem.gas().conserved([1.3, -2.0, 7.0, -1.0, 2.1]));
            for k in 0..=extent.lengths[2] {
                for i in 0..=extent.lengths[0] {
                    let (x, z) = (extent.start[0] + i, extent.start[2] + k);
                    let at = block.corner(i, k);
                    block.heights[at] = 10.0 - 0.3 * x as f64 - 0.1 * z as f64;
                    block.motion[at] = -0.02 * x as f64;
                }
            }
            block.fastest()
        });
        of_block.fold(0.0, f64::max)
    };
    let of_one = fastest(1);
    assert!(of_one.is_finite());
    for ranks in 2..=9 {
        assert_eq!(fastest(ranks), of_one, "{ranks} ranks");
    }
}

#[test]
fn any_number_of_ranks_computes_the_bits_of_one_block() {
    for (problem, size, unevenness) in
        [(Problem::Chamber, 32, 3.0), (Problem::Vortex, 20, 1.0), (Problem::Blast, 12, 1.0)]
    {
        let settings = Settings {
            end_time: 0.1 * problem.end_time(),
            unevenness,
            migrate_every: 3,
            ..settings(problem, size)
        };
        let alone = solve_alone(&settings).unwrap();
        assert!(alone.clock.steps > 3);
        for ranks in [1, 2, 4, 6, 7] {
            if Blocks::new(ranks as usize, settings.cells, unevenness).is_err() {
                assert_eq!((problem, ranks), (Problem::Blast, 7));
                continue;
            }
            mpi::run_local(ranks, |world: &SimpleCommunicator| {
                let run = solve(world, &settings, |_| ()).unwrap();
                assert_eq!(run.is_some(), world.rank() == 0);
                if let Some(run) = run {
                    assert_eq!(run.outcome.verify(&settings, &alone), Ok(()), "{ranks} ranks");
                }
            });
        }
    }
}

#[test]
fn a_step_that_is_too_long_is_an_error_on_every_rank() {
    let settings = Settings { cfl: 6.0, ..settings(Problem::Sod, 100) };
    mpi::run_local(3, |world: &SimpleCommunicator| {
        let error = solve(world, &settings, |_| ()).unwrap_err();
        assert!(matches!(error, Error::BlownUp { .. }), "{error}");
    });
}

#[test]
fn what_is_wrong_is_found() {
    let settings = settings(Problem::Sod, 50);
    let right = solve_alone(&settings).unwrap();
    assert_eq!(right.verify(&settings, &right), Ok(()));
    let verdict = |change: fn(&mut Outcome)| {
        let mut outcome = right;
        change(&mut outcome);
        outcome.verify(&settings, &right)
    };
    assert!(matches!(verdict(|o| o.clock.steps += 1), Err(Wrong::Steps { .. })));
    assert!(matches!(verdict(|o| o.last.checksum ^= 1), Err(Wrong::Cells { .. })));
    assert!(matches!(verdict(|o| o.last.totals[4] *= 1.0 + 1e-11), Err(Wrong::Balance { .. })));
    assert!(matches!(verdict(|o| o.last.error *= 10.0), Err(Wrong::Error { .. })));
}
