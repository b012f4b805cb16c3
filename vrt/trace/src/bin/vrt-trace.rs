//! What a job has done, from what `--trace FILE` has recorded.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use vrt_trace::read::Trace;
use vrt_trace::statistics::Statistics;
use vrt_trace::summary;

/// Shows what a job has done, from what `--trace FILE` has recorded
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Time by rank and PE, messages, moves, and what ranks have waited in
    Summary {
        /// The trace; of PEs that a launcher has started, the name without their numbers
        file: PathBuf,
        /// All ranks and calls, not only those that matter most
        #[arg(long)]
        all: bool,
        /// All numbers as JSON
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(text) => match std::io::stdout().lock().write_all(text.as_bytes()) {
            // Who reads only the beginning closes the pipe.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                eprintln!("vrt-trace: cannot write what was found: {error}");
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        Err(error) => {
            eprintln!("vrt-trace: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What there is to print.
fn run(command: Command) -> Result<String, Box<dyn std::error::Error>> {
    match command {
        Command::Summary { file, all, json } => {
            let trace = Trace::read(&file)?;
            let statistics = Statistics::of(&trace);
            match json {
                true => Ok(serde_json::to_string_pretty(&statistics)? + "\n"),
                false => Ok(summary::text(&trace, &statistics, all)),
            }
        }
    }
}
