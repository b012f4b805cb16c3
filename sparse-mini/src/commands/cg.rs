//! `sparse-mini cg`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use mpi::collective::SystemOperation;
use mpi::traits::*;
use sparse_mini::cg::{Matrix, MatrixError, Solver, Until};

use super::{line, positive, positive_number};

/// Solve a sparse system by conjugate gradients; elements of the vector are sent by sparse
/// exchange.
///
/// The right-hand side is the one whose solution is all ones. The exit status is 1 if the solution
/// is wrong.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// laplace2d:N, laplace3d:N, box3d:N (N points per side), or a Matrix Market file
    #[arg(long, value_name = "MATRIX", default_value = "laplace3d:32")]
    matrix: String,

    /// Stop when the residual has become this many times smaller
    #[arg(long, value_name = "NUMBER", default_value_t = 1e-8, value_parser = positive_number)]
    tolerance: f64,

    /// Stop after this many iterations
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    max_iterations: u32,

    /// Offer ranks to the load balancer once in this many iterations; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    migrate_every: u32,

    /// Solve nothing: print how many neighbours each part has, for these numbers of parts
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = positive)]
    neighbors: Vec<usize>,

    #[command(flatten)]
    pub vrt: mpi::Config,
}

/// Starts the program before there are ranks: the matrix is read once.
pub(crate) fn launch(args: Box<Args>) -> ExitCode {
    let matrix = match matrix(&args.matrix) {
        Ok(matrix) => matrix,
        Err(error) => return super::usage(&format!("--matrix: {error}")),
    };
    if !args.neighbors.is_empty() {
        return print_neighbors(&args, &matrix);
    }
    let matrix = Arc::new(matrix);
    mpi::launch(args.vrt.clone(), move || run(&args, &matrix))
}

fn matrix(name: &str) -> Result<Matrix, MatrixError> {
    let generated = |(kind, n): (&str, &str)| {
        let n: u32 = n.parse().ok()?;
        match kind {
            "laplace2d" if (1..=65_535).contains(&n) => Some(Matrix::Laplace2d(n)),
            "laplace3d" if (1..=1_600).contains(&n) => Some(Matrix::Laplace3d(n)),
            "box3d" if (1..=1_600).contains(&n) => Some(Matrix::Box3d(n)),
            _ => None,
        }
    };
    match name.split_once(':').and_then(generated) {
        Some(matrix) => Ok(matrix),
        None => Matrix::read(Path::new(name)),
    }
}

fn print_neighbors(args: &Args, matrix: &Matrix) -> ExitCode {
    let elements: usize = (0..matrix.rows()).map(|row| matrix.row_len(row)).sum();
    println!("{}: {} rows, {elements} elements", args.matrix, matrix.rows());
    println!("{:>8} {:>8} {:>8}", "parts", "mean k", "most k");
    for parts in &args.neighbors {
        let k = matrix.neighbors(*parts);
        let mean = k.iter().sum::<usize>() as f64 / *parts as f64;
        println!("{parts:>8} {mean:>8.2} {:>8}", k.iter().max().copied().unwrap_or_default());
    }
    ExitCode::SUCCESS
}

fn run(args: &Args, matrix: &Matrix) -> ExitCode {
    let Some(universe) = mpi::initialize() else { return ExitCode::FAILURE };
    let world = universe.world();
    let until = Until { tolerance: args.tolerance, iterations: args.max_iterations };
    let (mut solver, mut seconds) =
        world.restore().unwrap_or_else(|| (Solver::new(&world, matrix), 0.0));
    while !solver.is_done(&until) {
        let began = mpi::time();
        solver.iterate(&world);
        seconds += mpi::time() - began;
        if args.migrate_every > 0 && solver.iterations.is_multiple_of(args.migrate_every) {
            let mut state = (solver, seconds);
            world.migrate(&mut state);
            (solver, seconds) = state;
        }
    }
    report(&world, args, matrix, &solver, seconds)
}

fn report(
    world: &impl Communicator,
    args: &Args,
    matrix: &Matrix,
    solver: &Solver,
    seconds: f64,
) -> ExitCode {
    let (residual, error) = solver.check(world);
    let k = solver.rows.neighbors() as u64;
    let (mut most, mut sum, mut longest) = (0, 0, 0.0);
    world.all_reduce_into(&k, &mut most, SystemOperation::max());
    world.all_reduce_into(&k, &mut sum, SystemOperation::sum());
    world.all_reduce_into(&seconds, &mut longest, SystemOperation::max());
    if world.rank() != 0 {
        return ExitCode::SUCCESS;
    }
    line("matrix", format!("{}, {} rows", args.matrix, matrix.rows()));
    let mean = sum as f64 / f64::from(world.size());
    line("neighbours k", format!("mean {mean:.2}, at most {most}, on {} ranks", world.size()));
    let each = longest / f64::from(solver.iterations.max(1)) * 1e6;
    line("iterations", format!("{}, {each:.2} us each", solver.iterations));
    line("residual", format!("{residual:e} of the right-hand side's"));
    line("error", format!("{error:e} at most"));
    // What rounding makes of the residual that the solver sees is far less than ten times.
    let converged = residual <= 10.0 * args.tolerance.max(1e-14);
    line("verification", if converged { "ok" } else { "WRONG: not converged" }.to_owned());
    if converged { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
