//! `rocket-mini experiment`: the figures of the paper, made here.
//!
//! A figure shows the best run of each, as disturbances only slow it down.

mod catalog;
mod run;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use catalog::{EXPERIMENTS, Experiment, Job, Shape};
use experiments::{Axis, Folder, Labels, Series};
use run::{Disturbance, Outcome};

use crate::progress::Progress;

/// Make figures of the paper: for each a CSV table, an SVG figure and a paragraph, which report.md
/// collects.
///
/// Every job is a run of this program that its paragraph or table names. The exit status is 1 when a
/// job fails or a file cannot be written, and 2 when there is no such experiment.
#[derive(clap::Args)]
pub struct ExperimentArgs {
    /// Which: all, or crack, rocket, external, ratios, styles
    #[arg(value_name = "NAME")]
    name: String,

    /// The folder to write to; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// How often each job is run
    #[arg(long, value_name = "TIMES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,

    /// Show no progress, also on a terminal
    #[arg(long)]
    no_progress: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
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
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] experiments::WriteError),
}

/// Runs what is asked for, and prints its paragraphs.
pub fn run(args: &ExperimentArgs) -> ExitCode {
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
    let mut progress = Progress::new(!args.no_progress, None);
    for experiment in chosen {
        let jobs = (experiment.jobs)();
        let runs = measure(experiment, &jobs, args, &mut progress)?;
        folder.write_table(experiment.name, &COLUMNS, rows(&jobs, &runs))?;
        let best: Vec<&Outcome> = runs.iter().filter_map(|runs| best(runs)).collect();
        let lines = lines(experiment, &jobs, &best);
        let is_course = experiment.shape == Shape::Course;
        let axis = if is_course { Axis::FromZero } else { Axis::Listed };
        folder.draw(experiment.name, &labels(experiment), &lines, axis)?;
        folder.add_paragraph(&paragraph(experiment, &jobs, &best, &lines));
    }
    Ok(folder.write_report()?)
}

/// The outcomes of each job.
fn measure(
    experiment: &Experiment,
    jobs: &[Job],
    args: &ExperimentArgs,
    progress: &mut Progress,
) -> Result<Vec<Vec<Outcome>>, ExperimentError> {
    let mut runs: Vec<Vec<Outcome>> = vec![Vec::new(); jobs.len()];
    let mut disturbance: Disturbance = None;
    if let Some(first) = jobs.iter().find(|job| job.is_disturbed) {
        let quiet = run::run(first, &args.out, None)?.seconds;
        disturbance = Some((0.25 * quiet, 0.25 * quiet));
    }
    let places: Vec<f64> = jobs.iter().map(|job| job.x).collect();
    let all = jobs.len() * args.repeat as usize;
    for (number, at) in experiments::rounds(&places, args.repeat as usize).enumerate() {
        progress.show(|| format!("{}: run {} of {all}", experiment.name, number + 1));
        let disturbance = disturbance.filter(|_| jobs[at].is_disturbed);
        runs[at].push(run::run(&jobs[at], &args.out, disturbance)?);
    }
    progress.clear();
    Ok(runs)
}

fn best(runs: &[Outcome]) -> Option<&Outcome> {
    runs.iter().max_by(|a, b| a.rate().total_cmp(&b.rate()))
}

/// What stands above the columns of a table.
const COLUMNS: [&str; 8] =
    ["series", "x", "arguments", "run", "seconds", "steps", "rate", "idle_percent"];

/// The rows of the table: all runs of all jobs.
fn rows(jobs: &[Job], runs: &[Vec<Outcome>]) -> impl Iterator<Item = [String; 8]> {
    jobs.iter().zip(runs).flat_map(|(job, runs)| {
        runs.iter().enumerate().map(|(number, outcome)| {
            [
                job.series.clone(),
                job.x.to_string(),
                job.arguments.clone(),
                number.to_string(),
                format!("{:.6}", outcome.seconds),
                outcome.steps.to_string(),
                format!("{:.3}", outcome.rate()),
                format!("{:.1}", outcome.idle),
            ]
        })
    })
}

fn labels(experiment: &Experiment) -> Labels<'static> {
    let (x, y) = match experiment.shape {
        Shape::Points { axis, is_relative: true } => (axis, "rate, relative to the first"),
        Shape::Points { axis, is_relative: false } => (axis, "iterations/s"),
        Shape::Course => ("seconds", "steps/s"),
    };
    Labels { title: experiment.title, x, y }
}

/// How many rates a line has that shows a course.
const PARTS: usize = 40;

fn lines(experiment: &Experiment, jobs: &[Job], best: &[&Outcome]) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for (job, outcome) in jobs.iter().zip(best) {
        if experiment.shape == Shape::Course {
            lines.push((job.series.clone(), outcome.rates(PARTS)));
            continue;
        }
        let point = (job.x, outcome.rate());
        match lines.iter_mut().find(|line| line.0 == job.series) {
            Some((_, points)) => points.push(point),
            None => lines.push((job.series.clone(), vec![point])),
        }
    }
    if let Shape::Points { is_relative: true, .. } = experiment.shape {
        for (_, points) in &mut lines {
            let first = points[0].1;
            points.iter_mut().for_each(|point| point.1 /= first);
        }
    }
    lines
}

/// The experiment in words: what was known, what was found.
fn paragraph(experiment: &Experiment, jobs: &[Job], best: &[&Outcome], lines: &[Series]) -> String {
    let Experiment { name, title, question, .. } = experiment;
    let mut text = format!("## {title}\n\n{question}\n\n![{title}]({name}.svg)\n\n");
    // Writing to a string cannot fail.
    if experiment.shape == Shape::Course {
        text += "| | steps/s, mean | in the first quarter | in the last | idle | command line |\n";
        text += "|---|---|---|---|---|---|\n";
        for ((job, outcome), (series, points)) in jobs.iter().zip(best).zip(lines) {
            let quarter = PARTS / 4;
            let mean = |points: &[(f64, f64)]| {
                points.iter().map(|it| it.1).sum::<f64>() / points.len().max(1) as f64
            };
            let _ = writeln!(
                text,
                "| {series} | {:.1} | {:.1} | {:.1} | {:.1}% | `{}` |",
                outcome.rate(),
                mean(&points[..quarter.min(points.len())]),
                mean(&points[points.len().saturating_sub(quarter)..]),
                outcome.idle,
                job.arguments
            );
        }
        if let [still, balanced, ..] = best {
            let gain = balanced.rate() / still.rate();
            let _ = writeln!(
                text,
                "\nBalancing makes it {gain:.2} times as fast; without idle time the balanced run would \
                 take {:.0}% of its time.",
                100.0 - balanced.idle
            );
        }
        return text;
    }
    text += "| | highest at | idle there | lowest at | idle there | highest / lowest |\n";
    text += "|---|---|---|---|---|---|\n";
    for (series, points) in lines {
        let idle = |x: f64| {
            let at = jobs.iter().position(|job| job.series == *series && job.x == x);
            at.map_or(f64::NAN, |at| best[at].idle)
        };
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let ends = points.iter().max_by(by_value).zip(points.iter().min_by(by_value));
        let Some((most, least)) = ends else { continue };
        let _ = writeln!(
            text,
            "| {series} | {:.2} at {} | {:.1}% | {:.2} at {} | {:.1}% | {:.2} |",
            most.1,
            most.0,
            idle(most.0),
            least.1,
            least.0,
            idle(least.0),
            most.1 / least.1
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_a_line_that_the_program_takes() {
        use clap::Parser;
        for experiment in EXPERIMENTS {
            for job in (experiment.jobs)() {
                let line = format!("rocket-mini {} --history h", job.arguments);
                let parsed = crate::Args::try_parse_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn points_are_relative_to_the_first_and_paragraphs_have_the_extremes() {
        let outcome =
            |seconds: f64, idle: f64| Outcome { seconds, steps: 10.0, idle, course: vec![] };
        let experiment = EXPERIMENTS.iter().find(|it| it.name == "ratios").unwrap();
        let jobs: Vec<Job> = (experiment.jobs)().into_iter().take(3).collect();
        let outcomes = [outcome(1.0, 5.0), outcome(0.5, 1.0), outcome(4.0, 60.0)];
        let best: Vec<&Outcome> = outcomes.iter().collect();
        let lines = lines(experiment, &jobs, &best);
        assert_eq!(lines[0].1, [(1.0, 1.0), (2.0, 2.0), (4.0, 0.25)]);
        let text = paragraph(experiment, &jobs, &best, &lines);
        assert!(text.contains("| flow | 2.00 at 2 | 1.0% | 0.25 at 4 | 60.0% | 8.00 |"), "{text}");
    }
}
