//! Shows what a job has done, from the file that `--trace FILE` has recorded.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use vrt_trace::advise::advise;
use vrt_trace::convert::{ConvertError, csv, html, paraver, perfetto};
use vrt_trace::read::Trace;
use vrt_trace::statistics::Statistics;
use vrt_trace::summary;

/// Shows what a job has done, from the file that `--trace FILE` has recorded
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Time by rank and PE, messages, moves, and the calls that ranks have waited in
    Summary {
        /// The trace; for PEs that a launcher has started, the name without their numbers
        file: PathBuf,
        /// Show all ranks and calls, not only the most important ones
        #[arg(long)]
        all: bool,
        /// Print all numbers as JSON
        #[arg(long)]
        json: bool,
    },
    /// The trace in another format
    Convert {
        /// The trace
        file: PathBuf,
        /// The format; by default the extension of the output's name decides
        #[arg(long, value_enum)]
        to: Option<Format>,
        /// The file to write
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Performance problems of the job, each with its number and the option that would help
    Advise {
        /// The trace
        file: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For ui.perfetto.dev and trace_processor (.pftrace)
    Perfetto,
    /// For Paraver: .prv, and .pcf and .row beside it
    Paraver,
    /// A row for each event (.csv)
    Csv,
    /// One page, which needs no network (.html)
    Html,
}

impl Format {
    fn of(output: &Path) -> Option<Format> {
        match output.extension()?.to_str()? {
            "pftrace" | "perfetto-trace" => Some(Format::Perfetto),
            "prv" => Some(Format::Paraver),
            "csv" => Some(Format::Csv),
            "html" => Some(Format::Html),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Arguments::command);
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

/// The text to print.
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
        Command::Convert { file, to, output } => {
            let format = to.or_else(|| Format::of(&output)).ok_or_else(|| {
                format!(
                    "what is {} to be? .pftrace, .prv, .csv and .html are known, or --to says so",
                    output.display()
                )
            })?;
            convert(&Trace::read(&file)?, format, &output)?;
            Ok(String::new())
        }
        Command::Advise { file } => {
            let trace = Trace::read(&file)?;
            let advice = advise(&trace, &Statistics::of(&trace));
            match advice.is_empty() {
                true => Ok("no fault that could be seen in the trace\n".to_owned()),
                false => Ok(advice.iter().map(|it| format!("{it}\n")).collect()),
            }
        }
    }
}

/// Writes a trace in another format.
fn convert(trace: &Trace, format: Format, output: &Path) -> Result<(), ConvertError> {
    if let Format::Paraver = format {
        return paraver::write(trace, output);
    }
    let failed = |source| ConvertError::Write { path: output.to_owned(), source };
    let out = BufWriter::new(File::create(output).map_err(failed)?);
    match format {
        Format::Perfetto => perfetto::write(trace, out),
        Format::Csv => csv::write(trace, out).map_err(std::io::Error::other),
        Format::Html => html::write(trace, &Statistics::of(trace), out),
        Format::Paraver => Ok(()),
    }
    .map_err(failed)
}
