//! Jacobi relaxation by rocket-mini: the twin of `c/jacobi.c`.

use mpi::topology::SimpleCommunicator;
use rocket_mini::jacobi::{Costly, Cut, Problem, Settings, solve};

use super::Outcome;
use crate::measure::Measured;

/// Seconds of `iterations` iterations on a cube with `size` cells per side, with a check of the
/// residual in each `check_every`-th. The cells in `costly` cost more.
///
/// # Errors
///
/// If there are too many ranks or too little memory for the cube.
pub fn jacobi(
    world: &SimpleCommunicator,
    size: usize,
    iterations: usize,
    check_every: usize,
    costly: Option<Costly>,
) -> Outcome {
    let settings = Settings {
        problem: Problem { size },
        cut: Cut::Blocks,
        max_iterations: iterations,
        tolerance: 0.0,
        check_every,
        migrate_every: 0,
    };
    let run = solve(world, &settings, costly.map(Into::into), |_, _| ())?;
    Ok(run.map(|run| Measured {
        figure: "jacobi".to_owned(),
        seconds: run.seconds,
        cells_per_second: Some((settings.problem.cells() * iterations) as f64 / run.seconds),
        residual: Some(run.solution.residual()),
        checksum: Some(format!("{:016x}", run.solution.checksum)),
        ..Measured::default()
    }))
}
