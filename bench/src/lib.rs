//! Benchmarks of vrt, compared with C programs that do the same on Open MPI: the program `vrt-bench`.
//!
//! - [`programs`] contains one program for each figure, the twins of `c/*.c`; `vrt-bench run` runs them, and each prints
//!   one line of JSON.
//! - [`table`] runs both kinds alternately and compares them with the targets.
//! - [`tracing`] compares programs that cannot be traced with those that can.
//! - [`counts`] counts instructions, and compares them with the committed figures.
//! - [`balance`] compares `--lb auto` with no balancing and with the best known strategy.
//! - [`metg`] finds the smallest tasks that pay.
//! - [`copies`] compares long messages with plain copies.
//! - [`growth`] measures the cost of ranks as their number grows.
//! - [`sweeps`] compares ratios of ranks to PEs.
//!
//! Each of these tools is a subcommand of its name, and runs `vrt-bench run` as its jobs; [`needs`] says what
//! `scripts/bench` has to build for it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod balance;
pub mod copies;
pub mod counts;
mod error;
pub mod growth;
pub mod measure;
pub mod metg;
pub mod needs;
mod process;
pub mod programs;
pub mod sweeps;
pub mod table;
pub mod tracing;

pub use error::Error;

/// The options of a tool, parsed from a command line.
#[cfg(test)]
fn parsed<A: clap::Args>(line: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("vrt-bench"));
    A::from_arg_matches(&command.try_get_matches_from(line)?)
}
