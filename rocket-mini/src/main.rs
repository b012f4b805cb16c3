//! The program `rocket-mini`: solvers as subcommands.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod crack_command;
mod experiment;
mod face_command;
mod flow_command;
mod jacobi_command;
mod progress;
mod report;
mod rocket_command;
mod solid_command;
mod subcommand;
mod switching_command;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};
use subcommand::launch;

/// Small solvers that run as virtual ranks.
#[derive(Parser)]
#[command(version, about, infer_subcommands = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Crack(crack_command::CrackArgs),
    Experiment(experiment::ExperimentArgs),
    Face(face_command::FaceArgs),
    Flow(flow_command::FlowArgs),
    Jacobi(jacobi_command::JacobiArgs),
    Rocket(rocket_command::RocketArgs),
    Solid(solid_command::SolidArgs),
    Switching(switching_command::SwitchingArgs),
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(command);
    // Before a job uses it.
    vrt_cli::Machine::at_start();
    let args = Args::from_arg_matches(&command().get_matches()).unwrap_or_else(|it| it.exit());
    match args.command {
        Command::Crack(args) => launch(args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Face(args) => launch(args),
        Command::Flow(args) => launch(args),
        Command::Jacobi(args) => jacobi_command::launch(args),
        Command::Rocket(args) => launch(args),
        Command::Solid(args) => launch(args),
        Command::Switching(args) => switching_command::launch(args),
    }
}

/// The command line. A negative number is treated as a value, which the preceding option accepts or
/// refuses with its own message, not as an unknown option.
fn command() -> clap::Command {
    Args::command().mut_subcommands(|subcommand| {
        subcommand.mut_args(|arg| {
            let takes_values = arg.get_action().takes_values();
            arg.allow_negative_numbers(takes_values)
        })
    })
}
