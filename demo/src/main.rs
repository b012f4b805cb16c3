//! Shows what vrt does, in a minute: an uneven Jacobi relaxation without and with load balancing, Unbalanced Tree
//! Search while its ranks are moved at random, and the relaxation at several ratios of ranks to PEs. Tables show what
//! was gained; HTML pages show what every PE and rank did, and when.
//!
//! | file | subject |
//! |---|---|
//! | `main` | the runs, and the report about them |
//! | `stage` | the jobs: what their ranks run |
//! | `run` | runs a job, and reads its trace |
//! | `sweep` | ratios of ranks to PEs |
//! | `report` | the page |
//!
//! Each run is a separate job: this program starts itself again with `--stage`, and rank 0 of that job prints one line
//! of JSON.

mod report;
mod run;
mod stage;
mod sweep;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};

use run::{Finished, Job};
use stage::{Search, Stage};
use vrt_cli::{Machine, Others};

/// Runs the same programs without and with load balancing, and at several ratios of ranks to PEs, and shows the gain.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Where to write the report; its other pages are written beside it
    #[arg(long, value_name = "FILE", default_value = "vrt-demo.html")]
    report: PathBuf,
    /// Run one of the jobs instead; used by the demo itself
    #[arg(long, hide = true)]
    stage: Option<Stage>,
    /// The tree and how often it is searched, or the iterations, of that job
    #[arg(long, hide = true, default_value = "T1:1")]
    search: Search,
    #[arg(long, hide = true, default_value_t = 1000)]
    iterations: usize,
    #[command(flatten)]
    vrt: mpi::Config,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A job failed; it has reported why.
    #[error("the job `{0}` failed ({1})")]
    Job(String, std::process::ExitStatus),
    /// A job printed something other than its outcome.
    #[error("the job `{0}` printed {1:?}")]
    Outcome(String, String),
    /// Two runs of the same problem gave different results.
    #[error("`{0}`: the results differ, which should be the same: {1}; {2}")]
    Differ(String, String, String),
    /// The trace of a job cannot be read.
    #[error(transparent)]
    Trace(#[from] vrt_trace::read::ReadError),
}

impl DemoError {
    /// A system error.
    fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> DemoError {
        let what = what.into();
        move |source| DemoError::System { what, source }
    }
}

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Arguments::command);
    let arguments = Arguments::parse();
    if let Some(stage) = arguments.stage {
        let Arguments { search, iterations, vrt, .. } = arguments;
        return mpi::launch(vrt, move || stage::run(stage, &search, iterations));
    }
    match demonstrate(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Ranks per PE, except in the sweep.
const RATIO: u32 = 16;

fn demonstrate(arguments: &Arguments) -> Result<(), DemoError> {
    let pes = arguments.vrt.pes();
    println!("{}", Machine::at_start());
    if let Some(note) = Others::now().and_then(|others| others.note()) {
        println!("note: {note}");
    }
    let others = Others::watch();
    println!("{pes} PEs, {RATIO} ranks on each; this takes about half a minute");
    let mut runs = Vec::new();
    let pilot = |words: &[String]| run::pilot(words, arguments);
    let iterations = stage::iterations_for_this_machine(pilot)?;
    for (title, name, about, options) in [
        (
            "Jacobi, uneven, as it is",
            "jacobi-as-it-is",
            "A quarter of the cells are 8 times as costly",
            &[][..],
        ),
        (
            "Jacobi, uneven, balanced",
            "jacobi-balanced",
            "The same program, not changed by a line: greedy-refine every 50 ms",
            &["--lb", "greedy-refine", "--lb-period", "50ms"],
        ),
    ] {
        let job = Job {
            title,
            name,
            about: about.to_owned(),
            arguments: stage::relaxation(iterations),
            options,
        };
        runs.push(announced(job, arguments)?);
    }
    let search = Search::for_this_machine(pilot)?;
    for (title, name, about, options) in [
        (
            "UTS, ranks stay",
            "uts-stay",
            format!("Tree search by work stealing: {}", search.about()),
            &[][..],
        ),
        (
            "UTS, ranks wander",
            "uts-wander",
            "The same, while ranks are moved to PEs by lot every millisecond".to_owned(),
            &["--lb", "random", "--lb-period", "1ms"],
        ),
    ] {
        let job = Job { title, name, about, arguments: search.words(), options };
        runs.push(announced(job, arguments)?);
    }
    for pair in runs.chunks(2) {
        if let [a, b] = pair {
            a.agrees_with(b)?;
        }
    }
    println!("{}", table(&runs));
    println!("- Jacobi, uneven, balanced, at {} ratios of ranks to PEs", sweep::RATIOS.len());
    let sweep = sweep::run(iterations, arguments)?;
    println!("{}\n{}", sweep.table(), sweep.best());
    if let Some(note) = others.and_then(|others| others.note()) {
        println!("note: {note}");
    }
    report::write(&arguments.report, &runs, &sweep, pes)?;
    println!("what each PE and rank did, and when: {}", arguments.report.display());
    Ok(())
}

fn announced(job: Job, arguments: &Arguments) -> Result<Finished, DemoError> {
    println!("- {}: {}", job.title, job.about);
    run::run(job, RATIO, arguments)
}

/// A table with numbers in these columns.
fn new_table(heads: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(heads.iter().copied());
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// How much faster a run was than the previous one, the same without balancing.
fn gained(runs: &[Finished], number: usize) -> Option<f64> {
    (number % 2 == 1).then(|| runs[number - 1].outcome.seconds / runs[number].outcome.seconds)
}

fn table(runs: &[Finished]) -> Table {
    let mut table = new_table(&["run", "time", "gained", "PEs busy", "moves", "result"], 1..5);
    for (number, run) in runs.iter().enumerate() {
        table.add_row([
            run.job.title.to_owned(),
            format!("{:.2} s", run.outcome.seconds),
            gained(runs, number).map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
            format!("{:.0}%", 100.0 * run.busy()),
            run.statistics.moves.to_string(),
            run.outcome.result.clone(),
        ]);
    }
    table
}
