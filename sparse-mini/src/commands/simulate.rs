//! `sparse-mini simulate`.

use std::path::PathBuf;
use std::process::ExitCode;

use sparse_mini::microbenchmark::Load;
use sparse_mini::simulate::machines::{Machine, machines};
use sparse_mini::simulate::{SIMULATED, crossover, simulate};

use super::{positive, usage};

/// Simulate the protocols on another network, message by message.
///
/// Prints the microseconds of one exchange, and the gain of NBX over the best of PEX and PCX.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// intrepid, jaguar or bigred (the paper's), or a file written by `sparse-mini loggp`
    #[arg(long, value_name = "MACHINE", default_value = "intrepid")]
    machine: String,

    /// Numbers of processes, up to 4194304
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=1 << 22),
          default_value = "64,128,256,512,1024,2048,4096,8192,16384")]
    processes: Vec<u32>,

    /// Number of different targets of each process
    #[arg(short, long, value_name = "COUNT", default_value_t = 6)]
    k: usize,

    /// Messages have from 1 to this many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = positive)]
    longest: usize,

    /// Seed of targets and lengths
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Search for the number of processes, up to this one, from which on NBX is fastest
    #[arg(long, value_name = "LARGEST", value_parser = positive)]
    crossover: Option<usize>,
}

/// The part of `sparse-mini loggp`'s output that is read.
#[derive(serde::Deserialize)]
struct Measured {
    parameters: mpi::exchange::LogGp,
}

/// A machine by its name or its file.
fn machine(name: &str) -> Result<Machine, String> {
    if let Some(known) = machines().into_iter().find(|machine| machine.name == name) {
        return Ok(known);
    }
    let wrong = |error: &dyn std::fmt::Display| {
        format!("--machine {name}: {error}; intrepid, jaguar, bigred or a file are allowed")
    };
    let file = PathBuf::from(name);
    let text = mpi::exchange::LogGp::read_text(&file).map_err(|error| wrong(&error))?;
    let measured: Measured = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let parameters = measured.parameters.check().map_err(|error| wrong(&error))?;
    Ok(Machine::new(name, parameters))
}

/// Runs the simulation.
pub(crate) fn run(args: &Args) -> ExitCode {
    let machine = match machine(&args.machine) {
        Ok(machine) => machine,
        Err(error) => return usage(&error),
    };
    let load = Load { k: args.k, longest: args.longest, rounds: 1, seed: args.seed };
    println!("{}, k = {}, 1 to {} bytes; microseconds", machine.name, args.k, args.longest);
    if let Some(largest) = args.crossover {
        match crossover(&machine, &load, largest) {
            Some(processes) => println!("NBX is fastest from {processes} processes on"),
            None => println!("NBX is not fastest up to {largest} processes"),
        }
        return ExitCode::SUCCESS;
    }
    print!("{:>10}", "processes");
    SIMULATED.iter().for_each(|protocol| print!(" {protocol:>10}"));
    println!(" {:>8}", "gain");
    for processes in &args.processes {
        print!("{processes:>10}");
        let mut times = Vec::new();
        for protocol in SIMULATED {
            match simulate(&machine, protocol, *processes as usize, &load) {
                Ok(simulated) => times.push(simulated.time),
                Err(error) => return usage(&error),
            }
        }
        times.iter().for_each(|time| print!(" {time:>10.1}"));
        println!(" {:>8.2}", times[0].min(times[1]) / times[3]);
    }
    ExitCode::SUCCESS
}
