//! `uts simulate`: the scaling of an algorithm on processes that there are not.

use crate::options::{algorithm, interval, termination};
use clap::Args;
use thiserror::Error;
use uts::{
    lanes::Kernel,
    named::{self, NAMED},
    plan::{Algorithm, Interval, Plan, PlanError},
    sequential,
    simulation::{Costs, SimulationError, simulate},
    statistics::Totals,
    termination::Termination,
    tree::{ParameterError, Tree},
};

/// Simulates searches by many processes: real trees, a simulated clock and network.
#[derive(Args, Clone, Debug)]
pub struct SimulateOptions {
    /// Numbers of processes, separated by commas
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,2,4,8,16,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    processes: Vec<u32>,

    /// The tree, by its name: one that can be searched here, as it is
    #[arg(long, value_name = "NAME", default_value = "T1")]
    tree: String,

    /// steal, steal-2007, share or static
    #[arg(long, value_name = "NAME", value_parser = algorithm, default_value = "steal")]
    algorithm: Algorithm,

    /// How processes know the end [default: the algorithm's own]
    #[arg(long, value_name = "NAME", value_parser = termination)]
    termination: Option<Termination>,

    /// Nodes in a chunk [default: the algorithm's]
    #[arg(short, long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..))]
    chunk: Option<u64>,

    /// Nodes between two looks for messages, or two releases [default: the algorithm's]
    #[arg(short = 'i', long, value_name = "NODES", value_parser = interval)]
    poll_interval: Option<Interval>,

    /// Nanoseconds of a node [default: measured now, by a search of T1]
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    node: Option<f64>,

    /// Nanoseconds of a look for messages that finds none
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "40")]
    look: f64,

    /// L, nanoseconds that a message is on its way
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "1500")]
    latency: f64,

    /// o, nanoseconds that a message keeps its sender busy, and its receiver
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "300")]
    overhead: f64,

    /// G, nanoseconds of a byte on its way
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "0.25")]
    byte: f64,

    /// Events after which a simulation is given up
    #[arg(long, value_name = "NUMBER", default_value_t = 500_000_000)]
    most_events: u64,
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum SimulateError {
    /// No tree has this name.
    #[error("no tree `{name}`; trees: {known}")]
    UnknownTree {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// It makes no tree.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// There is no such search.
    #[error("{processes} processes: {why}")]
    Plan {
        /// How many.
        processes: u32,
        /// Why.
        why: PlanError,
    },
    /// There is no result.
    #[error("{processes} processes: {why}")]
    Simulation {
        /// How many.
        processes: u32,
        /// Why.
        why: SimulationError,
    },
    /// The search was wrong.
    #[error("{processes} processes: WRONG: expected {expected}")]
    Wrong {
        /// How many.
        processes: u32,
        /// What was expected.
        expected: String,
    },
}

/// Simulates what is asked for, and prints a table.
///
/// # Errors
///
/// If there is no such tree or search, or it cannot be simulated.
pub fn run(options: &SimulateOptions) -> Result<(), SimulateError> {
    let Some(named) = named::find(&options.tree) else {
        let known = NAMED.iter().map(|tree| tree.name).collect::<Vec<_>>().join(", ");
        return Err(SimulateError::UnknownTree { name: options.tree.clone(), known });
    };
    let tree = Tree::new(named.parameters)?;
    let kernel = Kernel::fastest();
    let mut plan = Plan::of(options.algorithm);
    plan.termination = options.termination.unwrap_or(plan.termination);
    plan.sharing.chunk = options.chunk.unwrap_or(plan.sharing.chunk);
    plan.sharing.interval = options.poll_interval.unwrap_or(plan.sharing.interval);
    for &processes in &options.processes {
        let check = plan.check(processes as usize);
        check.map_err(|why| SimulateError::Plan { processes, why })?;
    }
    let node = match options.node {
        Some(node) => node,
        None => measured_node(kernel)?,
    };
    let SimulateOptions { look, latency, overhead, byte, .. } = *options;
    println!(
        "tree {}, {}, {}, chunk {}, interval {}\nnode {node:.2} ns, look {look} ns, L {latency} ns, \
         o {overhead} ns, G {byte} ns\n{:>10}{:>14}{:>16}{:>12}{:>14}{:>14}",
        named.name,
        plan.algorithm.name(),
        plan.termination.name(),
        plan.sharing.chunk,
        plan.sharing.interval,
        "processes",
        "seconds",
        "nodes/s",
        "efficiency",
        "failed steals",
        "events"
    );
    for &processes in &options.processes {
        let costs = Costs { node, look, latency, overhead, byte };
        let result = simulate(&tree, kernel, plan, processes as usize, costs, options.most_events);
        let result = result.map_err(|why| SimulateError::Simulation { processes, why })?;
        let totals = Totals::new(&result.processes);
        if let Some(expected) = totals.differs_from(Some(named.published)) {
            return Err(SimulateError::Wrong { processes, expected });
        }
        let failed: u64 = result.processes.iter().map(|it| it.traffic.failed_steals).sum();
        let rate = totals.nodes as f64 / result.seconds;
        println!(
            "{processes:>10}{:>14.6}{rate:>16.0}{:>11.1}%{failed:>14}{:>14}",
            result.seconds,
            100.0 * rate * node * 1e-9 / f64::from(processes),
            result.events
        );
    }
    println!("ok");
    Ok(())
}

/// Nanoseconds of a node in a sequential search, the best of three.
fn measured_node(kernel: Kernel) -> Result<f64, SimulateError> {
    let parameters = named::find("T1").map(|it| it.parameters).unwrap_or_default();
    let tree = Tree::new(parameters)?;
    let times = (0..3).map(|_| {
        let began = std::time::Instant::now();
        let counts = sequential::search(&tree, kernel, 1 << 20, |_| {});
        began.elapsed().as_secs_f64() * 1e9 / counts.nodes as f64
    });
    Ok(times.fold(f64::INFINITY, f64::min))
}

fn nanoseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(time) if time.is_finite() && time >= 0.0 => Ok(time),
        _ => Err("a number of nanoseconds, 0 or more, is allowed".to_owned()),
    }
}
