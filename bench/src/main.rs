//! The program `vrt-bench`: the benchmarks, and the tools that run them. `scripts/bench` builds what they need.

mod run;

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use vrt_bench::{Error, balance, copies, counts, growth, metg, needs, sweeps, table, tracing};

/// Benchmarks of vrt, and tools that compare them with targets, with other MPIs and with plain copies.
#[derive(Parser)]
#[command(version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one benchmark, and print its figures as a line of JSON
    Run {
        #[command(subcommand)]
        program: Box<run::Program>,
    },
    Table(table::Args),
    Tracing(tracing::Args),
    Counts(counts::Args),
    Metg(metg::Args),
    Copies(copies::Args),
    Growth(growth::Args),
    Balance(balance::Args),
    Sweeps(sweeps::Args),
    /// Print what has to be built before a tool runs, for scripts/bench
    #[command(hide = true)]
    Needs {
        /// The tool, and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        line: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Cli::command);
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return refuse(&error),
    };
    let outcome = match command {
        Command::Run { program } => return run::run(*program),
        Command::Table(args) => table::run(&args),
        Command::Tracing(args) => tracing::run(&args),
        Command::Counts(args) => counts::run(&args),
        Command::Metg(args) => metg::run(&args),
        Command::Copies(args) => copies::run(&args),
        Command::Growth(args) => growth::run(&args),
        Command::Balance(args) => balance::run(&args),
        Command::Sweeps(args) => sweeps::run(&args),
        Command::Needs { line } => {
            let words = [OsString::from("vrt-bench")].into_iter().chain(line);
            // What cannot be parsed needs nothing, and is refused when it is run.
            let needs = Cli::try_parse_from(words).map_or_else(|_| Vec::new(), |it| needs_of(&it));
            println!("{}", needs.join(" "));
            Ok(())
        }
    };
    status(outcome, Error::exit_status)
}

fn needs_of(cli: &Cli) -> Vec<&'static str> {
    match &cli.command {
        Command::Table(args) => args.needs(),
        Command::Tracing(_) => vec![needs::UNOBSERVED],
        Command::Counts(_) => vec![needs::VALGRIND],
        Command::Metg(args) if !args.no_open_mpi => vec![needs::OPEN_MPI],
        Command::Copies(args) => vec![if args.no_open_mpi { needs::COPY } else { needs::OPEN_MPI }],
        _ => Vec::new(),
    }
}

/// Says in one line what is wrong with the command line, or prints the help that it asks for.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    // Without the usage that follows.
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
    let line = lines.collect::<Vec<_>>().join(" ");
    eprintln!("vrt-bench: {}", line.trim_start_matches("error: "));
    ExitCode::from(2)
}

/// Reports an error, if there is one.
fn status<E: Display>(outcome: Result<(), E>, status_of: impl Fn(&E) -> u8) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vrt-bench: {error}");
            ExitCode::from(status_of(&error))
        }
    }
}
