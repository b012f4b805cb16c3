//! `rocket-mini experiment`: reproduces the figures of the paper.
//!
//! A figure shows the best run of each job, as disturbances only slow it down; comparisons of programs show medians.

mod cachegrind;
mod catalog;
mod loads;
mod paragraph;
mod run;
mod twins;

use std::path::PathBuf;
use std::process::ExitCode;

use cachegrind::Counts;
use catalog::{EXPERIMENTS, Experiment, Job, Shape, Value};
use experiments::{Axis, Folder, Labels, Progress, rounds_by_place, run_in_turn};
use paragraph::{bars, efficiencies, labels, lines, paragraph};
use run::{Disturbance, Outcome, agree};
use twins::Twins;

/// Reproduce figures of the paper: for each a CSV table, an SVG figure and a paragraph, which report.md collects.
///
/// Every job is a run of this program that its paragraph or table names, or of its twin in C, for which Open MPI's
/// mpicc.openmpi and mpirun.openmpi are needed; instructions and cache misses are counted by valgrind. The exit status
/// is 1 if a job fails, a file cannot be written or a required program is missing, and 2 if the experiment does not
/// exist.
#[derive(clap::Args)]
pub(crate) struct ExperimentArgs {
    /// Which one: all, or crack, rocket, external, external-long, ratios, caches, switching, tables, styles
    #[arg(value_name = "NAME")]
    name: String,

    /// The directory to write to; it is created if necessary
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// How often each job is run
    #[arg(long, value_name = "TIMES", default_value_t = 3, value_parser = vrt_cli::positive::<u32>)]
    repeat: u32,

    /// Show no progress, even on a terminal
    #[arg(long)]
    no_progress: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExperimentError {
    /// No experiment has this name.
    #[error(transparent)]
    Unknown(#[from] experiments::Unknown),
    /// A job failed.
    #[error("rocket-mini {line}: {why}")]
    Job {
        /// Its command line.
        line: String,
        /// What happened.
        why: String,
    },
    /// A required program is missing.
    #[error("no `{program}`, which {why}: install {packages}, or name another experiment")]
    Missing {
        /// The program.
        program: &'static str,
        /// What needs it.
        why: &'static str,
        /// The packages that contain it.
        packages: &'static str,
    },
    /// A twin cannot be compiled or run.
    #[error("{line}: {why}")]
    Twin {
        /// Its command line.
        line: String,
        /// What happened.
        why: String,
    },
    /// Runs that must compute the same result did not.
    #[error("`{line}` found {found} and `{other}` found {expected}")]
    Different {
        /// A command line.
        line: String,
        /// Its result.
        found: String,
        /// Another command line.
        other: String,
        /// Its result.
        expected: String,
    },
    /// Recorded loads are not a valid model.
    #[error(transparent)]
    Loads(#[from] lb_strategies::LoadModelError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] experiments::WriteError),
}

/// Runs the requested experiments, and prints their paragraphs.
pub(crate) fn run(args: &ExperimentArgs) -> ExitCode {
    match make(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rocket-mini: {error}");
            ExitCode::from(if matches!(error, ExperimentError::Unknown(_)) { 2 } else { 1 })
        }
    }
}

fn make(args: &ExperimentArgs) -> Result<(), ExperimentError> {
    let chosen = experiments::choose(EXPERIMENTS, |it| it.name, &args.name)?;
    let mut folder = Folder::create(&args.out)?;
    let mut progress = Progress::new(!args.no_progress);
    for experiment in chosen {
        let jobs = (experiment.jobs)();
        if let Some(error) = missing(&jobs) {
            if args.name != "all" {
                return Err(error);
            }
            eprintln!("rocket-mini: {}: left out, as there is {error}", experiment.name);
            folder.add_paragraph(format!("## {}\n\nThere is {error}.\n", experiment.title));
            continue;
        }
        let runs = measure(experiment, &jobs, args, &mut progress)?;
        folder.write_table(experiment.name, &COLUMNS, rows(&jobs, &runs))?;
        let shown: Vec<&Outcome> = runs.iter().filter_map(|runs| shown(experiment, runs)).collect();
        let lines = lines(experiment, &jobs, &shown);
        let is_course = experiment.shape == Shape::Course;
        let axis = if is_course { Axis::FromZero } else { Axis::Listed };
        let bars = bars(experiment, &jobs, &runs, &shown, &lines);
        folder.draw_with_bars(experiment.name, &labels(experiment), &lines, &bars, axis)?;
        if is_course {
            let name = format!("{}-ideal", experiment.name);
            let labels = Labels { y: "part of the ideal", ..labels(experiment) };
            folder.draw(&name, &labels, &efficiencies(&jobs, &shown), axis)?;
        }
        folder.add_paragraph(paragraph(experiment, &jobs, &shown, &lines)?);
    }
    Ok(folder.write_report()?)
}

/// A requirement of the jobs that this machine does not meet, if any.
fn missing(jobs: &[Job]) -> Option<ExperimentError> {
    let has_twins = jobs.iter().any(|job| job.twin_processes.is_some());
    let counts = jobs.iter().any(|job| job.counted_from.is_some());
    let of_twins = ("the twins in C need", "Open MPI (openmpi-bin and libopenmpi-dev)");
    let of_counts = ("counts instructions and cache misses", cachegrind::PROGRAM);
    let programs = [
        (has_twins, twins::COMPILER, of_twins),
        (has_twins, twins::LAUNCHER, of_twins),
        (counts, cachegrind::PROGRAM, of_counts),
    ];
    let missing = |(is_needed, program, (why, packages))| {
        (is_needed && !is_installed(program)).then_some(ExperimentError::Missing {
            program,
            why,
            packages,
        })
    };
    programs.into_iter().find_map(missing)
}

/// Whether a program is in the search path.
fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// The outcomes of each job.
fn measure(
    experiment: &Experiment,
    jobs: &[Job],
    args: &ExperimentArgs,
    progress: &mut Progress,
) -> Result<Vec<Vec<Outcome>>, ExperimentError> {
    let has_twins = jobs.iter().any(|job| job.twin_processes.is_some());
    let twins = has_twins.then(|| Twins::compile(&args.out)).transpose()?;
    let mut disturbance: Disturbance = None;
    if let Some(first) = jobs.iter().find(|job| job.is_disturbed) {
        let quiet = run::run(first, &args.out, None)?.seconds;
        disturbance = Some((0.25 * quiet, 0.25 * quiet));
    }
    let places: Vec<f64> = jobs.iter().map(|job| job.x).collect();
    // What is counted on a simulated processor is the same each time.
    let repeat = if jobs.iter().all(|job| job.counted_from.is_some()) { 1 } else { args.repeat };
    let run = |job: &Job| match (&twins, job.twin_processes, &job.counted_from) {
        (Some(twins), Some(processes), _) => twins.run(&job.arguments, processes),
        (.., Some(shorter)) => cachegrind::run(job, shorter),
        _ => run::run(job, &args.out, disturbance.filter(|_| job.is_disturbed)),
    };
    let order = rounds_by_place(&places, repeat as usize);
    let title = |job: &Job| format!("{}: {}", experiment.name, job.arguments);
    let runs = run_in_turn(jobs, order, progress, title, run)?;
    if has_twins {
        compare(jobs, &runs)?;
    }
    Ok(runs)
}

/// Compares the results of runs of a code with those of its twin, which follows it. A run without a result agrees with
/// nothing.
fn compare(jobs: &[Job], runs: &[Vec<Outcome>]) -> Result<(), ExperimentError> {
    for (jobs, runs) in jobs.chunks(2).zip(runs.chunks(2)) {
        let ([ours, twin], [found, expected]) = (jobs, runs) else { continue };
        for (found, expected) in found.iter().zip(expected) {
            let (found, expected) = (found.result.as_deref(), expected.result.as_deref());
            if !found.zip(expected).is_some_and(|(found, expected)| agree(found, expected)) {
                let (line, other) = (ours.arguments.clone(), twin.arguments.clone());
                let [found, expected] =
                    [found, expected].map(|result| result.unwrap_or("no result").to_owned());
                return Err(ExperimentError::Different { line, found, other, expected });
            }
        }
    }
    Ok(())
}

/// The run that represents all runs of a job: the best, or the median where programs are compared.
fn shown<'a>(experiment: &Experiment, runs: &'a [Outcome]) -> Option<&'a Outcome> {
    let mut sorted: Vec<&Outcome> = runs.iter().collect();
    sorted.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let is_compared = matches!(experiment.shape, Shape::Points { value: Value::Seconds, .. });
    sorted.get(if is_compared { sorted.len() / 2 } else { 0 }).copied()
}

/// Column headings of a table.
const COLUMNS: [&str; 15] = [
    "series",
    "x",
    "arguments",
    "run",
    "seconds",
    "steps",
    "rate",
    "ranks_percent",
    "idle_percent",
    "uneven_percent",
    "own_percent",
    "of_ideal_percent",
    "step_instructions",
    "step_first_cache_misses",
    "step_second_cache_misses",
];

/// The rows of the table: all runs of all jobs.
fn rows(jobs: &[Job], runs: &[Vec<Outcome>]) -> impl Iterator<Item = [String; 15]> {
    jobs.iter().zip(runs).flat_map(|(job, runs)| {
        runs.iter().enumerate().map(|(number, outcome)| {
            let counted = |value: fn(&Counts) -> f64| {
                outcome.counts.as_ref().map_or(String::new(), |it| format!("{:.0}", value(it)))
            };
            // A simulated processor tells no time.
            let timed =
                |value: String| if outcome.counts.is_none() { value } else { String::new() };
            [
                job.series.clone(),
                job.x.to_string(),
                job.arguments.clone(),
                number.to_string(),
                timed(format!("{:.6}", outcome.seconds)),
                outcome.steps.to_string(),
                timed(format!("{:.3}", outcome.rate())),
                timed(format!("{:.1}", outcome.uses.ranks)),
                timed(format!("{:.1}", outcome.uses.idle)),
                timed(format!("{:.1}", outcome.uses.uneven)),
                timed(format!("{:.1}", outcome.uses.own)),
                outcome.loads.of_ideal().map_or(String::new(), |it| format!("{:.1}", 100.0 * it)),
                counted(|it| it.instructions),
                counted(|it| it.first),
                counted(|it| it.second),
            ]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_a_line_that_the_program_takes() {
        use clap::Parser;
        for experiment in EXPERIMENTS {
            for job in (experiment.jobs)().iter().filter(|job| job.twin_processes.is_none()) {
                for arguments in
                    [Some(&job.arguments), job.counted_from.as_ref()].into_iter().flatten()
                {
                    let line = format!("rocket-mini {arguments} --history h");
                    let parsed = crate::Args::try_parse_from(line.split_whitespace());
                    assert!(parsed.is_ok(), "{line}");
                }
            }
        }
    }

    fn outcome(seconds: f64, result: &str) -> Outcome {
        let result = Some(result.to_owned());
        Outcome { seconds, steps: 1.0, result, ..Outcome::default() }
    }

    fn named(name: &str) -> &'static Experiment {
        EXPERIMENTS.iter().find(|it| it.name == name).unwrap()
    }

    #[test]
    fn the_best_run_is_shown_or_the_middle_one_of_a_comparison() {
        let runs = [3.0, 1.0, 2.0].map(|seconds| outcome(seconds, ""));
        assert_eq!(shown(named("crack"), &runs).unwrap().seconds, 1.0);
        assert_eq!(shown(named("tables"), &runs).unwrap().seconds, 2.0);
    }

    #[test]
    fn a_twin_that_finds_something_else_is_an_error() {
        let jobs: Vec<Job> = (named("tables").jobs)().into_iter().take(2).collect();
        assert!(jobs[0].twin_processes.is_none() && jobs[1].twin_processes.is_some());
        let same = vec![vec![outcome(1.0, "00ff")]; 2];
        assert!(compare(&jobs, &same).is_ok());
        let other = vec![vec![outcome(1.0, "00ff")], vec![outcome(1.0, "00fe")]];
        let error = compare(&jobs, &other).unwrap_err().to_string();
        assert!(error.contains("found 00ff and `flow 128 200` found 00fe"), "{error}");
        let none = vec![vec![Outcome { result: None, ..outcome(1.0, "") }]; 2];
        let error = compare(&jobs, &none).unwrap_err().to_string();
        assert!(error.contains("found no result and"), "{error}");
    }
}
