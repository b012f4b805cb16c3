//! `uts experiment`: the experiments of the papers, run here.
//!
//! | file | experiments |
//! |---|---|
//! | `catalog`, `sweep` | runs of this program over the values of a parameter |
//! | `beside`, `reference` | this program compared with the authors' own |
//! | `scaling` | the papers' figures over numbers of processes, simulated |
//! | `run` | running a job |

mod beside;
mod catalog;
mod reference;
mod run;
mod scaling;
mod sweep;

pub(crate) use catalog::Job;
use catalog::{EXPERIMENTS, Experiment};
use clap::Args;
use experiments::Folder;
use reference::Reference;
pub(crate) use run::run as run_job;
use std::path::PathBuf;
use thiserror::Error;

/// Runs experiments of the papers; writes a CSV table and an SVG figure of each, and report.md.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExperimentOptions {
    /// Which one: all, or sequential, polling, release, chunk, shares, ranks, prefetch, balancer, trees, scaling,
    /// beside
    #[arg(value_name = "NAME")]
    name: String,

    /// The directory to write to; it is created if necessary
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// How often each job is run
    #[arg(long, value_name = "TIMES", default_value_t = 3,
          value_parser = vrt_cli::positive::<u32>)]
    repeat: u32,

    /// For `beside`: the directory with the authors' programs, uts-seq and uts-mpi-ws (or uts-mpi-ws-nt, which does not
    /// trace), as their makefile builds them
    #[arg(long, value_name = "DIR")]
    reference: Option<PathBuf>,

    /// For `beside`: the command that starts MPI processes, before `-n 2 PROGRAM`
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "reference",
        default_value = "mpirun.openmpi --allow-run-as-root --bind-to core"
    )]
    mpirun: String,

    /// For `beside`: use T1 and T3 instead of T1L and T3L, to check that everything runs
    #[arg(long, requires = "reference")]
    quick: bool,
}

/// Why there is no report.
#[derive(Debug, Error)]
pub(crate) enum ExperimentError {
    /// No experiment has this name.
    #[error(transparent)]
    Unknown(#[from] experiments::Unknown),
    /// A job failed or found the wrong tree.
    #[error("uts {line}: {why}")]
    Job {
        /// Its command line.
        line: String,
        /// What happened.
        why: String,
    },
    /// The authors' programs were not given.
    #[error(
        "experiment beside without --reference DIR: allowed is a folder with the authors' programs \
         uts-seq and uts-mpi-ws"
    )]
    NoReference,
    /// Another experiment does not use the authors' programs.
    #[error("--reference with experiment {0}: allowed with beside and all")]
    ReferenceUnused(String),
    /// The authors' program does not exist.
    #[error("no program {} in {}: allowed is a folder with uts-seq and uts-mpi-ws", .program, .folder.display())]
    MissingReference {
        /// Its name.
        program: &'static str,
        /// Where it was searched.
        folder: PathBuf,
    },
    /// The authors' program failed or found the wrong tree.
    #[error("{line}: {why}")]
    Reference {
        /// Its command line.
        line: String,
        /// What happened.
        why: String,
    },
    /// A simulation found the wrong tree, or does not exist.
    #[error("simulation of {what}: {why}")]
    Simulation {
        /// The subject of the simulation.
        what: String,
        /// What happened.
        why: String,
    },
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] experiments::WriteError),
}

impl ExperimentError {
    /// Whether the command line is wrong.
    pub(crate) fn is_usage(&self) -> bool {
        match self {
            Self::Unknown(_) | Self::NoReference => true,
            Self::ReferenceUnused(_) | Self::MissingReference { .. } => true,
            Self::Job { .. } | Self::Reference { .. } => false,
            Self::Simulation { .. } | Self::File(_) => false,
        }
    }
}

/// The experiments that can be requested.
#[derive(Clone, Copy, Debug)]
enum Any {
    Sweep(&'static Experiment),
    Scaling,
    Beside,
}

impl Any {
    fn name(&self) -> &'static str {
        match self {
            Self::Sweep(experiment) => experiment.name,
            Self::Scaling => "scaling",
            Self::Beside => "beside",
        }
    }
}

/// Runs the requested experiments.
///
/// # Errors
///
/// If the experiment does not exist, a job fails or a file cannot be written.
pub(crate) fn run(options: &ExperimentOptions) -> Result<(), ExperimentError> {
    let ExperimentOptions { name, repeat, .. } = options;
    let sweeps = EXPERIMENTS.iter().map(Any::Sweep);
    let all: Vec<Any> = sweeps.chain([Any::Scaling, Any::Beside]).collect();
    let chosen = experiments::choose(&all, Any::name, name)?;
    // Before hours are spent on the others.
    let reference = match &options.reference {
        Some(_) if name != "all" && name != "beside" => {
            return Err(ExperimentError::ReferenceUnused(name.clone()));
        }
        Some(folder) => Some(Reference::find(folder, &options.mpirun)?),
        None if name == "beside" => return Err(ExperimentError::NoReference),
        None => None,
    };
    let mut folder = Folder::create(&options.out)?;
    for experiment in chosen {
        match (experiment, &reference) {
            (Any::Sweep(experiment), _) => sweep::run(experiment, *repeat, &mut folder)?,
            (Any::Scaling, _) => scaling::run(&mut folder)?,
            (Any::Beside, Some(reference)) => {
                beside::run(reference, options.quick, *repeat, &mut folder)?;
            }
            (Any::Beside, None) => {
                let why = "This is left out, as there is no --reference.";
                folder.add_paragraph(format!("## {}\n\n{why}\n", beside::TITLE));
            }
        }
    }
    Ok(folder.write_report()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use clap::Parser;

    #[test]
    fn every_job_is_a_line_that_the_program_takes() {
        for experiment in EXPERIMENTS {
            for job in (experiment.jobs)() {
                let line = std::iter::once("uts").chain(job.arguments.split_whitespace());
                let options = Options::try_parse_from(line).expect("a sound line");
                assert!(options.tree().is_ok() && options.kernel().is_ok(), "{}", job.arguments);
                assert!(options.plan().is_ok(), "{}", job.arguments);
            }
        }
    }
}
