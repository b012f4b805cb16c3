//! The subcommands: their options and their output.

pub(crate) mod bench;
pub(crate) mod bfs;
pub(crate) mod cg;
pub(crate) mod loggp;
pub(crate) mod nbody;
pub(crate) mod simulate;

use std::process::ExitCode;

use mpi::exchange::Protocol;

/// Exit status if options are invalid.
pub(crate) const USAGE: u8 = 2;

/// Prints what is wrong with the options; returns the status.
pub(crate) fn usage(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("sparse-mini: {error}");
    ExitCode::from(USAGE)
}

/// The protocols that `--exchange` selects: all if it is not given.
pub(crate) fn protocols(vrt: &mpi::Config) -> Vec<Protocol> {
    // What cannot be was refused before ranks were started.
    match vrt.exchange() {
        Ok(Some(protocol)) => vec![protocol],
        Ok(None) | Err(_) => Protocol::all().collect(),
    }
}

/// A number of at least 1.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| *n >= 1);
    number.ok_or_else(|| "a whole number from 1 up is allowed".to_owned())
}

/// A number above 0.
pub(crate) fn positive_number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| "a number more than 0 is allowed".to_owned())
}

/// Prints a line of a report.
pub(crate) fn line(name: &str, value: String) {
    println!("{name:<15}{value}");
}
