//! `rocket-mini rocket`: its options and its output.

use std::error::Error;
use std::path::PathBuf;

use mpi::topology::SimpleCommunicator;
use rocket_mini::rocket::{MIN_POINTS, Run, Settings, Snapshot, solve, write_picture, write_vtk};
use rocket_mini::solid::Precision;
use rocket_mini::{flow, rocket, solid};

use crate::progress::Progress;
use crate::report::{line, not_negative, positive, write_or_exit};
use crate::subcommand::{CommonArgs, Refusal, Subcommand};

/// A rocket: gas, burning and deforming propellant, and the surface between them.
///
/// The result is compared with a run on one rank, to the tolerance of the propellant's solver, and checked for
/// conservation. The exit status is 1 if something is wrong, if the gas blows up or the propellant has burned through,
/// and 2 if the options are invalid.
#[derive(clap::Args)]
pub(crate) struct RocketArgs {
    /// Cells of gas along the chamber
    #[arg(long, value_name = "CELLS", default_value_t = 48, value_parser = clap::value_parser!(u32).range(8..=4096))]
    size: u32,

    /// Number of intervals; gas and propellant are coupled after each
    #[arg(long, value_name = "COUNT", default_value_t = 40, value_parser = vrt_cli::positive::<u32>)]
    intervals: u32,

    /// The length of an interval
    #[arg(long, value_name = "TIME", default_value_t = 0.05, value_parser = positive)]
    interval: f64,

    /// The Courant number of the gas's steps; steps above 1 are not stable
    #[arg(long, value_name = "NUMBER", default_value_t = 0.4, value_parser = positive)]
    cfl: f64,

    /// How long a front of ignition takes from one end of the grain to the other; 0 to make all of it burn from the
    /// beginning
    #[arg(long, value_name = "TIME", default_value_t = 0.0, value_parser = not_negative)]
    ignition: f64,

    /// Compute how the propellant warms up where it has been ignited, with this many points below
    /// the surface; the cost grows with their cube
    #[arg(long, value_name = "POINTS", value_parser = clap::value_parser!(u32).range(i64::from(MIN_POINTS)..=4096))]
    heat: Option<u32>,

    /// Stop the propellant's solver at this residual, relative to the right-hand side
    #[arg(long, value_name = "RESIDUAL", default_value_t = 1e-10, value_parser = positive)]
    tolerance: f64,

    /// Offer ranks to the load balancer once in this many intervals; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    migrate_every: u32,

    /// Write VTK files and pictures to this directory, which is created
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write them once in this many intervals, and at the beginning and the end
    #[arg(long, value_name = "COUNT", default_value_t = 20, requires = "out", value_parser = vrt_cli::positive::<u32>)]
    out_every: u32,

    #[command(flatten)]
    common: CommonArgs,
}

impl RocketArgs {
    fn settings(&self) -> Settings {
        let (cells, elements) = Settings::meshes(self.size as usize);
        Settings {
            cells,
            elements,
            intervals: self.intervals as usize,
            interval: self.interval,
            cfl: self.cfl,
            ignition: self.ignition,
            heat_points: self.heat.map_or(0, |points| points as usize),
            precision: Precision { tolerance: self.tolerance, max_iterations: 10_000 },
            migrate_every: self.migrate_every as usize,
            snapshot_every: if self.out.is_some() { self.out_every as usize } else { 0 },
        }
    }
}

impl Subcommand for RocketArgs {
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
        let show = |intervals| {
            progress.step(intervals, || format!("interval {intervals} of {}", settings.intervals));
        };
        let picture = |snapshot: &Snapshot| {
            if let Some(folder) = &self.out {
                write_or_exit(folder, || {
                    write_vtk(folder, snapshot)?;
                    let picture = folder.join(format!("rocket-{:05}.svg", snapshot.interval));
                    write_picture(&picture, std::slice::from_ref(snapshot))
                });
            }
        };
        solve(world, &settings, show, picture).map_err(|error| match error {
            rocket::Error::Flow(flow::Error::TooManyRanks { .. })
            | rocket::Error::Solid(solid::Error::TooManyRanks { .. }) => {
                Refusal::Usage(error.to_string())
            }
            _ => Refusal::Failed(error.to_string()),
        })
    }

    fn report(&self, run: &Run) {
        let settings = &self.settings();
        let outcome = &run.outcome;
        let [[a, b, c], [d, e, f]] = [settings.cells, settings.elements];
        line("meshes", format_args!("{a} x {b} x {c} cells of gas, {d} x {e} x {f} hexahedra"));
        line(
            "partners",
            format_args!("{} of a rank at most, at the surface", outcome.most_partners),
        );
        line(
            "steps",
            format_args!(
                "{} intervals, {} steps of the gas, {} iterations for the propellant",
                settings.intervals, outcome.steps, outcome.iterations
            ),
        );
        line("pressure", format_args!("mean {:.6}", outcome.mean_pressure()));
        line(
            "volume",
            format_args!(
                "gas {:.6}, propellant {:.6}",
                outcome.last.volume, outcome.propellant_volume
            ),
        );
        if settings.heat_points > 0 {
            let warming = outcome.most_warming;
            line("heat", format_args!("{:.9e}, {warming} columns warmed up at once", outcome.heat));
        }
        line("displacement", format_args!("{:.6e} in the root mean square", outcome.displacement));
        line("time", format_args!("{:.6} s", run.seconds));
        if let Some(folder) = &self.out {
            line(
                "written",
                format_args!("{}: gas-*.vtk, propellant-*.vtk, rocket-*.svg", folder.display()),
            );
        }
    }

    fn verify(&self, run: &Run) -> Result<(), Box<dyn Error>> {
        let settings = self.settings();
        let alone = Settings { migrate_every: 0, snapshot_every: 0, ..settings };
        let alone = solve(&SimpleCommunicator::self_comm(), &alone, |_| (), |_| ())?
            .ok_or("one rank alone has no outcome")?;
        Ok(run.outcome.verify(&settings, &alone.outcome)?)
    }
}
