//! The program `uts`: searches a tree and checks its size.

mod options;
mod report;

use clap::Parser;
use mpi::traits::*;
use options::{Options, OptionsError};
use report::Report;
use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};
use uts::{
    frontier::Counts,
    lanes::Kernel,
    named::{self, Published},
    parallel, sequential,
    statistics::{self, RankStatistics},
    tree::Tree,
};

/// Exit status when a tree has the wrong size.
const WRONG: u8 = 1;
/// Exit status when the command line makes no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let options = Options::parse();
    let job = match Job::new(options.clone()) {
        Ok(job) => job,
        Err(error) => {
            eprintln!("uts: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if job.tree.parameters().may_be_endless() && job.published().is_none() {
        eprintln!("uts: q m is 1 or more: this tree may have no end");
    }
    if options.sequential {
        return job.run_sequentially();
    }
    // The tables of the tree are built before the PEs are forked, which so share them.
    mpi::launch(options.vrt, move || job.run_as_rank())
}

/// What is to be done.
struct Job {
    options: Options,
    tree: Tree,
    kernel: Kernel,
}

impl Job {
    fn new(options: Options) -> Result<Self, OptionsError> {
        Ok(Self { tree: options.tree()?, kernel: options.kernel()?, options })
    }

    fn published(&self) -> Option<Published> {
        named::published(self.tree.parameters())
    }

    fn run_sequentially(&self) -> ExitCode {
        let mut progress = Progress::new(self.shows_progress());
        let start = Instant::now();
        let interval = self.options.sharing().poll_interval;
        let counts =
            sequential::search(&self.tree, self.kernel, interval, |counts| progress.show(counts));
        let working = start.elapsed().as_secs_f64();
        progress.clear();
        let mine = RankStatistics { counts, working, ..RankStatistics::default() };
        self.report("one thread, no ranks".to_owned(), &[mine], 1, working)
    }

    fn run_as_rank(&self) -> ExitCode {
        let Some(universe) = mpi::initialize() else {
            eprintln!("uts: the runtime was initialized before");
            return ExitCode::FAILURE;
        };
        let world = universe.world();
        let mut progress = Progress::new(world.rank() == 0 && self.shows_progress());
        let sharing = self.options.sharing();
        world.barrier();
        let start = mpi::time();
        let mine = parallel::search(&world, &self.tree, self.kernel, sharing, |counts| {
            progress.show(counts);
        });
        let seconds = mpi::time() - start;
        progress.clear();
        let Some(ranks) = statistics::gather(&world, &mine) else {
            return ExitCode::SUCCESS;
        };
        let pes = mpi::environment::pes() as u32;
        let how = format!(
            "{} ranks, {pes} PEs, chunk {}, poll interval {}, tries {}",
            ranks.len(),
            sharing.chunk,
            sharing.poll_interval,
            sharing.tries
        );
        self.report(how, &ranks, pes, seconds)
    }

    fn report(&self, how: String, ranks: &[RankStatistics], pes: u32, seconds: f64) -> ExitCode {
        let published = self.published();
        let heading = vec![
            format!("tree {}", self.tree.parameters()),
            format!("{how}, kernel {}", self.kernel.name()),
        ];
        let verbose = self.options.verbose;
        let report = Report { heading, ranks, pes, seconds, published, verbose };
        let (text, ok) = report.print();
        if let Err(error) = std::io::stdout().lock().write_all(text.as_bytes()) {
            eprintln!("uts: the result cannot be written: {error}");
            return ExitCode::FAILURE;
        }
        if ok { ExitCode::SUCCESS } else { ExitCode::from(WRONG) }
    }

    fn shows_progress(&self) -> bool {
        !self.options.no_progress && std::io::stderr().is_terminal()
    }
}

/// A line on the terminal that is written anew a few times a second.
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
