//! `sparse-mini nbody`.

use std::process::ExitCode;

use mpi::collective::SystemOperation;
use mpi::traits::*;
use serde::{Deserialize, Serialize};
use sparse_mini::nbody::{Galaxy, Recut, Settings};

use super::{line, positive_number};

/// Simulate the encounter of two galaxies; bodies that leave a rank's part of space are sent by sparse exchange.
///
/// The exit status is 1 if bodies are lost, or energy is not conserved.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of bodies, three quarters of them in the first galaxy
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(2..=1 << 32))]
    bodies: u64,

    /// Number of steps
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    steps: u32,

    /// Time step
    #[arg(long, value_name = "TIME", default_value_t = 0.02, value_parser = positive_number)]
    time_step: f64,

    /// A group of bodies acts as one if its size is less than this many times its distance
    #[arg(long, value_name = "NUMBER", default_value_t = 0.5, value_parser = positive_number)]
    opening: f64,

    /// Forces are softened at this distance
    #[arg(long, value_name = "LENGTH", default_value_t = 0.05, value_parser = positive_number)]
    soft: f64,

    /// How space is cut: so that ranks have the same work, repeated when it differs by 5%; once, so that they have as
    /// many bodies; or once, so that they have the same volume (and very different work)
    #[arg(long, value_name = "HOW", default_value = "work")]
    cut: Cut,

    /// The largest change of energy that counts as conserved
    #[arg(long, value_name = "PART", default_value_t = 0.02, value_parser = positive_number)]
    energy: f64,

    /// Seed of the galaxies
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Offer ranks to the load balancer once in this many steps; 0 for never
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    migrate_every: u32,

    #[command(flatten)]
    pub vrt: mpi::Config,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Cut {
    Work,
    Bodies,
    Volume,
}

/// A rank between two steps.
#[derive(Serialize, Deserialize)]
struct State {
    galaxy: Galaxy,
    energy: f64,
    step: u32,
    seconds: f64,
    /// Interactions of all its bodies, over all steps.
    work: f64,
    /// Over all steps, the interactions of the PE with the most, and of all PEs.
    most_of_pes: f64,
    of_pes: f64,
}

/// Runs one rank.
pub(crate) fn run(args: &Args) -> ExitCode {
    let Some(universe) = mpi::initialize() else { return ExitCode::FAILURE };
    let world = universe.world();
    let settings = Settings {
        bodies: args.bodies,
        seed: args.seed,
        step: args.time_step,
        opening: args.opening,
        soft: args.soft,
        recut: match args.cut {
            Cut::Work => Recut::ByWork,
            Cut::Bodies => Recut::Never,
            Cut::Volume => Recut::Volume,
        },
    };
    let mut state: State = world.restore().unwrap_or_else(|| {
        let galaxy = Galaxy::new(&world, settings);
        let energy = galaxy.totals(&world).energy;
        State { galaxy, energy, step: 0, seconds: 0.0, work: 0.0, most_of_pes: 0.0, of_pes: 0.0 }
    });
    while state.step < args.steps {
        let began = mpi::time();
        state.galaxy.step(&world);
        note_work(&world, mpi::environment::pes(), &mut state);
        state.step += 1;
        if args.migrate_every > 0 && state.step.is_multiple_of(args.migrate_every) {
            world.migrate(&mut state);
        }
        state.seconds += mpi::time() - began;
    }
    report(&world, args, &state)
}

/// Attributes the work of a step to the PEs where ranks are now.
fn note_work(world: &impl Communicator, pes: usize, state: &mut State) {
    let work = state.galaxy.bodies.iter().map(|body| body.work).sum::<f64>();
    state.work += work;
    let mut mine = vec![0.0; pes];
    mine[mpi::statistics().pe as usize] = work;
    let mut all = mine.clone();
    world.all_reduce_into(&mine[..], &mut all[..], SystemOperation::sum());
    state.most_of_pes += all.iter().copied().fold(0.0, f64::max);
    state.of_pes += all.iter().sum::<f64>();
}

fn report(world: &impl Communicator, args: &Args, state: &State) -> ExitCode {
    let totals = state.galaxy.totals(world);
    let mine = [state.galaxy.neighbors as u64, state.galaxy.bodies.len() as u64];
    let mut most = [0; 2];
    world.all_reduce_into(&mine, &mut most, SystemOperation::max());
    let mut migrated = 0;
    world.all_reduce_into(&state.galaxy.migrated, &mut migrated, SystemOperation::sum());
    let mut seconds = 0.0;
    world.all_reduce_into(&state.seconds, &mut seconds, SystemOperation::max());
    let mut work = vec![0.0; world.size() as usize];
    world.all_gather_into(&state.work, &mut work[..]);
    if world.rank() != 0 {
        return ExitCode::SUCCESS;
    }
    line(
        "bodies",
        format!("{} on {} ranks, at most {} on one", args.bodies, world.size(), most[1]),
    );
    line("space", format!("cut {} times", state.galaxy.cuts));
    line("neighbours k", format!("at most {}", most[0]));
    line("migrated", format!("{migrated} bodies in {} steps", args.steps));
    let pes = mpi::environment::pes();
    let was = state.most_of_pes * pes as f64 / state.of_pes - 1.0;
    line("imbalance", format!("{}, {was:.3} as they went", imbalance(&work, pes)));
    line("time", format!("{seconds:.6} s, {:.3} ms a step", seconds / f64::from(args.steps) * 1e3));
    let drift = totals.energy / state.energy - 1.0;
    line("energy", format!("{:.6}, changed by {:.4}%", totals.energy, drift * 100.0));
    let speed = totals.momentum.iter().map(|p| p * p).sum::<f64>().sqrt();
    line("momentum", format!("{speed:.2e}"));
    let all = [args.bodies, args.bodies * (args.bodies - 1) / 2];
    if totals.bodies != all {
        line("verification", "WRONG: bodies were lost".to_owned());
        return ExitCode::FAILURE;
    }
    if drift.is_nan() || drift.abs() > args.energy {
        line("verification", format!("WRONG: energy changed by more than {}", args.energy));
        return ExitCode::FAILURE;
    }
    line("verification", "ok".to_owned());
    ExitCode::SUCCESS
}

/// How uneven the work of ranks is, and that of PEs if ranks stay where they began.
fn imbalance(work: &[f64], pes: usize) -> String {
    let uneven = |work: &[f64]| {
        let mean = work.iter().sum::<f64>() / work.len() as f64;
        work.iter().copied().fold(0.0, f64::max) / mean - 1.0
    };
    let mut of_pes = vec![0.0; pes];
    for (rank, work_of_rank) in work.iter().enumerate() {
        of_pes[rank * pes / work.len()] += work_of_rank;
    }
    format!("{:.3} of ranks, {:.3} of PEs if ranks stay", uneven(work), uneven(&of_pes))
}
