//! `scripts/bench metg`: how small may tasks be so that the cores still do half of what they can?
//!
//! METG(50%), the minimum effective task granularity, is Task Bench's measure (Slaughter et al., SC'20): the smallest
//! core time per task with which a run does at least half of the operations per second that it does with large tasks.
//!
//! | file | subject |
//! |---|---|
//! | `system` | the systems that run a graph, and their measurements |
//! | `curve` | efficiency over granularity, and where it falls below one half |
//! | `report` | the figures, the report, and the numbers as JSON |

mod curve;
mod report;
mod system;

use std::path::PathBuf;
use std::time::Instant;

use thiserror::Error;

use crate::measure::median;
use crate::programs::metg::{Graph, MOST_COLUMNS, Pattern, whole_pairs};
use crate::table::own_directory;
use curve::{Run, Scale};
use system::{Programs, System};

/// The options of `scripts/bench metg`.
#[derive(Clone, Debug, clap::Parser)]
#[command(
    name = "scripts/bench metg",
    bin_name = "scripts/bench metg",
    version,
    about = "Find the smallest tasks that pay: METG(50%) of vrt and of Open MPI",
    long_about = "Find the smallest tasks that pay: METG(50%) of vrt and of Open MPI.\n\n\
        Runs graphs of tasks on vrt (1 rank per PE, many, and many that are moved) and on Open MPI in turn, from large \
        tasks to small ones. Writes a figure of each pattern, report.md and metg.json."
)]
pub struct Args {
    /// The patterns of the graphs, separated by commas
    #[arg(
        long,
        value_name = "PATTERNS",
        value_delimiter = ',',
        default_value = "stencil,fft,sweep,tree"
    )]
    pattern: Vec<Pattern>,

    /// Runs of each system; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = vrt_cli::positive::<u32>)]
    rounds: u32,

    /// One round with fewer sizes and timesteps: rough results in half a minute
    #[arg(long, conflicts_with_all = ["rounds", "steps"])]
    quick: bool,

    /// Where to write the figures and the report
    #[arg(long, value_name = "FOLDER", default_value = "metg-results")]
    out: PathBuf,

    /// PEs, and processes of Open MPI [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pes: Option<u32>,

    /// Ranks per PE, for systems with many
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=MOST_COLUMNS as i64))]
    ranks_per_pe: u32,

    /// Timesteps
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = vrt_cli::positive::<u32>)]
    steps: u32,

    /// Bytes that a task passes on to each task that needs it, a multiple of 16
    #[arg(long, value_name = "COUNT", default_value = "16", value_parser = whole_pairs)]
    bytes: u32,

    /// The strategy that moves ranks
    #[arg(long, value_name = "NAME", default_value = "greedy", value_parser = strategy)]
    lb: String,

    /// Milliseconds between two steps that move ranks
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = vrt_cli::positive::<u32>)]
    period: u32,

    /// Run only vrt
    #[arg(long)]
    no_open_mpi: bool,

    /// Where the C programs for Open MPI are [default: bench-c beside the Rust programs]
    #[arg(long, value_name = "DIRECTORY")]
    c_programs: Option<PathBuf>,
}

/// Iterations of a task's kernel, large tasks first; denser where curves are expected to fall below one half.
const ITERATIONS: [u32; 16] =
    [8192, 4096, 2048, 1024, 512, 384, 256, 192, 128, 96, 64, 48, 32, 16, 8, 1];
/// The same if time is short.
const FEW_ITERATIONS: [u32; 7] = [4096, 1024, 256, 128, 64, 32, 8];
const FEW_STEPS: u32 = 300;

/// The name of an existing strategy.
fn strategy(name: &str) -> Result<String, String> {
    lb_strategies::find(name).map(|_| name.to_owned()).map_err(|error| error.to_string())
}

impl Args {
    /// PEs and cores.
    fn pes(&self) -> u32 {
        let cores = || std::thread::available_parallelism().map_or(1, |it| it.get() as u32);
        self.pes.unwrap_or_else(cores)
    }

    fn rounds(&self) -> u32 {
        if self.quick { 1 } else { self.rounds }
    }

    fn steps(&self) -> u32 {
        if self.quick { FEW_STEPS } else { self.steps }
    }

    fn iterations(&self) -> &'static [u32] {
        if self.quick { &FEW_ITERATIONS } else { &ITERATIONS }
    }

    fn graph(&self, system: System, pattern: Pattern) -> Graph {
        let width = (self.pes() * system.columns(self.ranks_per_pe)) as usize;
        Graph { pattern, width, steps: self.steps() as usize }
    }
}

/// Why there is no report.
#[derive(Debug, Error)]
pub enum Error {
    /// A program has failed.
    #[error(transparent)]
    Program(#[from] crate::table::Error),
    /// A program did not execute the tasks of the graph.
    #[error("{command}: the checksum is {found}, and that of the graph {expected}")]
    Checksum {
        /// The command line.
        command: String,
        /// The checksum that the program printed.
        found: String,
        /// The checksum of the graph.
        expected: String,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] experiments::WriteError),
    /// The file of numbers cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    Numbers {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
}

/// All runs of a system with a pattern.
struct Series {
    pattern: Pattern,
    system: System,
    scale: Scale,
    rounds: Vec<Vec<Run>>,
    /// Number of ranks moved in all of them.
    moved: u64,
}

impl Series {
    /// The medians of all rounds.
    fn medians(&self) -> Vec<Run> {
        let sizes = self.rounds.first().map_or(0, Vec::len);
        let median_of = |at: usize| Run {
            seconds: median(self.rounds.iter().map(|runs| runs[at].seconds).collect()),
            ..self.rounds[0][at]
        };
        (0..sizes).map(median_of).collect()
    }

    /// The rate per core with the largest tasks.
    fn rate_of_largest(&self) -> f64 {
        self.medians().first().map_or(0.0, |run| self.scale.rate(*run))
    }
}

/// Runs everything alternately and writes the report.
///
/// # Errors
///
/// If a program fails, or a file cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    let directory = own_directory()?;
    let c_programs = args.c_programs.clone().unwrap_or_else(|| directory.join("bench-c"));
    let programs =
        Programs { vrt_bench: directory.join("vrt-bench"), c_program: c_programs.join("metg") };
    // What cannot be written should not be measured first.
    let folder = experiments::Folder::create(&args.out)?;
    let mut patterns = args.pattern.clone();
    patterns.sort_by_key(|it| Pattern::ALL.iter().position(|other| other == it));
    patterns.dedup();
    let systems = System::all(!args.no_open_mpi);
    let mut all: Vec<Series> = (patterns.iter())
        .flat_map(|&pattern| systems.iter().map(move |&system| (pattern, system)))
        .map(|(pattern, system)| {
            let tasks = args.graph(system, pattern).tasks() as f64;
            let scale = Scale { cores: f64::from(args.pes()), tasks };
            Series { pattern, system, scale, rounds: Vec::new(), moved: 0 }
        })
        .collect();
    let jobs_of_round = all.len();
    let (begin, jobs) = (Instant::now(), jobs_of_round * args.rounds() as usize);
    for round in 0..args.rounds() as usize {
        for (at, series) in all.iter_mut().enumerate() {
            let (pattern, system) = (series.pattern, series.system);
            eprintln!(
                "{}/{jobs} after {:.0} s: {}, {}",
                round * jobs_of_round + at + 1,
                begin.elapsed().as_secs_f64(),
                pattern.name(),
                system.title(args.ranks_per_pe)
            );
            let graph = args.graph(system, pattern);
            let measured = programs.run(args, system, graph, args.iterations())?;
            series.rounds.push(measured.runs);
            series.moved += measured.moved;
        }
    }
    report::write(args, folder, &all)
}
