//! The jobs: what their ranks run, and what rank 0 reports.

use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;

use mpi::collective::SystemOperation;
use mpi::traits::*;
use rocket_mini::jacobi::{Costly, Cut, Problem, Settings, solve};
use serde::{Deserialize, Serialize};
use uts::{lanes::Kernel, named, parallel, plan::Plan, tree::Tree};

/// What a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stage {
    Jacobi,
    Uts,
}

/// A tree, and how often it is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    tree: String,
    times: u64,
}

/// The intended length of a search in seconds.
const LONG: f64 = 3.0;

impl Search {
    /// A search of a few seconds on this machine: the large tree as often as needed, or a small one if the large one
    /// takes too long. `pilot` returns the length of a search.
    pub(crate) fn for_this_machine<E>(
        pilot: impl Fn(&[String]) -> Result<f64, E>,
    ) -> Result<Search, E> {
        let small = Search { tree: "T1".to_owned(), times: 5 };
        let of_small = (pilot(&small.words())? / small.times as f64).max(1e-6);
        let nodes = |tree: &str| named::find(tree).map_or(1.0, |it| it.published.nodes as f64);
        let of_large = of_small * nodes("T1L") / nodes("T1");
        let often = |seconds: f64| (LONG / seconds).round().max(1.0) as u64;
        Ok(match of_large <= 2.0 * LONG {
            true => Search { tree: "T1L".to_owned(), times: often(of_large) },
            false => Search { tree: "T1".to_owned(), times: often(of_small) },
        })
    }

    /// The arguments of its job.
    pub(crate) fn words(&self) -> Vec<String> {
        ["--stage", "uts", "--search", &self.to_string()].map(str::to_owned).to_vec()
    }

    /// A description for people.
    pub(crate) fn about(&self) -> String {
        let nodes = named::find(&self.tree).map_or(0, |it| it.published.nodes);
        match self.times {
            1 => format!("the tree {}, {nodes} nodes to find", self.tree),
            times => format!("the tree {} {times} times, {nodes} nodes to find in each", self.tree),
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tree, self.times)
    }
}

impl FromStr for Search {
    type Err = String;

    fn from_str(text: &str) -> Result<Search, String> {
        let wrong = || format!("{text:?} is no tree with a number of times, such as T1:5");
        let (tree, times) = text.split_once(':').ok_or_else(wrong)?;
        let known = named::find(tree).is_some();
        let times = times.parse().ok().filter(|times| known && *times > 0).ok_or_else(wrong)?;
        Ok(Search { tree: tree.to_owned(), times })
    }
}

/// A job's output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    /// The same for the same problem, however it was solved.
    pub(crate) result: String,
}

/// Cells along each axis of the cube.
const SIZE: usize = 96;
/// Iterations of a pilot, and the least and greatest number of iterations.
const PILOT: usize = 200;
const LEAST: usize = 500;
const MOST: usize = 5000;

/// The arguments of a relaxation's job.
pub(crate) fn relaxation(iterations: usize) -> Vec<String> {
    ["--stage", "jacobi", "--iterations", &iterations.to_string()].map(str::to_owned).to_vec()
}

/// The number of iterations of the uneven relaxation that take a few seconds on this machine.
pub(crate) fn iterations_for_this_machine<E>(
    pilot: impl Fn(&[String]) -> Result<f64, E>,
) -> Result<usize, E> {
    let of_one = (pilot(&relaxation(PILOT))? / PILOT as f64).max(1e-6);
    let hundreds = (1.5 * LONG / of_one / 100.0).round() as usize;
    Ok((100 * hundreds).clamp(LEAST, MOST))
}

/// The program of a rank.
pub(crate) fn run(stage: Stage, search: &Search, iterations: usize) -> ExitCode {
    let outcome = match stage {
        Stage::Jacobi => jacobi(iterations),
        Stage::Uts => search_trees(search),
    };
    match outcome {
        Ok(Some(outcome)) => match serde_json::to_string(&outcome) {
            Ok(line) => println!("{line}"),
            Err(error) => return fail(&error),
        },
        Ok(None) => {}
        Err(error) => return fail(&*error),
    }
    ExitCode::SUCCESS
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("demo: {error}");
    ExitCode::FAILURE
}

type Ended = Result<Option<Outcome>, Box<dyn std::error::Error>>;

fn jacobi(max_iterations: usize) -> Ended {
    let world = mpi::initialize().ok_or("not in a rank")?.world();
    let settings = Settings {
        problem: Problem { size: SIZE },
        cut: Cut::Blocks,
        max_iterations,
        tolerance: 0.0,
        check_every: 10,
        migrate_every: 0,
    };
    let costly: Costly = "0.25:8".parse()?;
    let run = solve(&world, &settings, Some(costly.into()), |_, _| {})?;
    Ok(run.map(|run| Outcome {
        seconds: run.seconds,
        result: format!("checksum {:016x}", run.solution.checksum),
    }))
}

fn search_trees(search: &Search) -> Ended {
    let world = mpi::initialize().ok_or("not in a rank")?.world();
    let named = named::find(&search.tree).ok_or("no such tree")?;
    let tree = Tree::new(named.parameters)?;
    world.barrier();
    let began = mpi::time();
    let mut right = true;
    for _ in 0..search.times {
        let part = parallel::search(&world, &tree, Kernel::fastest(), Plan::default(), |_| {});
        let mut nodes = 0;
        world.all_reduce_into(&part.counts.nodes, &mut nodes, SystemOperation::sum());
        right &= nodes == named.published.nodes;
    }
    let nodes = search.times * named.published.nodes;
    Ok((world.rank() == 0).then(|| Outcome {
        seconds: mpi::time() - began,
        result: format!("{nodes} nodes, {}", if right { "ok" } else { "WRONG" }),
    }))
}
