//! The jobs: what their ranks run, and what rank 0 says of it.

use std::process::ExitCode;

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

impl Stage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Jacobi => "jacobi",
            Stage::Uts => "uts",
        }
    }
}

/// What a job prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    /// The same for the same problem, however it was solved.
    pub(crate) result: String,
}

/// Cells along each axis of the cube, and iterations: some five seconds on two PEs.
const SIZE: usize = 96;
const ITERATIONS: usize = 1500;

/// The program of a rank.
pub(crate) fn run(stage: Stage) -> ExitCode {
    let outcome = match stage {
        Stage::Jacobi => jacobi(),
        Stage::Uts => search(),
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

type Result = std::result::Result<Option<Outcome>, Box<dyn std::error::Error>>;

fn jacobi() -> Result {
    let world = mpi::initialize().ok_or("not in a rank")?.world();
    let settings = Settings {
        problem: Problem { size: SIZE },
        cut: Cut::Blocks,
        max_iterations: ITERATIONS,
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

fn search() -> Result {
    let world = mpi::initialize().ok_or("not in a rank")?.world();
    let named = named::find("T1").ok_or("no tree T1")?;
    let tree = Tree::new(named.parameters)?;
    world.barrier();
    let began = mpi::time();
    let part = parallel::search(&world, &tree, Kernel::fastest(), Plan::default(), |_| {});
    let mut nodes = 0;
    world.all_reduce_into(&part.counts.nodes, &mut nodes, SystemOperation::sum());
    let right = nodes == named.published.nodes;
    Ok((world.rank() == 0).then(|| Outcome {
        seconds: mpi::time() - began,
        result: format!("{nodes} nodes, {}", if right { "ok" } else { "WRONG" }),
    }))
}
