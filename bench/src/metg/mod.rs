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

use experiments::statistics::Spread;
use experiments::{Folder, Progress, rounds, run_in_turn};

use crate::Error;
use crate::process::own_directory;
use crate::programs::metg::{Graph, MOST_COLUMNS, Pattern, whole_pairs};
use curve::{Run, Scale};
use system::{Measurement, System};

/// The options of `scripts/bench metg`.
#[derive(Clone, Debug, clap::Args)]
#[command(
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
    pub no_open_mpi: bool,

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
            seconds: Spread::of(self.rounds.iter().map(|runs| runs[at].seconds))
                .map_or(f64::NAN, |it| it.median),
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
    let c_programs = args.c_programs.clone().unwrap_or_else(|| own_directory().join("bench-c"));
    let c_program = c_programs.join("metg");
    // What cannot be written should not be measured first.
    let folder = Folder::create(&args.out)?;
    let patterns = Pattern::ALL.into_iter().filter(|it| args.pattern.contains(it));
    let systems = System::all(!args.no_open_mpi);
    let jobs: Vec<(Pattern, System)> =
        patterns.flat_map(|pattern| systems.iter().map(move |system| (pattern, *system))).collect();
    let order = rounds(jobs.len(), args.rounds() as usize);
    let title = |(pattern, system): &(Pattern, System)| {
        format!("{}, {}", pattern.name(), system.title(args.ranks_per_pe))
    };
    let run = |(pattern, system): &(Pattern, System)| {
        let graph = args.graph(*system, *pattern);
        system.run(args, &c_program, graph, args.iterations())
    };
    let runs = run_in_turn(&jobs, order, &mut Progress::new(true), title, run)?;
    let series = |((pattern, system), runs): ((Pattern, System), Vec<Measurement>)| {
        let tasks = args.graph(system, pattern).tasks() as f64;
        Series {
            pattern,
            system,
            scale: Scale { cores: f64::from(args.pes()), tasks },
            moved: runs.iter().map(|it| it.moved).sum(),
            rounds: runs.into_iter().map(|it| it.runs).collect(),
        }
    };
    let all: Vec<Series> = jobs.into_iter().zip(runs).map(series).collect();
    report::write(args, folder, &all)
}
