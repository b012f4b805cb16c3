//! `rocket-mini solid`: its options and its output.

use std::error::Error;
use std::path::PathBuf;

use mpi::topology::SimpleCommunicator;
use rocket_mini::solid::{self, Precision, Problem, Run, Settings, Shape, solve, solve_whole};

use crate::progress::Progress;
use crate::report::{line, positive};
use crate::subcommand::{CommonArgs, Refusal, Subcommand};

/// An elastic body of hexahedra, implicit in time, a part for each rank.
///
/// The result is compared with a run on one part, to the solver's tolerance, and with known properties of the solution.
/// The exit status is 1 if something is wrong, or if the solver does not converge, and 2 if the options are invalid.
#[derive(clap::Args)]
pub(crate) struct SolidArgs {
    /// The problem to solve
    #[arg(long, value_enum, default_value_t = Problem::Vibration)]
    problem: Problem,

    /// Elements along the longest axis
    #[arg(long, value_name = "ELEMENTS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=2048))]
    size: u32,

    /// Deform the body in this file, instead of the problem's own: hexahedra in an unstructured grid in VTK's legacy
    /// format. It is held where it begins along x, and pulled where it ends
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    mesh: Option<PathBuf>,

    /// Time steps, except for bodies at rest [default: the problem's]
    #[arg(long, value_name = "COUNT", value_parser = vrt_cli::positive::<u32>)]
    steps: Option<u32>,

    /// Stop the solver at this residual, relative to the right-hand side
    #[arg(long, value_name = "RESIDUAL", default_value_t = 1e-10, value_parser = positive)]
    tolerance: f64,

    /// Give up after this many iterations of a step
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = vrt_cli::positive::<u32>)]
    max_iterations: u32,

    /// Offer ranks to the load balancer once in this many steps; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    migrate_every: u32,

    #[command(flatten)]
    common: CommonArgs,
}

impl SolidArgs {
    fn settings(&self) -> Settings {
        let problem = self.problem;
        let steps = problem.steps(self.size as usize);
        let grid = || Shape::Grid(problem.elements(self.size as usize));
        Settings {
            problem,
            shape: self.mesh.clone().map_or_else(grid, Shape::File),
            steps: if steps == 0 { 0 } else { self.steps.map_or(steps, |steps| steps as usize) },
            precision: Precision {
                tolerance: self.tolerance,
                max_iterations: self.max_iterations as usize,
            },
            migrate_every: self.migrate_every as usize,
        }
    }
}

impl From<solid::Error> for Refusal {
    fn from(error: solid::Error) -> Self {
        match error {
            solid::Error::TooManyRanks { .. }
            | solid::Error::TooFewElements { .. }
            | solid::Error::OwnShape => Self::Usage(error.to_string()),
            solid::Error::NoMesh => Self::OfRankZero,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Subcommand for SolidArgs {
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
        let show = |steps| progress.step(steps, || format!("step {steps} of {}", settings.steps));
        Ok(solve(world, &settings, show)?)
    }

    fn report(&self, run: &Run) {
        let settings = &self.settings();
        let outcome = &run.outcome;
        let sizes = run.elements.iter();
        match &settings.shape {
            Shape::Grid([nx, ny, nz]) => line("mesh", format_args!("{nx} x {ny} x {nz} hexahedra")),
            Shape::File(path) => {
                let count: usize = sizes.clone().sum();
                line("mesh", format_args!("{count} hexahedra of {}", path.display()));
            }
        }
        let parts = sizes.len();
        let (least, most) =
            sizes.fold((usize::MAX, 0), |(a, b), size| (a.min(*size), b.max(*size)));
        line("decomposition", format_args!("{parts} ranks, from {least} to {most} hexahedra"));
        line("steps", format_args!("{}, {} iterations", settings.steps, outcome.iterations));
        line("displacement", format_args!("{:.6e} in the root mean square", outcome.displacement));
        match settings.problem {
            Problem::Cantilever => {
                let by_theory = match settings.shape {
                    Shape::Grid(_) => {
                        format!(", by theory {:.6e}", settings.problem.beam_deflection())
                    }
                    Shape::File(_) => String::new(),
                };
                line("deflection", format_args!("{:.6e}{by_theory}", outcome.deflection));
            }
            Problem::Patch | Problem::Wave => {
                line("error", format_args!("{:.4e} in the root mean square", outcome.error));
            }
            Problem::Vibration => (),
        }
        line(
            "energy",
            format_args!("{:.6e}, at first {:.6e}", outcome.last_energy, outcome.first_energy),
        );
        line("fingerprint", format_args!("{:.12e}", outcome.fingerprint));
        line("time", format_args!("{:.6} s", run.seconds));
    }

    fn verify(&self, run: &Run) -> Result<(), Box<dyn Error>> {
        let settings = self.settings();
        Ok(run.outcome.verify(&settings, &solve_whole(&settings)?)?)
    }
}
