//! The program `uts`: searches a tree and checks its size.

mod costs_command;
mod csv_text;
mod experiment;
mod interruption;
mod options;
mod partial;
mod report;
mod simulate;
mod uts_text;

use clap::{CommandFactory, Parser};
use experiment::ExperimentError;
use interruption::Interruption;
use mpi::traits::*;
use options::{Command, Options, OptionsError};
use partial::Board;
use report::{Outcome, Report};
use simulate::SimulateError;
use std::{
    io::{IsTerminal, Write},
    ops::ControlFlow,
    process::ExitCode,
    time::{Duration, Instant},
};
use uts::{
    frontier::Counts,
    lanes::Kernel,
    named::{self, Published},
    parallel,
    plan::{Algorithm, Amount, Interval, Plan, Victims},
    sequential,
    statistics::{self, RankStatistics, Times},
    tree::Tree,
};
use uts_text::UtsText;
use vrt_cli::Machine;

/// The most hashes of a sequential search between two checks for an interruption: a few hundredths of a second.
const MOST_HASHES: u64 = 1 << 22;

/// Exit status when a tree has the wrong size.
const WRONG: u8 = 1;
/// Exit status when the command line is invalid.
const USAGE: u8 = 2;
/// Exit status of a search that stopped at its limit.
const LIMITED: u8 = 3;
/// Exit status of a job that was interrupted by Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    vrt_cli::print_if_asked(Options::command);
    // Before the search uses it.
    Machine::at_start();
    let options = Options::parse();
    match &options.command {
        Some(Command::Experiment(options)) => {
            let result = experiment::run(options);
            let usage = result.as_ref().is_err_and(ExperimentError::is_usage);
            return ended(result, usage);
        }
        Some(Command::Simulate(options)) => {
            let result = simulate::run(options);
            let usage = result.as_ref().is_err_and(SimulateError::is_usage);
            return ended(result, usage);
        }
        Some(Command::Costs(options)) => return costs_command::run(options),
        None => {}
    }
    let job = match Job::new(options.clone()) {
        Ok(job) => job,
        Err(error) => {
            eprintln!("uts: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if options.sequential {
        return job.run_sequentially();
    }
    // The tables of the tree are built before the PEs are forked, which so share them.
    let began = Instant::now();
    let (as_rank, board) = (job.clone(), job.board.clone());
    let status = mpi::launch(options.vrt.clone(), move || as_rank.run_as_rank(&board));
    if status == ExitCode::from(INTERRUPTED) {
        job.report_interrupted(began.elapsed().as_secs_f64());
    }
    status
}

/// Prints the error, if there was one.
fn ended<E: std::fmt::Display>(result: Result<(), E>, usage: bool) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("uts: {error}");
            if usage { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// The search to be done.
#[derive(Clone)]
struct Job {
    options: Options,
    tree: Tree,
    kernel: Kernel,
    plan: Plan,
    board: Board,
}

impl Job {
    fn new(options: Options) -> Result<Self, OptionsError> {
        let (tree, kernel) = (options.tree()?, options.kernel()?);
        let plan = options.plan()?;
        Ok(Self { tree, kernel, plan, options, board: Board::new() })
    }

    fn published(&self) -> Option<Published> {
        named::published(self.tree.parameters())
    }

    fn run_sequentially(&self) -> ExitCode {
        let mut progress = Progress::new(self.shows_progress());
        let interruption = Interruption::watch();
        let start = Instant::now();
        let interval = match self.plan.sharing.interval {
            Interval::Fixed(nodes) => nodes,
            Interval::Adaptive => Plan::default().sharing.interval.first(),
        };
        // So that an interruption does not wait for long.
        let interval = interval.min(MOST_HASHES / u64::from(self.tree.parameters().granularity));
        let counts = sequential::search(&self.tree, self.kernel, interval, |counts| {
            progress.show(counts);
            let enough = self.plan.limit.is_some_and(|it| counts.nodes >= it);
            if enough || interruption.came() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let working = start.elapsed().as_secs_f64();
        progress.clear();
        let times = Times { seconds: [working, 0.0, 0.0, 0.0], sessions: [1, 0, 0, 0] };
        let mine = RankStatistics { counts, times, ..RankStatistics::default() };
        // One that came behind the last node interrupts nothing.
        let interrupted = interruption.came() && counts.left > 0;
        self.report("one thread, no ranks".to_owned(), &[mine], 1, working, interrupted)
    }

    fn run_as_rank(&self, board: &Board) -> ExitCode {
        let Some(universe) = mpi::initialize() else {
            eprintln!("uts: the runtime was initialized before");
            return ExitCode::FAILURE;
        };
        let world = universe.world();
        let mut progress = Progress::new(world.rank() == 0 && self.shows_progress());
        // A rank's number is not negative.
        let mut note = board.note(world.rank() as usize);
        world.barrier();
        let start = mpi::time();
        let mine = parallel::search(&world, &self.tree, self.kernel, self.plan, |done| {
            progress.show(done.counts);
            note.write(done);
        });
        let seconds = mpi::time() - start;
        progress.clear();
        let Some(ranks) = statistics::gather(&world, &mine) else {
            return ExitCode::SUCCESS;
        };
        let pes = mpi::environment::pes() as u32;
        self.report(self.how(ranks.len(), pes), &ranks, pes, seconds, false)
    }

    /// Describes the search in a line.
    fn how(&self, ranks: usize, pes: u32) -> String {
        let Plan { algorithm, termination, sharing, limit } = self.plan;
        let mut how = format!("{ranks} ranks, {pes} PEs");
        if self.plan.algorithm != Algorithm::Steal || termination != Plan::default().termination {
            how += &format!(", {}, {}", algorithm.name(), termination.name());
        }
        how += &format!(", chunk {}, poll interval {}", sharing.chunk, sharing.interval);
        if algorithm == Algorithm::Steal {
            if sharing.victims == Victims::Lifelines {
                how += &format!(", tries {}", sharing.tries);
            } else {
                how += &format!(", victims {}", sharing.victims.name());
            }
            if sharing.amount != Amount::Half {
                how += &format!(", amount {}", sharing.amount.name());
            }
        }
        if let Some(nodes) = limit {
            how += &format!(", limit {nodes} nodes");
        }
        how
    }

    /// Prints what was found before the interruption.
    fn report_interrupted(&self, seconds: f64) {
        let vrt = &self.options.vrt;
        // The number of ranks is not negative, and fits.
        let Some(ranks) = self.board.read(vrt.ranks() as usize) else {
            eprintln!("uts: nothing was found before the interruption");
            return;
        };
        self.report(self.how(ranks.len(), vrt.pes()), &ranks, vrt.pes(), seconds, true);
    }

    fn report(
        &self,
        how: String,
        ranks: &[RankStatistics],
        pes: u32,
        seconds: f64,
        interrupted: bool,
    ) -> ExitCode {
        let (published, verbose) = (self.published(), self.options.verbose);
        let heading = vec![
            format!("tree {}", self.tree.parameters()),
            format!("{how}, kernel {}", self.kernel.name()),
            format!("machine {}", Machine::at_start()),
        ];
        let report = Report { heading, ranks, pes, seconds, published, verbose, interrupted };
        let (verdict, outcome) = report.verdict();
        let text = if self.options.csv {
            if outcome != Outcome::Right {
                eprintln!("uts: {verdict}");
            }
            match csv_text::table(ranks, seconds) {
                Ok(table) => table,
                Err(error) => {
                    eprintln!("uts: the table cannot be made: {error}");
                    return ExitCode::FAILURE;
                }
            }
        } else {
            let text = match self.options.uts_text {
                Some(verbosity) => {
                    let (parameters, plan) = (*self.tree.parameters(), self.plan);
                    UtsText { parameters, plan, ranks, seconds }.print(verbosity)
                }
                None => report.print(),
            };
            (text + &verdict + "\n").into_bytes()
        };
        if let Err(error) = std::io::stdout().lock().write_all(&text) {
            eprintln!("uts: the result cannot be written: {error}");
            return ExitCode::FAILURE;
        }
        match outcome {
            Outcome::Right => ExitCode::SUCCESS,
            Outcome::Wrong => ExitCode::from(WRONG),
            Outcome::Limited => ExitCode::from(LIMITED),
            Outcome::Interrupted => ExitCode::from(INTERRUPTED),
        }
    }

    fn shows_progress(&self) -> bool {
        !self.options.no_progress && std::io::stderr().is_terminal()
    }
}

/// A line on the terminal that is updated a few times a second.
struct Progress {
    shown: Option<Shown>,
}

struct Shown {
    start: Instant,
    last: Instant,
    any: bool,
}

impl Progress {
    const PERIOD: Duration = Duration::from_millis(300);

    fn new(show: bool) -> Self {
        let now = Instant::now();
        Self { shown: show.then_some(Shown { start: now, last: now, any: false }) }
    }

    fn show(&mut self, counts: Counts) {
        let Some(shown) = &mut self.shown else { return };
        if shown.last.elapsed() < Self::PERIOD {
            return;
        }
        shown.last = Instant::now();
        shown.any = true;
        let (millions, seconds) = (counts.nodes as f64 / 1e6, shown.start.elapsed().as_secs_f64());
        // A terminal that cannot be written to shows no progress.
        let _ = write!(
            std::io::stderr(),
            "\r{seconds:.1} s, {millions:.0} million nodes by this rank, {:.1} million/s\x1b[K",
            millions / seconds
        );
    }

    fn clear(&self) {
        if self.shown.as_ref().is_some_and(|shown| shown.any) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
