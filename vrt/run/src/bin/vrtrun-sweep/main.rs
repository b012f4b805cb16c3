//! `vrtrun sweep`: runs a program at several ratios of ranks to PEs, with several balancers, and reports which
//! combination is best and why.
//!
//! | file | subject |
//! |---|---|
//! | `options` | the command line, checked before anything runs |
//! | `job` | one run: a process, its time or metric, its lines that should agree, the runtime's report about PEs |
//! | `results` | medians and spreads of all runs, and the best one, in words |
//! | `files` | the results as CSV and JSON |
//! | `figure` | the results as a figure |
//!
//! Runs alternate: each configuration has its first run before any has its second, so that other load on the machine
//! affects all of them.

mod figure;
mod files;
mod job;
mod options;
mod results;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use job::{JobError, Run};
use options::{Configuration, Options, OptionsError, Plan};
use results::Results;
use vrt_cli::{Machine, Others, Progress};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("{0}: {1}")]
    Job(Configuration, #[source] JobError),
    #[error("the results differ, which should be the same:\n  {0}: {1}\n  {2}: {3}")]
    Differ(Configuration, String, Configuration, String),
    #[error("cannot write {0}: {1}")]
    Write(std::path::PathBuf, #[source] std::io::Error),
    #[error("cannot draw {0}: {1}")]
    Draw(std::path::PathBuf, String),
}

impl SweepError {
    fn status(&self) -> u8 {
        if matches!(self, SweepError::Options(_)) { 2 } else { 1 }
    }
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Options::command);
    let options = Options::parse();
    match options.plan().map_err(SweepError::from).and_then(|plan| sweep(&plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vrtrun sweep: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn sweep(plan: &Plan) -> Result<(), SweepError> {
    if let Some(note) = Others::now().and_then(|others| others.note()) {
        eprintln!("vrtrun sweep: note: {note}");
    }
    let others = Others::watch();
    let mut results = Results::new(&plan.configurations);
    let all = plan.configurations.len() * plan.repeat;
    let mut first: Vec<(Configuration, String)> = Vec::new();
    let mut progress = Progress::new(true);
    for number in 0..all {
        let configuration = &plan.configurations[number % plan.configurations.len()];
        progress.show(|| format!("[{}/{all}] {configuration}", number + 1));
        let run = job::run(plan, configuration)
            .map_err(|error| SweepError::Job(configuration.clone(), error))?;
        compare(plan, configuration, &run, &mut first)?;
        results.add(number % plan.configurations.len(), run);
        // What was measured is kept, whatever becomes of the other runs.
        files::write(plan, &results)?;
    }
    progress.clear();
    let figure = plan.out.join("sweep.svg");
    figure::write(plan, &results, &figure)
        .map_err(|error| SweepError::Draw(figure, error.to_string()))?;
    print!("{}", results.text(plan));
    println!("machine        {}", Machine::at_start());
    if let Some(note) = others.and_then(|others| others.note()) {
        println!("note           {note}");
    }
    println!("files          {}: sweep.csv, sweep.json, sweep.svg", plan.out.display());
    Ok(())
}

/// Checks that runs that should agree do. With `--weak`, these are the runs that do the same work.
fn compare(
    plan: &Plan,
    configuration: &Configuration,
    run: &Run,
    first: &mut Vec<(Configuration, String)>,
) -> Result<(), SweepError> {
    if plan.same.is_empty() {
        return Ok(());
    }
    let of = |it: &&(Configuration, String)| !plan.weak || it.0.ranks == configuration.ranks;
    match first.iter().find(of) {
        None => first.push((configuration.clone(), run.same.clone())),
        Some((other, text)) if *text != run.same => {
            return Err(SweepError::Differ(
                other.clone(),
                text.clone(),
                configuration.clone(),
                run.same.clone(),
            ));
        }
        Some(_) => {}
    }
    Ok(())
}
