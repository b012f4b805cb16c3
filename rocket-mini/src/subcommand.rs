//! What the subcommands have in common: options, how a rank runs, and how the report ends.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use crate::progress::Progress;
use crate::report::{line, verdict};

/// The options of all subcommands.
#[derive(clap::Args)]
pub struct CommonArgs {
    /// Do not compare with a run on one rank, nor with anything else
    #[arg(long)]
    pub no_verify: bool,

    /// Show no progress, also on a terminal
    #[arg(long)]
    no_progress: bool,

    #[command(flatten)]
    vrt: mpi::Config,
}

/// Why there is no result.
pub enum Refusal {
    /// The options make no sense for so many ranks: the status is 2.
    Usage(String),
    /// The run failed: the status is 1.
    Failed(String),
    /// The same, but on this rank alone: the others wait for it, so the job has to end.
    FailedAlone(String),
}

/// A solver that all ranks call, and what rank 0 says of its result.
pub trait Subcommand: Sized + Send + Sync + 'static {
    /// What rank 0 gets.
    type Run;

    /// The options that all have.
    fn common(&self) -> &CommonArgs;

    /// Computes; the result is on rank 0.
    fn solve(
        &self,
        world: &SimpleCommunicator,
        progress: &mut Progress,
    ) -> Result<Option<Self::Run>, Refusal>;

    /// Prints what was computed.
    fn report(&self, run: &Self::Run);

    /// Whether the result is to be checked.
    fn verifies(&self) -> bool {
        !self.common().no_verify
    }

    /// Checks the result.
    fn verify(&self, run: &Self::Run) -> Result<(), Box<dyn Error>>;
}

/// Runs a subcommand on all ranks that its options ask for.
pub fn launch<S: Subcommand>(subcommand: S) -> ExitCode {
    let vrt = subcommand.common().vrt.clone();
    mpi::launch(vrt, move || run_rank(&subcommand))
}

fn run_rank<S: Subcommand>(subcommand: &S) -> ExitCode {
    let Some(universe) = mpi::initialize() else {
        eprintln!("rocket-mini: this rank has been initialized before");
        return ExitCode::FAILURE;
    };
    let world = universe.world();
    let mut progress = Progress::new(!subcommand.common().no_progress);
    let outcome = subcommand.solve(&world, &mut progress);
    progress.clear();
    match outcome {
        Ok(Some(run)) => {
            subcommand.report(&run);
            if subcommand.verifies() {
                verdict(subcommand.verify(&run))
            } else {
                let is_refused = subcommand.common().no_verify;
                let why = if is_refused { "--no-verify" } else { "--verify asks for it" };
                line("verification", format_args!("none ({why})"));
                ExitCode::SUCCESS
            }
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(Refusal::Usage(why)) => refuse(&world, why, 2),
        Err(Refusal::Failed(why)) => refuse(&world, why, 1),
        Err(Refusal::FailedAlone(why)) => {
            eprintln!("rocket-mini: rank {}: {why}", world.rank());
            std::process::exit(1);
        }
    }
}

/// Says on rank 0 why nothing was computed; all ranks have the same reason and call this. None of
/// them ends, which may end the job, before it has been said.
fn refuse(world: &SimpleCommunicator, why: impl Display, status: u8) -> ExitCode {
    if world.rank() == 0 {
        eprintln!("rocket-mini: {why}");
    }
    world.barrier();
    ExitCode::from(status)
}
