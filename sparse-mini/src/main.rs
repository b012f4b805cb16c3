//! The program `sparse-mini`: a subcommand for each module of the library.

mod commands;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Programs whose ranks do not know which ranks will send to them: sparse exchange and its
/// applications.
#[derive(Parser)]
#[command(version, about, infer_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(Box<commands::bench::Args>),
    Bfs(Box<commands::bfs::Args>),
    Nbody(Box<commands::nbody::Args>),
    Cg(Box<commands::cg::Args>),
    Loggp(Box<commands::loggp::Args>),
    Simulate(commands::simulate::Args),
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Args::command);
    match Args::parse().command {
        Command::Bench(args) => mpi::launch(args.vrt.clone(), move || commands::bench::run(&args)),
        Command::Bfs(args) => mpi::launch(args.vrt.clone(), move || commands::bfs::run(&args)),
        Command::Nbody(args) => mpi::launch(args.vrt.clone(), move || commands::nbody::run(&args)),
        Command::Cg(args) => commands::cg::launch(args),
        Command::Loggp(args) => mpi::launch(args.vrt.clone(), move || commands::loggp::run(&args)),
        Command::Simulate(args) => commands::simulate::run(&args),
    }
}
