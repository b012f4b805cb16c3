//! The program `rocket-mini`: solvers as subcommands.

mod jacobi_command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Small solvers that run as virtual ranks.
#[derive(Parser)]
#[command(version, about, infer_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Jacobi(jacobi_command::JacobiArgs),
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Jacobi(args) => {
            let vrt = args.vrt.clone();
            mpi::launch(vrt, move || jacobi_command::run(&args))
        }
    }
}
