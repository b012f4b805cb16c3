//! The program behind `scripts/bench`, which builds what this one runs.

use std::process::ExitCode;

use clap::Parser;
use vrt_bench::table;

fn main() -> ExitCode {
    match table::run(&table::Args::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("scripts/bench: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}
