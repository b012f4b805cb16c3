//! `rocket-mini flow`: its options and its output.

use std::error::Error;

use mpi::topology::SimpleCommunicator;
use rocket_mini::flow::{self, Clock, Limiter, Problem, Run, Settings, solve, solve_alone};

use crate::progress::Progress;
use crate::report::{line, positive};
use crate::subcommand::{CommonArgs, Refusal, Subcommand};

/// Compressible flow of a gas, a block of cells for each rank.
///
/// The result is compared with a run on one block, bit for bit, checked for conservation, and compared with the exact
/// solution if there is one. The exit status is 1 if something is wrong, or if the flow blows up, and 2 if the options
/// are invalid.
#[derive(clap::Args)]
pub(crate) struct FlowArgs {
    /// The problem to solve
    #[arg(long, value_enum, default_value_t = Problem::Chamber)]
    problem: Problem,

    /// Cells along the longest axis
    #[arg(long, value_name = "CELLS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    size: u32,

    /// The time at which to stop [default: the problem's]
    #[arg(long, value_name = "TIME", value_parser = positive)]
    end: Option<f64>,

    /// The Courant number of a step; the scheme is not stable above 1
    #[arg(long, value_name = "NUMBER", default_value_t = 0.4, value_parser = positive)]
    cfl: f64,

    /// The limiter that keeps profiles in cells from overshooting
    #[arg(long, value_enum, default_value_t = Limiter::VanAlbada)]
    limiter: Limiter,

    /// Make the last block this many times as long as the first
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = unevenness)]
    uneven: f64,

    /// Offer ranks to the load balancer once in this many steps; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    migrate_every: u32,

    #[command(flatten)]
    common: CommonArgs,
}

impl FlowArgs {
    fn settings(&self) -> Settings {
        let problem = self.problem;
        Settings {
            problem,
            cells: problem.cells(self.size as usize),
            end_time: self.end.unwrap_or(problem.end_time()),
            cfl: self.cfl,
            limiter: self.limiter,
            unevenness: self.uneven,
            migrate_every: self.migrate_every as usize,
        }
    }
}

impl From<flow::Error> for Refusal {
    fn from(error: flow::Error) -> Self {
        match error {
            flow::Error::TooManyRanks { .. } => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Subcommand for FlowArgs {
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
        let show = |clock: &Clock| {
            progress.step(clock.steps, || {
                format!("step {}, time {:.4} of {}", clock.steps, clock.time, settings.end_time)
            });
        };
        Ok(solve(world, &settings, show)?)
    }

    fn report(&self, run: &Run) {
        let settings = &self.settings();
        let outcome = &run.outcome;
        let [nx, ny, nz] = settings.cells;
        line("grid", format_args!("{nx} x {ny} x {nz} cells"));
        let [x, z] = run.blocks.shape();
        let lengths = (0..x * z).map(|rank| run.blocks.extent(rank).lengths);
        let sizes = lengths.map(|lengths| lengths.iter().product::<usize>());
        let (least, most) =
            sizes.fold((usize::MAX, 0), |(a, b), cells| (a.min(cells), b.max(cells)));
        line(
            "decomposition",
            format_args!("{} ranks as {x} x {z} blocks, from {least} to {most} cells", x * z),
        );
        line("steps", format_args!("{}, to time {}", outcome.clock.steps, outcome.clock.time));
        let [mass, energy] = outcome.imbalance();
        line("balance", format_args!("mass off by {mass:.1e}, energy by {energy:.1e}"));
        line("pressure", format_args!("mean {:.6}", outcome.mean_pressure()));
        line(
            "volume",
            format_args!("{:.6}, at first {:.6}", outcome.last.volume, outcome.first.volume),
        );
        if let Some(error) = outcome.error(settings.problem) {
            line("error", format_args!("{error:.4e} in the mean density"));
        }
        line("checksum", format_args!("{:016x}", outcome.last.checksum));
        let updates = (nx * ny * nz * outcome.clock.steps) as f64;
        line(
            "time",
            format_args!("{:.6} s, {:.4e} cells/s", run.seconds, updates / run.seconds.max(1e-9)),
        );
    }

    fn verify(&self, run: &Run) -> Result<(), Box<dyn Error>> {
        let settings = self.settings();
        Ok(run.outcome.verify(&settings, &solve_alone(&settings)?)?)
    }
}

fn unevenness(text: &str) -> Result<f64, String> {
    (text.parse())
        .ok()
        .filter(|factor| (0.01..=100.0).contains(factor))
        .ok_or_else(|| "expected a number from 0.01 to 100".to_owned())
}
