//! `sparse-mini bench`.

use std::process::ExitCode;

use mpi::topology::Color;
use mpi::traits::*;
use sparse_mini::microbenchmark::{self, Load};
use vrt_cli::statistics::median;

use super::{positive, protocols};

/// Exchange messages of random lengths with random ranks, and nothing else.
///
/// Prints the microseconds per round with each protocol (with --exchange: with that one), among all
/// ranks or some of them. The exit status is 1 if messages were lost or changed.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of different targets of each rank in a round
    #[arg(short, long, value_name = "COUNT", default_value_t = 6)]
    k: usize,

    /// Messages have from 1 to this many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = positive)]
    longest: usize,

    /// Rounds that are timed
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = positive)]
    rounds: usize,

    /// How often all protocols are timed, alternately; medians are printed
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = positive)]
    repeat: usize,

    /// Seed of targets and lengths
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Numbers of ranks that take part, spread over the job's [default: all ranks]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = positive)]
    among: Vec<usize>,

    #[command(flatten)]
    pub vrt: mpi::Config,
}

/// Runs one rank.
pub(crate) fn run(args: &Args) -> ExitCode {
    let Some(universe) = mpi::initialize() else { return ExitCode::FAILURE };
    let world = universe.world();
    let (me, all) = (world.rank() as usize, world.size() as usize);
    let load = Load { k: args.k, longest: args.longest, rounds: args.rounds, seed: args.seed };
    let among = if args.among.is_empty() { vec![all] } else { args.among.clone() };
    if let Some(too_many) = among.iter().find(|n| **n > all) {
        if me == 0 {
            eprintln!("sparse-mini: --among {too_many}: the job has {all} ranks");
        }
        return ExitCode::from(super::USAGE);
    }
    let protocols = protocols(&args.vrt);
    if me == 0 {
        println!(
            "{} rounds, k = {}, 1 to {} bytes, {} PEs; microseconds a round",
            args.rounds,
            args.k,
            args.longest,
            mpi::environment::pes()
        );
        print!("{:>8}", "ranks");
        protocols.iter().for_each(|protocol| print!(" {protocol:>10}"));
        println!();
    }
    let mut wrong = 0;
    for n in among {
        // Every so many ranks one, from the first on.
        let takes_part = (0..n).any(|i| i * all / n == me);
        let color = if takes_part { Color::with_value(0) } else { Color::undefined() };
        if let Some(some) = world.split_by_color(color) {
            let mut times = vec![Vec::new(); protocols.len()];
            for _ in 0..args.repeat {
                for (times, protocol) in times.iter_mut().zip(&protocols) {
                    let outcome = microbenchmark::run(&some, *protocol, &load);
                    times.push(outcome.seconds / args.rounds as f64 * 1e6);
                    wrong += outcome.wrong;
                }
            }
            if me == 0 {
                print!("{n:>8}");
                times.iter().for_each(|times| print!(" {:>10.2}", median(times)));
                println!();
            }
        }
        world.barrier();
    }
    if me == 0 && wrong > 0 {
        println!("{wrong} messages were lost or changed");
        return ExitCode::FAILURE;
    }
    if me == 0 {
        println!("all messages came as they were sent: ok");
    }
    ExitCode::SUCCESS
}
