//! `vrt-bench run`: one benchmark per run, one line of JSON on standard output. The tools run it alternately with the C
//! programs.

use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Subcommand};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use rocket_mini::jacobi::Costly;
use vrt_bench::measure::Measured;
use vrt_bench::programs::metg::Settings;
use vrt_bench::programs::{
    self, Aspect, CollectiveOperation, Effort, Error, Operation, Outcome, RemoteAccess, Work,
};

/// A benchmark.
#[derive(Subcommand)]
pub(crate) enum Program {
    /// Two ranks that only yield to each other
    Switch(Repeated),
    /// A cache line that bounces between two cores, without ranks
    Line(Effort),
    /// Two ranks that send a message back and forth
    Pingpong {
        /// Bytes of the message
        #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = vrt_cli::positive::<u32>)]
        bytes: u32,
        /// Write to each cache line of the buffer before it is sent, and read each line of what was received
        #[arg(long)]
        touch: bool,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// All ranks send to the right and receive from the left
    Ring(Repeated),
    /// All ranks add a double
    Allreduce(Repeated),
    /// All ranks call a collective operation
    Collective {
        /// The operation
        #[arg(long, value_name = "OPERATION")]
        what: CollectiveOperation,
        /// Bytes that each rank contributes; for alltoall and reduce-scatter, bytes per rank; for sums, a multiple of 8
        #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = vrt_cli::positive::<u32>)]
        bytes: u32,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// Very many ranks: their start, their memory, and the operations among them
    Many {
        /// What to measure
        #[arg(long, value_name = "ASPECT")]
        what: Aspect,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// A rank that reads or writes the memory of another one
    Onesided {
        /// The access
        #[arg(long, value_name = "ACCESS")]
        what: RemoteAccess,
        /// Bytes
        #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = vrt_cli::positive::<u32>)]
        bytes: u32,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// Packing the columns of a matrix
    Pack {
        /// Rows and columns
        #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=16384))]
        size: u32,
        /// Use a loop instead of a datatype
        #[arg(long)]
        by_hand: bool,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// All ranks relax a cube
    Jacobi(JacobiArgs),
    /// A rank that moves back and forth between two PEs
    Move {
        /// Bytes that it owns
        #[arg(long, value_name = "COUNT", default_value_t = 1024)]
        bytes: u64,
        /// Measure the first touch of all its memory after a move instead of the move
        #[arg(long)]
        touch: bool,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// The tasks of a graph, to find the smallest tasks that pay
    Metg {
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        vrt: mpi::Config,
    },
    /// Threads that pass strings on, in a rank's process
    Threads {
        /// What they do
        #[arg(long, value_name = "WORK")]
        what: Work,
        /// Run in a process that is not a job: with the C library's heap
        #[arg(long)]
        plain: bool,
        #[command(flatten)]
        repeated: Repeated,
    },
    /// Operations for an instruction counter, in this process only
    Counts {
        /// The operation
        #[arg(long, value_name = "OPERATION")]
        what: Operation,
        /// Iterations, each with one or two operations per rank
        #[arg(long, value_name = "COUNT", default_value_t = 1000)]
        iterations: u32,
    },
}

#[derive(Args)]
pub(crate) struct Repeated {
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    vrt: mpi::Config,
}

#[derive(Args)]
pub(crate) struct JacobiArgs {
    /// Cells along each axis of the cube
    #[arg(long, value_name = "CELLS", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=8192))]
    size: u32,
    /// Iterations
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = vrt_cli::positive::<u32>)]
    iterations: u32,
    /// Check the residual once in this many iterations
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = vrt_cli::positive::<u32>)]
    check_every: u32,
    /// Make a fraction of the cells cost this many times more, as in 0.25:8
    #[arg(long, value_name = "FRACTION:FACTOR")]
    uneven: Option<Costly>,
    #[command(flatten)]
    vrt: mpi::Config,
}

/// Runs a benchmark.
pub(crate) fn run(program: Program) -> ExitCode {
    match program {
        Program::Switch(repeated) => launch_repeated(repeated, programs::switch),
        Program::Pingpong { repeated, bytes, touch } => {
            launch_repeated(repeated, move |world, effort| {
                programs::pingpong(world, bytes as usize, touch, effort)
            })
        }
        Program::Move { repeated, bytes, touch: true } => {
            launch_repeated(repeated, move |world, effort| {
                programs::first_touch(world, bytes as usize, effort)
            })
        }
        Program::Move { repeated, bytes, touch: false } => {
            launch_repeated(repeated, move |world, effort| {
                programs::moving(world, bytes as usize, effort)
            })
        }
        Program::Ring(repeated) => launch_repeated(repeated, programs::ring),
        Program::Allreduce(repeated) => launch_repeated(repeated, programs::allreduce),
        Program::Collective { repeated, what, bytes } => {
            launch_repeated(repeated, move |world, effort| {
                programs::collective(world, what, bytes as usize, effort)
            })
        }
        Program::Many { repeated, what } => {
            let begin = Instant::now();
            launch_repeated(repeated, move |world, effort| {
                programs::many(world, what, begin, effort)
            })
        }
        Program::Onesided { repeated, what, bytes } => {
            launch_repeated(repeated, move |world, effort| {
                programs::onesided(world, what, bytes as usize, effort)
            })
        }
        Program::Pack { repeated, size, by_hand } => {
            launch_repeated(repeated, move |world, effort| {
                programs::pack(world, size as usize, by_hand, effort)
            })
        }
        Program::Jacobi(args) => launch(args.vrt, move |world| {
            let [size, iterations, check_every] =
                [args.size, args.iterations, args.check_every].map(|n| n as usize);
            programs::jacobi(world, size, iterations, check_every, args.uneven)
        }),
        Program::Metg { settings, vrt } => {
            launch(vrt, move |world| programs::metg(world, &settings))
        }
        Program::Line(effort) => print(programs::line(effort)),
        Program::Threads { repeated, what, plain: true } => {
            print(programs::threads(what, repeated.effort))
        }
        Program::Threads { repeated, what, plain: false } => {
            launch_repeated(repeated, move |_, effort| programs::threads(what, effort).map(Some))
        }
        Program::Counts { what, iterations } => {
            programs::count(what, iterations);
            ExitCode::SUCCESS
        }
    }
}

/// Prints the measurements of this process.
fn print(measured: Result<Measured, Error>) -> ExitCode {
    super::status(measured.map(|measured| measured.print()), |_| 1)
}

fn launch_repeated(
    repeated: Repeated,
    program: impl Fn(&SimpleCommunicator, Effort) -> Outcome + Sync + 'static,
) -> ExitCode {
    let Repeated { vrt, effort } = repeated;
    launch(vrt, move |world| program(world, effort))
}

/// Runs a program on all ranks of a job, and prints its measurements.
fn launch<All: IntoIterator<Item = Measured>>(
    vrt: mpi::Config,
    program: impl Fn(&SimpleCommunicator) -> Result<All, Error> + Sync + 'static,
) -> ExitCode {
    mpi::launch(vrt, move || {
        let Some(universe) = mpi::initialize() else {
            eprintln!("vrt-bench: this rank has been initialized before");
            return ExitCode::FAILURE;
        };
        let world = universe.world();
        match program(&world) {
            Ok(all) => {
                all.into_iter().for_each(|measured| measured.print());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("vrt-bench: rank {}: {error}", world.rank());
                std::process::exit(1);
            }
        }
    })
}
