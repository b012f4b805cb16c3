//! `rocket-mini face`: its options, and what it prints.

use std::process::ExitCode;

use mpi::traits::*;
use rocket_mini::face::trial::{Settings, run as try_out};

use crate::progress::Progress;
use crate::report::{self, line};

/// Loads and motions between two surface meshes that do not match, spread over ranks that find each
/// other.
///
/// Constants and linear fields have to pass exactly, and no force may be lost. The exit status is 1
/// when something is off, and 2 when the options make no sense.
#[derive(clap::Args)]
pub struct FaceArgs {
    /// Faces of the fluid's mesh along each axis
    #[arg(long, value_name = "FACES", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=2048))]
    fluid: u32,

    /// Faces of the solid's mesh along each axis
    #[arg(long, value_name = "FACES", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..=2048))]
    solid: u32,

    /// How often loads and motions are sent
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Show no progress, also on a terminal
    #[arg(long)]
    no_progress: bool,

    #[command(flatten)]
    pub vrt: mpi::Config,
}

/// Runs one rank.
pub fn run(args: &FaceArgs) -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        eprintln!("rocket-mini: this rank has been initialized before");
        return ExitCode::FAILURE;
    };
    let world = universe.world();
    let settings = Settings {
        fluid: args.fluid as usize,
        solid: args.solid as usize,
        rounds: args.rounds as usize,
    };
    let mut progress = Progress::new(!args.no_progress);
    let outcome = try_out(&world, &settings, |round| {
        progress.show(|| format!("round {round} of {}", args.rounds));
    });
    progress.clear();
    if world.rank() != 0 {
        return ExitCode::SUCCESS;
    }
    let (fluid, solid) = (settings.fluid, settings.solid);
    line("meshes", format_args!("{fluid} x {fluid} and {solid} x {solid} faces"));
    line("decomposition", format_args!("{} ranks", world.size()));
    line("partners", format_args!("{} of a rank at most", outcome.most_partners));
    line("constant load", format_args!("off by {:.1e}", outcome.constant_load));
    line("linear load", format_args!("off by {:.1e}", outcome.linear_load));
    line("linear motion", format_args!("off by {:.1e}", outcome.linear_motion));
    line("total force", format_args!("off by {:.1e}", outcome.force));
    line("checksum", format_args!("{:016x}", outcome.checksum));
    let [discovery, rounds] = outcome.seconds;
    let each = 1e6 * rounds / settings.rounds as f64;
    line("time", format_args!("{discovery:.6} s to find partners, {each:.1} us a round"));
    report::verdict(outcome.verify())
}
