//! `rocket-mini jacobi`: its options, and what it prints.

use std::error::Error;
use std::fmt::Write as _;

use mpi::topology::SimpleCommunicator;
use rocket_mini::jacobi::{self, Costly, Problem, Run, Settings, solve, solve_sequentially};

use crate::progress::Progress;
use crate::subcommand::{CommonArgs, Refusal, Subcommand};

/// Relax Laplace's equation on a cube, a block of cells for each rank.
///
/// The exit status is 1 when the solution is not the one of the sequential
/// solver, bit for bit, and 2 when the options make no sense.
#[derive(clap::Args)]
pub struct JacobiArgs {
    /// Cells along each axis of the cube
    #[arg(long, value_name = "CELLS", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=8192))]
    size: u32,

    /// Stop after so many iterations
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    max_iterations: usize,

    /// Stop when all cells change by less than this; 0 for never
    #[arg(long, value_name = "CHANGE", default_value_t = 1e-4, value_parser = tolerance)]
    tolerance: f64,

    /// Look at the residual once in so many iterations
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    check_every: u32,

    /// Offer ranks to the load balancer once in so many iterations; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    migrate_every: u32,

    /// Make a fraction of the cells cost so many times more, as in 0.25:10
    #[arg(long, value_name = "FRACTION:FACTOR")]
    uneven: Option<Costly>,

    /// Compare with the sequential solver [default: up to a size of 128]
    #[arg(long, overrides_with = "no_verify")]
    verify: bool,

    #[command(flatten)]
    common: CommonArgs,
}

const LARGEST_SIZE_VERIFIED_BY_DEFAULT: u32 = 128;

impl JacobiArgs {
    fn settings(&self) -> Settings {
        Settings {
            problem: Problem { size: self.size as usize },
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
            check_every: self.check_every as usize,
            migrate_every: self.migrate_every as usize,
        }
    }
}

impl Subcommand for JacobiArgs {
    type Run = Run;

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn solve(
        &self,
        world: &SimpleCommunicator,
        progress: &mut Progress,
    ) -> Result<Option<Run>, Refusal> {
        let settings = self.settings();
        let show = |iteration, residual| {
            progress.show(|| {
                format!(
                    "iteration {iteration} of at most {}, residual {residual:.3e}",
                    self.max_iterations
                )
            });
        };
        solve(world, &settings, self.uneven, show).map_err(|error| match error {
            jacobi::Error::TooManyRanks { .. } => Refusal::Usage(error.to_string()),
            jacobi::Error::OutOfMemory { .. } => Refusal::FailedAlone(error.to_string()),
        })
    }

    fn report(&self, run: &Run) {
        print!("{}", summary(&self.settings(), run));
    }

    fn verifies(&self) -> bool {
        let is_small = self.size <= LARGEST_SIZE_VERIFIED_BY_DEFAULT;
        self.verify || (!self.common.no_verify && is_small)
    }

    fn verify(&self, run: &Run) -> Result<(), Box<dyn Error>> {
        match run.solution.difference_from(&solve_sequentially(&self.settings())) {
            None => Ok(()),
            Some(difference) => Err(difference.into()),
        }
    }
}

fn summary(settings: &Settings, run: &Run) -> String {
    let solution = &run.solution;
    let size = settings.problem.size;
    let ranks = run.compute_seconds.len();
    let [x, y, z] = run.grid.shape();
    let largest = run.grid.extent(0).lengths;
    let smallest = run.grid.extent(ranks - 1).lengths;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<15}{value}");
    };
    line("grid", format!("{size} x {size} x {size} cells"));
    let blocks = if largest == smallest {
        format!("each {}", product(largest))
    } else {
        format!("from {} to {}", product(smallest), product(largest))
    };
    line("decomposition", format!("{ranks} ranks as {x} x {y} x {z} blocks, {blocks} cells"));
    let end = if solution.converged { "converged" } else { "not converged" };
    line("iterations", format!("{}, {end}", solution.iterations));
    line("residual", format!("max {:e}, L2 {:e}", solution.residual(), solution.l2));
    line("error", format!("{:e} from the exact solution", solution.error));
    line("checksum", format!("{:016x}", solution.checksum));
    let updates = settings.problem.cells() as f64 * solution.iterations as f64;
    line("time", format!("{:.6} s, {:.4e} cells/s", run.seconds, updates / run.seconds));
    let compute = &run.compute_seconds;
    let least = compute.iter().copied().fold(f64::INFINITY, f64::min);
    let most = compute.iter().copied().fold(0.0, f64::max);
    let mean = compute.iter().sum::<f64>() / ranks as f64;
    line(
        "compute a rank",
        format!(
            "min {least:.6} s, mean {mean:.6} s, max {most:.6} s, imbalance {:.3}",
            if mean > 0.0 { most / mean - 1.0 } else { 0.0 }
        ),
    );
    text
}

fn product([x, y, z]: [usize; 3]) -> String {
    format!("{x} x {y} x {z}")
}

fn tolerance(text: &str) -> Result<f64, String> {
    (text.parse())
        .ok()
        .filter(|value: &f64| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| "expected a number that is not negative".to_owned())
}
