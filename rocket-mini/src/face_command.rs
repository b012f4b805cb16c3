//! `rocket-mini face`: its options and its output.

use std::error::Error;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use rocket_mini::face::trial::{Outcome, Settings, run as try_out};

use crate::progress::Progress;
use crate::report::line;
use crate::subcommand::{CommonArgs, Refusal, Subcommand};

/// Loads and motions between two surface meshes that do not match, distributed over ranks that find
/// each other.
///
/// Constants and linear fields must be transferred exactly, and no force may be lost. The exit
/// status is 1 if something is off, and 2 if the options are invalid.
#[derive(clap::Args)]
pub(crate) struct FaceArgs {
    /// Faces of the fluid's mesh along each axis
    #[arg(long, value_name = "FACES", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=2048))]
    fluid: u32,

    /// Faces of the solid's mesh along each axis
    #[arg(long, value_name = "FACES", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..=2048))]
    solid: u32,

    /// How often loads and motions are sent
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = vrt_cli::positive::<u32>)]
    rounds: u32,

    #[command(flatten)]
    common: CommonArgs,
}

impl FaceArgs {
    fn settings(&self) -> Settings {
        Settings {
            fluid: self.fluid as usize,
            solid: self.solid as usize,
            rounds: self.rounds as usize,
        }
    }
}

impl Subcommand for FaceArgs {
    type Run = Outcome;

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn solve(
        &self,
        world: &SimpleCommunicator,
        progress: &mut Progress,
    ) -> Result<Option<Outcome>, Refusal> {
        let show = |round| progress.step(round, || format!("round {round} of {}", self.rounds));
        let outcome = try_out(world, &self.settings(), show);
        Ok((world.rank() == 0).then_some(outcome))
    }

    fn report(&self, outcome: &Outcome) {
        let settings = self.settings();
        let (fluid, solid) = (settings.fluid, settings.solid);
        line("meshes", format_args!("{fluid} x {fluid} and {solid} x {solid} faces"));
        line("decomposition", format_args!("{} ranks", outcome.ranks));
        line("partners", format_args!("{} of a rank at most", outcome.most_partners));
        line("constant load", format_args!("off by {:.1e}", outcome.constant_load));
        line("linear load", format_args!("off by {:.1e}", outcome.linear_load));
        line("linear motion", format_args!("off by {:.1e}", outcome.linear_motion));
        line("total force", format_args!("off by {:.1e}", outcome.force));
        line("checksum", format_args!("{:016x}", outcome.checksum));
        let [discovery, rounds] = outcome.seconds;
        let each = 1e6 * rounds / settings.rounds as f64;
        line("time", format_args!("{discovery:.6} s to find partners, {each:.1} us a round"));
    }

    fn verify(&self, outcome: &Outcome) -> Result<(), Box<dyn Error>> {
        Ok(outcome.verify()?)
    }
}
