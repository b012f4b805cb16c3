//! `rocket-mini jacobi`: its options and its output.

use std::error::Error;
use std::process::ExitCode;

use clap::ValueEnum;
use std::fmt::Write as _;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use rocket_mini::jacobi::{
    self, Costly, Cut, Problem, Run, Settings, Uneven, solve, solve_async, solve_by_events,
    solve_sequentially,
};

use crate::progress::Progress;
use crate::report::{not_negative, positive};
use crate::subcommand::{self, AsyncSubcommand, CommonArgs, Refusal, Subcommand, launch_async};

/// Relax Laplace's equation on a cube, a block of cells for each rank.
///
/// The exit status is 1 if the solution is not that of the sequential solver, bit for bit, and 2 if
/// the options are invalid.
#[derive(clap::Args)]
pub(crate) struct JacobiArgs {
    /// Cells along each axis of the cube
    #[arg(long, value_name = "CELLS", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=8192))]
    size: u32,

    /// Stop after this many iterations
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    max_iterations: usize,

    /// Stop when all cells change by less than this; 0 for never
    #[arg(long, value_name = "CHANGE", default_value_t = 1e-4, value_parser = not_negative)]
    tolerance: f64,

    /// Check the residual once in this many iterations
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = vrt_cli::positive::<u32>)]
    check_every: u32,

    /// Offer ranks to the load balancer once in this many iterations; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    migrate_every: u32,

    /// Make a fraction of the cells cost this many times more, as in 0.25:10
    #[arg(long, value_name = "FRACTION:FACTOR")]
    uneven: Option<Costly>,

    /// Move the costly part along z every so many seconds
    #[arg(long, value_name = "SECONDS", requires = "uneven", value_parser = positive)]
    wander: Option<f64>,

    /// Make those cells cost more for this many seconds, then not for as long, and so on
    #[arg(long, value_name = "SECONDS", requires = "uneven", value_parser = positive)]
    come_and_go: Option<f64>,

    /// Number of axes along which the cube is cut: slabs with two neighbours, or blocks
    #[arg(long, value_name = "1|3", default_value_t = 3, value_parser = dimensions)]
    dimensions: u32,

    /// How blocks are run
    #[arg(long, value_enum, default_value_t = Style::Blocking)]
    style: Style,

    /// Blocks of all ranks, with --style events [default: one per rank]
    #[arg(long, value_name = "COUNT", value_parser = vrt_cli::positive::<u32>)]
    chunks: Option<u32>,

    /// Compare with the sequential solver [default: up to a size of 128]
    #[arg(long, overrides_with = "no_verify")]
    verify: bool,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Style {
    /// A blocking rank for each block
    Blocking,
    /// An async rank for each block
    Async,
    /// An event loop in each rank over its share of the blocks, without coroutines
    Events,
}

const LARGEST_SIZE_VERIFIED_BY_DEFAULT: u32 = 128;

impl JacobiArgs {
    fn settings(&self) -> Settings {
        Settings {
            problem: Problem { size: self.size as usize },
            cut: if self.dimensions == 1 { Cut::Slabs } else { Cut::Blocks },
            max_iterations: self.max_iterations,
            tolerance: self.tolerance,
            check_every: self.check_every as usize,
            migrate_every: self.migrate_every as usize,
        }
    }

    fn uneven(&self) -> Option<Uneven> {
        let Self { wander, come_and_go, .. } = *self;
        self.uneven.map(|costly| Uneven { costly, wander, come_and_go })
    }

    fn show<'a>(&'a self, progress: &'a mut Progress) -> impl FnMut(usize, f64) + 'a {
        move |iteration, residual| {
            progress.step(iteration, || {
                let most = self.max_iterations;
                format!("iteration {iteration} of at most {most}, residual {residual:.3e}")
            });
        }
    }
}

/// Runs the subcommand, on async ranks if requested.
pub(crate) fn launch(args: JacobiArgs) -> ExitCode {
    if args.style == Style::Async { launch_async(args) } else { subcommand::launch(args) }
}

impl AsyncSubcommand for JacobiArgs {
    async fn solve_async(
        &self,
        world: &SimpleCommunicator,
        progress: &mut Progress,
    ) -> Result<Option<Run>, Refusal> {
        if self.chunks.is_some() {
            return Err(Refusal::Usage("--chunks is for --style events alone".to_owned()));
        }
        let (settings, uneven, show) = (self.settings(), self.uneven(), self.show(progress));
        Ok(solve_async(world, &settings, uneven, show).await?)
    }
}

impl From<jacobi::Error> for Refusal {
    fn from(error: jacobi::Error) -> Self {
        match error {
            jacobi::Error::OutOfMemory { .. } => Self::FailedAlone(error.to_string()),
            _ => Self::Usage(error.to_string()),
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
        let (settings, uneven, show) = (self.settings(), self.uneven(), self.show(progress));
        let run = match (self.style, self.chunks) {
            (Style::Events, chunks) => {
                let chunks = chunks.map_or(world.size() as usize, |chunks| chunks as usize);
                solve_by_events(world, &settings, chunks, uneven, show)?
            }
            (_, Some(_)) => {
                return Err(Refusal::Usage("--chunks is for --style events alone".to_owned()));
            }
            _ => solve(world, &settings, uneven, show)?,
        };
        Ok(run)
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
    let (ranks, chunks) = (run.compute_seconds.len(), run.grid.blocks());
    let [x, y, z] = run.grid.shape();
    let largest = run.grid.extent(0).lengths;
    let smallest = run.grid.extent(chunks - 1).lengths;
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

fn dimensions(text: &str) -> Result<u32, String> {
    (text.parse())
        .ok()
        .filter(|dimensions| [1, 3].contains(dimensions))
        .ok_or_else(|| "expected 1 or 3".to_owned())
}
