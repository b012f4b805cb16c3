//! What the subcommands have in common: their options, how a rank runs, and how the report ends.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use crate::progress::Progress;
use crate::report::{line, verdict};

/// The options of all subcommands.
#[derive(clap::Args)]
pub(crate) struct CommonArgs {
    /// Do not verify the result against a run on one rank, nor in any other way
    #[arg(long)]
    pub no_verify: bool,

    /// Show no progress, even on a terminal
    #[arg(long)]
    no_progress: bool,

    /// Write the time of each step, in seconds of the job, to this file as CSV
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

    #[command(flatten)]
    vrt: mpi::Config,
}

/// Why there is no result.
pub(crate) enum Refusal {
    /// The options are invalid for this many ranks: the status is 2.
    Usage(String),
    /// The run failed: the status is 1.
    Failed(String),
    /// The same, but only on this rank: the others wait for it, so the job must end.
    FailedAlone(String),
    /// Rank 0 knows the reason, reports it and has the status; this is another rank.
    OfRankZero,
}

/// A solver that all ranks call, and rank 0's report about its result.
pub(crate) trait Subcommand: Sized + Send + Sync + 'static {
    /// The result on rank 0.
    type Run;

    /// The common options.
    fn common(&self) -> &CommonArgs;

    /// Computes; the result is on rank 0.
    fn solve(
        &self,
        world: &SimpleCommunicator,
        progress: &mut Progress,
    ) -> Result<Option<Self::Run>, Refusal>;

    /// Prints what was computed.
    fn report(&self, run: &Self::Run);

    /// Whether the result is to be verified.
    fn verifies(&self) -> bool {
        !self.common().no_verify
    }

    /// Verifies the result.
    fn verify(&self, run: &Self::Run) -> Result<(), Box<dyn Error>>;
}

/// A subcommand that async ranks can run, too.
pub(crate) trait AsyncSubcommand: Subcommand {
    /// The async twin of [`Subcommand::solve`].
    async fn solve_async(
        &self,
        world: &SimpleCommunicator,
        progress: &mut Progress,
    ) -> Result<Option<Self::Run>, Refusal>;
}

/// Runs a subcommand on all ranks that its options request.
pub(crate) fn launch<S: Subcommand>(subcommand: S) -> ExitCode {
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

/// Runs a subcommand on all ranks, as async ranks.
pub(crate) fn launch_async<S: AsyncSubcommand>(subcommand: S) -> ExitCode {
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

/// A rank's world, and its progress line.
fn begin<S: Subcommand>(subcommand: &S) -> Option<(SimpleCommunicator, Progress)> {
    let Some(universe) = mpi::initialize() else {
        eprintln!("rocket-mini: this rank has been initialized before");
        return None;
    };
    let common = subcommand.common();
    let progress = Progress::new(!common.no_progress, common.history.clone());
    Some((universe.world(), progress))
}

/// Reports the result, or why there is none, on rank 0. Returns the status, and whether ranks must meet: none of them
/// may end before the report has been printed, as that may end the job.
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
pub(crate) fn report<S: Subcommand>(subcommand: &S, run: &S::Run) -> ExitCode {
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
