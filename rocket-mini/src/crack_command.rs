//! `rocket-mini crack`: its options and its output.

use std::error::Error;
use std::path::PathBuf;

use mpi::topology::SimpleCommunicator;
use rocket_mini::crack::{
    self, Run, Settings, Snapshot, solve, solve_alone, write_picture, write_vtk,
};
use rocket_mini::rocket::MIN_POINTS;

use crate::progress::Progress;
use crate::report::{line, positive, write_or_exit};
use crate::subcommand::{CommonArgs, Refusal, Subcommand};

/// A crack that pressure drives through a plate, a strip of elements for each rank.
///
/// Edges between elements become cohesive where the stress requires it. The result is compared with a run on one strip,
/// bit for bit, and checked for conservation of energy and momentum. The exit status is 1 if something is wrong, or if
/// the plate blows up, and 2 if the options are invalid.
#[derive(clap::Args)]
pub(crate) struct CrackArgs {
    /// Elements along the plate, which is twice as long as high; even
    #[arg(long, value_name = "ELEMENTS", default_value_t = 96, value_parser = even)]
    size: u32,

    /// Time steps [default: 8 per element along the plate]
    #[arg(long, value_name = "COUNT", value_parser = vrt_cli::positive::<u32>)]
    steps: Option<u32>,

    /// The pressure in the crack; above 2 it branches
    #[arg(long, value_name = "PRESSURE", default_value_t = 1.5, value_parser = positive)]
    pressure: f64,

    /// The length of a step, relative to the time in which a wave crosses an element; steps above 0.4 are not stable
    #[arg(long, value_name = "NUMBER", default_value_t = 0.3, value_parser = positive)]
    courant: f64,

    /// Compute how the propellant warms up where edges are broken, with this many points below a face; the cost grows
    /// with their cube
    #[arg(long, value_name = "POINTS", value_parser = clap::value_parser!(u32).range(i64::from(MIN_POINTS)..=4096))]
    heat: Option<u32>,

    /// Offer ranks to the load balancer once in this many steps; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    migrate_every: u32,

    /// Write VTK files and pictures to this directory, which is created
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write them once in this many steps, and at the beginning and the end
    #[arg(long, value_name = "STEPS", default_value_t = 200, requires = "out", value_parser = vrt_cli::positive::<u32>)]
    out_every: u32,

    #[command(flatten)]
    common: CommonArgs,
}

impl CrackArgs {
    fn settings(&self) -> Settings {
        Settings {
            size: self.size as usize,
            steps: self.steps.unwrap_or(8 * self.size) as usize,
            pressure: self.pressure,
            courant: self.courant,
            heat_points: self.heat.map_or(0, |points| points as usize),
            migrate_every: self.migrate_every as usize,
            snapshot_every: if self.out.is_some() { self.out_every as usize } else { 0 },
        }
    }
}

impl From<crack::Error> for Refusal {
    fn from(error: crack::Error) -> Self {
        match error {
            crack::Error::TooManyRanks { .. } => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Subcommand for CrackArgs {
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
        let picture = |snapshot: &Snapshot| {
            if let Some(folder) = &self.out {
                write_or_exit(folder, || {
                    write_vtk(folder, snapshot)?;
                    write_picture(
                        &folder.join(format!("crack-{:05}.svg", snapshot.steps)),
                        snapshot,
                    )
                });
            }
        };
        Ok(solve(world, &settings, show, picture)?)
    }

    fn report(&self, run: &Run) {
        let settings = &self.settings();
        let sums = &run.outcome.sums;
        let [nx, ny] = settings.elements();
        line("plate", format_args!("{nx} x {ny} elements"));
        line("decomposition", format_args!("{} strips", run.compute_seconds.len()));
        line(
            "steps",
            format_args!(
                "{}, to time {:.6}",
                settings.steps,
                settings.steps as f64 * settings.dt()
            ),
        );
        let [inserted, broken, astray] = sums.edges;
        line(
            "edges",
            format_args!(
                "{inserted} cohesive, {broken} of them broken, {astray} beside the line of the notch"
            ),
        );
        line("tip", format_args!("at {:.6} of a length of 2", sums.tip));
        line(
            "energy",
            format_args!(
                "work {:.6e} = elastic {:.6e} + kinetic {:.6e} + dissipated {:.6e}, but for {:.1e} of it",
                sums.work,
                sums.elastic,
                sums.kinetic,
                sums.dissipated,
                run.outcome.energy_imbalance()
            ),
        );
        if settings.heat_points > 0 {
            let (heat, warming) = (sums.heat, sums.warming);
            line("heat", format_args!("{heat:.9e}, {warming} edges warm up"));
        }
        line("checksum", format_args!("{:016x}", run.outcome.checksum));
        let updates = (nx * ny * settings.steps) as f64;
        line(
            "time",
            format_args!(
                "{:.6} s, {:.4e} elements/s",
                run.seconds,
                updates / run.seconds.max(1e-9)
            ),
        );
        let compute = &run.compute_seconds;
        let most = compute.iter().copied().fold(0.0, f64::max);
        let mean = compute.iter().sum::<f64>() / compute.len() as f64;
        line(
            "compute a rank",
            format_args!(
                "mean {mean:.6} s, max {most:.6} s, imbalance {:.3}",
                if mean > 0.0 { most / mean - 1.0 } else { 0.0 }
            ),
        );
        if let Some(folder) = &self.out {
            line(
                "written",
                format_args!("{}: plate-*.vtk, crack-*.vtk, crack-*.svg", folder.display()),
            );
        }
    }

    fn verify(&self, run: &Run) -> Result<(), Box<dyn Error>> {
        let settings = self.settings();
        Ok(run.outcome.verify(&settings, &solve_alone(&settings)?)?)
    }
}

fn even(text: &str) -> Result<u32, String> {
    (text.parse())
        .ok()
        .filter(|size: &u32| (8..=8192).contains(size) && size.is_multiple_of(2))
        .ok_or_else(|| "expected an even number from 8 to 8192".to_owned())
}
