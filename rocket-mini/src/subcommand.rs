//! What the subcommands have in common: options, how a rank runs, and how the report ends.

use std::error::Error;
use std::path::PathBuf;
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

    /// Write to this file, as CSV, at which second of the job which step was made
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

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
    /// Rank 0 knows why, says it and has the status; this rank is another one.
    OfRankZero,
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

/// One that async ranks can run, too.
pub trait AsyncSubcommand: Subcommand {
    /// The async twin of [`Subcommand::solve`].
    async fn solve_async(
        &self,
        world: &SimpleCommunicator,
        progress: &mut Progress,
    ) -> Result<Option<Self::Run>, Refusal>;
}

/// Runs a subcommand on all ranks that its options ask for.
pub fn launch<S: Subcommand>(subcommand: S) -> ExitCode {
    let vrt = subcommand.common().vrt.clone();
    mpi::launch(vrt, move || {
        let Some((world, mut progress)) = begin(&subcommand) else { return ExitCode::FAILURE };
        let outcome = subcommand.solve(&world, &mut progress);
        let (status, meets) = end(&subcommand, &world, &progress, outcome);
        if meets {
            world.barrier();
        }
        status
    })
}

/// Runs a subcommand on all ranks, which are async.
pub fn launch_async<S: AsyncSubcommand>(subcommand: S) -> ExitCode {
    let vrt = subcommand.common().vrt.clone();
    // Ranks are futures without borrows, and run until the process ends.
    let subcommand: &'static S = Box::leak(Box::new(subcommand));
    mpi::launch_async(vrt, move || async move {
        let Some((world, mut progress)) = begin(subcommand) else { return ExitCode::FAILURE };
        let outcome = subcommand.solve_async(&world, &mut progress).await;
        let (status, meets) = end(subcommand, &world, &progress, outcome);
        if meets {
            world.barrier_async().await;
        }
        status
    })
}

/// A rank's world, and its line on the terminal.
fn begin<S: Subcommand>(subcommand: &S) -> Option<(SimpleCommunicator, Progress)> {
    let Some(universe) = mpi::initialize() else {
        eprintln!("rocket-mini: this rank has been initialized before");
        return None;
    };
    let common = subcommand.common();
    let progress = Progress::new(!common.no_progress, common.history.clone());
    Some((universe.world(), progress))
}

/// Says on rank 0 what was computed, or why nothing was. Returns the status, and whether ranks have to
/// meet: none of them may end, which may end the job, before it has been said.
fn end<S: Subcommand>(
    subcommand: &S,
    world: &SimpleCommunicator,
    progress: &Progress,
    outcome: Result<Option<S::Run>, Refusal>,
) -> (ExitCode, bool) {
    progress.clear();
    let (why, status) = match outcome {
        Ok(run) => {
            return (run.map_or(ExitCode::SUCCESS, |run| report(subcommand, &run)), false);
        }
        Err(Refusal::Usage(why)) => (why, 2),
        Err(Refusal::Failed(why)) => (why, 1),
        Err(Refusal::OfRankZero) => return (ExitCode::SUCCESS, true),
        Err(Refusal::FailedAlone(why)) => {
            eprintln!("rocket-mini: rank {}: {why}", world.rank());
            std::process::exit(1);
        }
    };
    if world.rank() == 0 {
        eprintln!("rocket-mini: {why}");
    }
    (ExitCode::from(status), true)
}

/// Prints what was computed, and whether it is right.
pub fn report<S: Subcommand>(subcommand: &S, run: &S::Run) -> ExitCode {
    subcommand.report(run);
    line("machine", vrt_cli::Machine::at_start());
    if subcommand.verifies() {
        // Advice of a trace is about what comes before.
        let _region = mpi::region("verification");
        return verdict(subcommand.verify(run));
    }
    let is_refused = subcommand.common().no_verify;
    let why = if is_refused { "--no-verify" } else { "--verify asks for it" };
    line("verification", format_args!("none ({why})"));
    ExitCode::SUCCESS
}
