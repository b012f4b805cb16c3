//! The program `rocket-mini`: solvers as subcommands.

mod crack_command;
mod face_command;
mod flow_command;
mod jacobi_command;
mod progress;
mod report;
mod rocket_command;
mod solid_command;

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
    Crack(crack_command::CrackArgs),
    Face(face_command::FaceArgs),
    Flow(flow_command::FlowArgs),
    Jacobi(jacobi_command::JacobiArgs),
    Rocket(rocket_command::RocketArgs),
    Solid(solid_command::SolidArgs),
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Crack(args) => {
            let vrt = args.vrt.clone();
            mpi::launch(vrt, move || crack_command::run(&args))
        }
        Command::Face(args) => {
            let vrt = args.vrt.clone();
            mpi::launch(vrt, move || face_command::run(&args))
        }
        Command::Flow(args) => {
            let vrt = args.vrt.clone();
            mpi::launch(vrt, move || flow_command::run(&args))
        }
        Command::Jacobi(args) => {
            let vrt = args.vrt.clone();
            mpi::launch(vrt, move || jacobi_command::run(&args))
        }
        Command::Rocket(args) => {
            let vrt = args.vrt.clone();
            mpi::launch(vrt, move || rocket_command::run(&args))
        }
        Command::Solid(args) => {
            let vrt = args.vrt.clone();
            mpi::launch(vrt, move || solid_command::run(&args))
        }
    }
}
