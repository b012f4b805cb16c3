//! `rocket-mini switching`: its options and its output.

use std::error::Error;
use std::process::ExitCode;

use clap::ValueEnum;
use mpi::topology::SimpleCommunicator;
use rocket_mini::switching::{self, Run, Settings, Stacks, switch_ranks, switch_threads};

use crate::progress::Progress;
use crate::report::line;
use crate::subcommand::{self, CommonArgs, Refusal, Subcommand};

/// Time the switch from one blocking rank of a PE to the next, over the depth of the stack in use.
///
/// Only ranks of the same PE yield to each other: pass --pes 1. The exit status is 1 if a stack does not hold its
/// previous contents, and 2 if the options are invalid.
#[derive(clap::Args)]
pub(crate) struct SwitchingArgs {
    /// The stacks that are switched
    #[arg(long, value_enum, default_value_t = StacksName::Slots)]
    stacks: StacksName,

    /// The bytes of each stack that are in use; --stack must be larger
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=4 << 20))]
    depth: u32,

    /// How often each rank yields
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = vrt_cli::positive::<u32>)]
    switches: u32,

    /// Threads, with --stacks threads
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=4096))]
    threads: u32,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StacksName {
    /// Each rank's own, where it always is
    Slots,
    /// One stack shared by all ranks: this many bytes are copied out and in with each switch
    Copied,
    /// Those of threads of the operating system, which cannot move
    Threads,
}

impl SwitchingArgs {
    fn settings(&self) -> Settings {
        Settings {
            stacks: match self.stacks {
                StacksName::Slots => Stacks::Slots,
                StacksName::Copied => Stacks::Copied,
                StacksName::Threads => Stacks::Threads,
            },
            depth: self.depth as usize,
            switches: self.switches as usize,
        }
    }
}

/// Runs the subcommand: as a job, except for threads, which need none.
pub(crate) fn launch(args: SwitchingArgs) -> ExitCode {
    if args.stacks != StacksName::Threads {
        return subcommand::launch(args);
    }
    match switch_threads(args.threads as usize, &args.settings()) {
        Ok(run) => subcommand::report(&args, &run),
        Err(error) => {
            eprintln!("rocket-mini: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Subcommand for SwitchingArgs {
    type Run = Run;

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn solve(&self, world: &SimpleCommunicator, _: &mut Progress) -> Result<Option<Run>, Refusal> {
        switch_ranks(world, &self.settings()).map_err(|error| match error {
            switching::Error::Ranks { .. } => Refusal::Usage(error.to_string()),
            switching::Error::Threads { .. } => Refusal::Failed(error.to_string()),
        })
    }

    fn report(&self, run: &Run) {
        let who = if self.stacks == StacksName::Threads { "threads" } else { "ranks" };
        line("among", format_args!("{} {who}", run.ranks));
        line("depth", format_args!("{} bytes at least", run.depth));
        line("steps", format_args!("{} switches", run.switches));
        let each = 1e9 * run.seconds_each();
        line("time", format_args!("{:.6} s, {each:.1} ns a switch", run.seconds));
    }

    fn verify(&self, run: &Run) -> Result<(), Box<dyn Error>> {
        Ok(run.verify(&self.settings())?)
    }
}
