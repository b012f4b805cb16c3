//! The subcommands: their options, and what they print.

pub mod bench;
pub mod bfs;
pub mod cg;
pub mod loggp;
pub mod nbody;
pub mod simulate;

use std::process::ExitCode;

use mpi::exchange::Protocol;

/// Exit status when options make no sense.
pub const USAGE: u8 = 2;

/// Prints what is wrong with the options; the status for that.
pub fn usage(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("sparse-mini: {error}");
    ExitCode::from(USAGE)
}

/// The protocols that `--exchange` asks for: all when it is silent.
pub fn protocols(vrt: &mpi::Config) -> Vec<Protocol> {
    // What cannot be was refused before ranks were started.
    match vrt.exchange() {
        Ok(Some(protocol)) => vec![protocol],
        Ok(None) | Err(_) => Protocol::all().collect(),
    }
}

/// A number from 1 up.
pub fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| *n >= 1);
    number.ok_or_else(|| "a whole number from 1 up is allowed".to_owned())
}

/// A number that is more than 0.
pub fn positive_number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| "a number more than 0 is allowed".to_owned())
}

/// Prints a line of a report.
pub fn line(name: &str, value: String) {
    println!("{name:<15}{value}");
}
