//! `sparse-mini loggp`.

use std::path::PathBuf;
use std::process::ExitCode;

use mpi::traits::*;
use sparse_mini::loggp::{Measured, measure};

/// Measure the LogGP parameters of the network between ranks, and print predictions from them.
///
/// `--pes 1` measures between ranks of one PE, `--pes 2` between PEs, `--node-size 1` between
/// nodes. The file written by --output can be given to --loggp of any job, and to `simulate
/// --machine`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Write everything to this file, as JSON
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    pub vrt: mpi::Config,
}

/// Runs one rank.
pub(crate) fn run(args: &Args) -> ExitCode {
    let Some(universe) = mpi::initialize() else { return ExitCode::FAILURE };
    let world = universe.world();
    if world.size() < 2 {
        eprintln!("sparse-mini: --ranks 1: at least 2 ranks are needed to measure between them");
        return ExitCode::from(super::USAGE);
    }
    let (pes, node) = (mpi::environment::pes(), args.vrt.node_size() as usize);
    let between = match (pes, node) {
        (1, _) => "ranks of one PE",
        (pes, node) if node < pes => "PEs of different nodes",
        _ => "PEs of one node",
    };
    let Some(measured) = measure(&world, between.to_owned()) else { return ExitCode::SUCCESS };
    print(&measured);
    let Some(file) = &args.output else { return ExitCode::SUCCESS };
    let written = serde_json::to_string_pretty(&measured)
        .map_err(std::io::Error::other)
        .and_then(|text| std::fs::write(file, text + "\n"));
    if let Err(error) = written {
        eprintln!("sparse-mini: cannot write {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn print(measured: &Measured) {
    let it = &measured.parameters;
    println!("between {}, microseconds", measured.between);
    println!("L    {:.4}", it.latency);
    println!("o    {:.4}", it.overhead);
    println!("g    {:.4}", it.gap);
    // Where ranks share a PE some are 0, within what can be measured.
    let ratio = |of: f64, to: f64, unit: &str| match of / to {
        ratio if ratio.is_finite() => format!(" ({ratio:.2} {unit})"),
        _ => String::new(),
    };
    let (gap, late) = (it.gap_per_byte, it.synchronous_latency);
    println!("G    {gap:.6} a byte{}", ratio(1e-3, gap, "GB/s"));
    println!("L_s  {late:.4}{}", ratio(late, it.latency, "L"));
    println!("the model's time of an exchange, NBX chosen up to k");
    for prediction in measured.predictions.iter().filter(|prediction| prediction.k == 6) {
        print!("{:>8} ranks, k = {}:", prediction.ranks, prediction.k);
        prediction.times.iter().for_each(|(name, time)| print!(" {name} {time:.2}"));
        println!(", k <= {:.1}", prediction.threshold);
    }
}
