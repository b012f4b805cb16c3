//! What vrt does, in a minute: an uneven Jacobi relaxation without and with load balancing, and
//! Unbalanced Tree Search while its ranks are moved at random. A table says what it gained; a page
//! of HTML shows what every PE did, and when.
//!
//! Each run is a job of its own: this program starts itself again with `--stage`, and the rank 0
//! of that job prints one line of JSON.

mod report;
mod stage;
mod timeline;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};

use stage::{Outcome, Stage};
use timeline::Timeline;

/// Runs the same programs without and with load balancing, and shows what it gains.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Where to write the report
    #[arg(long, value_name = "FILE", default_value = "vrt-demo.html")]
    report: PathBuf,
    /// Run one of the jobs instead; the demo does that
    #[arg(long, hide = true)]
    stage: Option<Stage>,
    #[command(flatten)]
    vrt: mpi::Config,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A job failed; it has said why.
    #[error("the job `{0}` failed ({1})")]
    Job(&'static str, std::process::ExitStatus),
    /// A job printed something else than its outcome.
    #[error("the job `{0}` printed {1:?}")]
    Outcome(&'static str, String),
    /// The recorded loads cannot be read.
    #[error(transparent)]
    Loads(#[from] lb_strategies::datafile::DataFileError),
}

/// A run of the demo.
pub(crate) struct Run {
    pub(crate) job: &'static Job,
    pub(crate) outcome: Outcome,
    pub(crate) timeline: Timeline,
}

/// A job of the demo.
#[derive(Debug)]
pub(crate) struct Job {
    stage: Stage,
    /// A few words for table and report.
    pub(crate) title: &'static str,
    /// What is to be seen in it.
    pub(crate) about: &'static str,
    /// Options of vrt.
    options: &'static [&'static str],
}

const JACOBI: &str = "Jacobi, a quarter of the cells 8 times as costly";

const JOBS: [Job; 4] = [
    Job {
        stage: Stage::Jacobi,
        title: "Jacobi, uneven, as it is",
        about: JACOBI,
        options: &["--lb", "null", "--lb-period", "50ms"],
    },
    Job {
        stage: Stage::Jacobi,
        title: "Jacobi, uneven, balanced",
        about: "The same program, not changed by a line: greedy-refine every 50 ms",
        options: &["--lb", "greedy-refine", "--lb-period", "50ms"],
    },
    Job {
        stage: Stage::Uts,
        title: "UTS T1, ranks stay",
        about: "Tree search by work stealing; 4,130,071 nodes to find",
        options: &["--lb", "null", "--lb-period", "20ms"],
    },
    Job {
        stage: Stage::Uts,
        title: "UTS T1, ranks wander",
        about: "The same, while ranks are moved to PEs by lot every millisecond",
        options: &["--lb", "random", "--lb-period", "1ms"],
    },
];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(stage) = arguments.stage {
        return mpi::launch(arguments.vrt, move || stage::run(stage));
    }
    match demonstrate(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn demonstrate(arguments: &Arguments) -> Result<(), DemoError> {
    let pes = arguments.vrt.pes();
    println!("{pes} PEs, {} ranks on each; this takes about half a minute", ranks(pes) / pes);
    let mut runs = Vec::new();
    for job in &JOBS {
        println!("- {}: {}", job.title, job.about);
        runs.push(run(job, arguments)?);
    }
    println!("{}", table(&runs));
    let page = report::page(&runs, pes, ranks(pes));
    let shown = arguments.report.display();
    std::fs::write(&arguments.report, page).map_err(|source| DemoError::System {
        what: format!("write the report to {shown}"),
        source,
    })?;
    println!("what each PE did, and when: {shown}");
    let same = runs.chunks(2).all(|pair| pair[0].outcome.result == pair[1].outcome.result);
    if same { Ok(()) } else { Err(DemoError::Outcome("a run", "another result".to_owned())) }
}

fn ranks(pes: u32) -> u32 {
    16 * pes
}

/// Runs a job and reads what it recorded.
fn run(job: &'static Job, arguments: &Arguments) -> Result<Run, DemoError> {
    let system = |what: &str| {
        let what = what.to_owned();
        move |source| DemoError::System { what, source }
    };
    let program = std::env::current_exe().map_err(system("find this program"))?;
    let folder = tempfile::tempdir().map_err(system("make a folder for recorded loads"))?;
    let loads = folder.path().join("loads");
    let pes = arguments.vrt.pes();
    let output = Command::new(program)
        .envs(arguments.vrt.to_env())
        .args(["--stage", job.stage.name()])
        .args(["--pes", &pes.to_string(), "--ranks", &ranks(pes).to_string()])
        .args(job.options)
        .arg("--lb-dump")
        .arg(&loads)
        .stderr(std::process::Stdio::piped())
        .output()
        .map_err(system("start a job"))?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        return Err(DemoError::Job(job.title, output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let outcome =
        serde_json::from_str(&text).map_err(|_| DemoError::Outcome(job.title, text.clone()))?;
    Ok(Run { job, outcome, timeline: Timeline::read(&loads, pes as usize)? })
}

fn table(runs: &[Run]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["run", "time", "gained", "PEs busy", "moves", "result"]);
    for (number, run) in runs.iter().enumerate() {
        let before = &runs[number / 2 * 2];
        let gained = match number % 2 {
            0 => String::new(),
            _ => format!("{:.2}x", before.outcome.seconds / run.outcome.seconds),
        };
        let same = run.outcome.result == before.outcome.result;
        table.add_row([
            run.job.title.to_owned(),
            format!("{:.2} s", run.outcome.seconds),
            gained,
            format!("{:.0}%", 100.0 * run.timeline.busy()),
            run.timeline.moves().to_string(),
            format!("{}{}", run.outcome.result, if same { "" } else { " DIFFERENT" }),
        ]);
    }
    for column in 1..5 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
