//! `cargo xtask NAME`: checks that start many jobs. `scripts/test --all` runs them.
//!
//! | module | what |
//! |---|---|
//! | `chaos`, `mpich`, `rsmpi_examples`, `two_machines`, `uts_exact` | a check each |
//! | `job` | runs programs |
//! | `steps` | the steps of a check, as they are shown |
//! | `setup` | what checks need: programs that cargo builds, Debian packages, MPI libraries |

mod chaos;
mod job;
mod mpich;
mod rsmpi_examples;
mod setup;
mod steps;
mod two_machines;
mod uts_exact;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::steps::{Error, Steps, at};

/// Checks that start many jobs.
///
/// The status is 0 if all is right, 1 if something is not, 2 for wrong options.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand)]
enum Check {
    Chaos(chaos::Args),
    MpichTests(mpich::Args),
    RsmpiExamples(rsmpi_examples::Args),
    TwoMachines(two_machines::Args),
    UtsExact(uts_exact::Args),
}

fn main() -> ExitCode {
    let check = Cli::parse().check;
    let mut steps = Steps::of(std::env::args().nth(1).unwrap_or_default());
    let outcome = std::env::set_current_dir(setup::root()).map_err(at(setup::root()));
    let outcome = outcome.and_then(|()| match &check {
        Check::Chaos(args) => chaos::check(args, &mut steps),
        Check::MpichTests(args) => mpich::check(args, &mut steps),
        Check::RsmpiExamples(args) => rsmpi_examples::check(args, &mut steps),
        Check::TwoMachines(args) => two_machines::check(args, &mut steps),
        Check::UtsExact(args) => uts_exact::check(args, &mut steps),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Usage(what)) => Cli::command().error(ErrorKind::ValueValidation, what).exit(),
        Err(Error::Status(status)) => std::process::exit(status),
        Err(error) => {
            steps.report(&error);
            ExitCode::FAILURE
        }
    }
}
