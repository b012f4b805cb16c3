//! The program behind `scripts/bench metg`, which builds what this one runs.

use std::process::ExitCode;

use clap::Parser;
use vrt_bench::granularity;

fn main() -> ExitCode {
    let args = match granularity::Args::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            // What is wrong, without the usage that follows.
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
            let line = lines.collect::<Vec<_>>().join(" ");
            eprintln!("scripts/bench metg: {}", line.trim_start_matches("error: "));
            return ExitCode::from(2);
        }
        Err(error) => error.exit(),
    };
    match granularity::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scripts/bench metg: {error}");
            ExitCode::FAILURE
        }
    }
}
