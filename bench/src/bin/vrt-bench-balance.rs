//! The program behind `scripts/bench-balance`, which builds what this one runs.

use std::process::ExitCode;

use clap::Parser;
use vrt_bench::balance;

fn main() -> ExitCode {
    match balance::run(&balance::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scripts/bench-balance: {error}");
            ExitCode::from(2)
        }
    }
}
