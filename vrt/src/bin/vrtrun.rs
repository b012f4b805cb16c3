//! Starts a program as a job: `vrtrun --pes 2 --ranks 16 ./program its arguments`.
//!
//! The options become the `VRT_*` environment variables that the program's `#[vrt::main]` reads.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Parser;

/// Runs a program built on vrt as many virtual ranks on a few processes
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Some((program, rest)) = arguments.command.split_first() else {
        return ExitCode::from(2);
    };
    let mut command = Command::new(program);
    // A program that does not become a job can see that it was to be one.
    let error = command.args(rest).envs(arguments.vrt.to_env()).env("VRTRUN", "1").exec();
    eprintln!("vrtrun: cannot run {}: {error}", program.display());
    ExitCode::from(127)
}
