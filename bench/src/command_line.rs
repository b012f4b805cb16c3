//! What the tools behind `scripts/bench NAME` have in common: their command lines.

use std::fmt::Display;
use std::process::ExitCode;

use clap::Parser;

/// Parses the command line of a tool and runs it; an error is printed as one line. The exit status is 2 for a mistake
/// on the command line, 1 if the run fails.
pub fn run_tool<A: Parser, E: Display>(
    name: &str,
    run: impl FnOnce(&A) -> Result<(), E>,
) -> ExitCode {
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            // What is wrong, without the usage that follows.
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
            let line = lines.collect::<Vec<_>>().join(" ");
            eprintln!("{name}: {}", line.trim_start_matches("error: "));
            return ExitCode::from(2);
        }
        Err(error) => error.exit(),
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
