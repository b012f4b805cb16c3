//! `uts simulate`: the scaling of an algorithm on simulated processes.

mod calibration;

use crate::{
    experiment::ExperimentError,
    options::{algorithm, interval, termination},
};
use clap::Args;
use std::ops::ControlFlow;
use thiserror::Error;
use uts::{
    estimate::{Law, NoLaw},
    lanes::Kernel,
    named::{self, NAMED, Named},
    plan::{Algorithm, Interval, Plan, PlanError},
    sequential,
    simulation::{Costs, SimulationError, Source, simulate},
    statistics::Totals,
    termination::Termination,
    tree::{ParameterError, Tree},
};
use vrt_cli::Progress;

/// Simulates searches by many processes, on a simulated clock and network: of real trees, or by their law.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimulateOptions {
    /// Numbers of processes, separated by commas
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,2,4,8,16,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    processes: Vec<u32>,

    /// The tree, by its name
    #[arg(long, value_name = "NAME", default_value = "T1")]
    tree: String,

    /// Take the number of nodes from the tree's law, and search none: for the largest trees, binomial ones and
    /// geometric ones of fixed shape
    #[arg(long)]
    by_law: bool,

    /// steal, steal-2007, share, hierarchical, shared-2006 or static
    #[arg(long, value_name = "NAME", value_parser = algorithm, default_value = "steal")]
    algorithm: Algorithm,

    /// How processes detect the end [default: the algorithm's own]
    #[arg(long, value_name = "NAME", value_parser = termination)]
    termination: Option<Termination>,

    /// Nodes in a chunk [default: the algorithm's]
    #[arg(short, long, value_name = "NODES", value_parser = vrt_cli::positive::<u64>)]
    chunk: Option<u64>,

    /// Nodes between two polls, or two releases [default: the algorithm's]
    #[arg(short = 'i', long, value_name = "NODES", value_parser = interval)]
    poll_interval: Option<Interval>,

    /// Processes per node, which can access each other's memory: a group of hierarchical
    #[arg(long, value_name = "NUMBER", default_value = "12",
          value_parser = vrt_cli::positive::<u32>)]
    group: u32,

    /// Nanoseconds per node [default: measured now, by a search of T1]
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    node: Option<f64>,

    /// Nanoseconds of a poll that finds no message
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "40")]
    look: f64,

    /// L, nanoseconds that a message is in flight
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "1500")]
    latency: f64,

    /// o, nanoseconds that a message occupies its sender, and its receiver
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "300")]
    overhead: f64,

    /// G, nanoseconds per byte in flight
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "0.25")]
    byte: f64,

    /// Nanoseconds that each branch in a message occupies its sender, and its receiver
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "5")]
    branch: f64,

    /// Nanoseconds per process that a message costs the manager of share, in addition to o, if it scans its open
    /// receives for all processes
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "0")]
    scan: f64,

    /// Nanoseconds of one-sided access to a word of another process of the node; for another node it is 2 L + o
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "100")]
    access: f64,

    /// Nanoseconds to release a chunk, to acquire it again, or to take one of another process of the node
    #[arg(long, value_name = "NS", value_parser = nanoseconds, default_value = "500")]
    chunk_time: f64,

    /// Abandon a simulation after this many events
    #[arg(long, value_name = "NUMBER", default_value_t = 2_000_000_000)]
    most_events: u64,

    /// Measure costs and run every algorithm on 2 PEs here, simulate the same, and compare: within 10%
    #[arg(long, exclusive = true)]
    calibrate: bool,
}

/// Why there is no result.
#[derive(Debug, Error)]
pub(crate) enum SimulateError {
    /// No tree has this name.
    #[error("no tree `{name}`; trees: {known}")]
    UnknownTree {
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// Its parameters are invalid.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// It has no law.
    #[error(transparent)]
    NoLaw(#[from] NoLaw),
    /// The plan is invalid for this many processes.
    #[error("{processes} processes: {why}")]
    Plan {
        /// Number of processes.
        processes: u32,
        /// The reason.
        why: PlanError,
    },
    /// The simulation has no result.
    #[error("{processes} processes: {why}")]
    Simulation {
        /// Number of processes.
        processes: u32,
        /// The reason.
        why: SimulationError,
    },
    /// The search was wrong.
    #[error("{processes} processes: WRONG: expected {expected}")]
    Wrong {
        /// Number of processes.
        processes: u32,
        /// What was expected.
        expected: String,
    },
    /// A run for the calibration failed.
    #[error(transparent)]
    Run(#[from] ExperimentError),
    /// The costs could not be measured.
    #[error("uts costs: {0}")]
    Costs(String),
    /// Simulated rates differ too much from measured ones.
    #[error("simulated and real rates differ by {0:.1}%: more than 10")]
    NotCalibrated(f64),
}

impl SimulateError {
    /// Whether the command line is wrong.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, Self::UnknownTree { .. } | Self::Plan { .. } | Self::NoLaw(_))
    }
}

/// Runs the requested simulations, and prints a table.
///
/// # Errors
///
/// If the tree or search does not exist, or cannot be simulated.
pub(crate) fn run(options: &SimulateOptions) -> Result<(), SimulateError> {
    if options.calibrate {
        return calibration::run();
    }
    let named = find(&options.tree)?;
    let tree = Tree::new(named.parameters)?;
    let kernel = Kernel::fastest();
    let law = options.by_law.then(|| Law::of(named, kernel)).transpose()?;
    let source = law.as_ref().map_or(Source::Tree(&tree, kernel), Source::Law);
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
    let SimulateOptions {
        look,
        latency,
        overhead,
        byte,
        branch,
        scan,
        access,
        chunk_time,
        group,
        ..
    } = *options;
    let costs = Costs {
        node,
        look,
        turn: look + access,
        latency,
        overhead,
        byte,
        branch,
        scan,
        access,
        release: chunk_time,
        acquire: chunk_time,
        steal: chunk_time,
        group: group as usize,
    };
    println!(
        "tree {}{}, {}, {}, chunk {}, interval {}\nnode {node:.2} ns, look {look} ns, L {latency} ns, \
         o {overhead} ns, G {byte} ns, branch {branch} ns, scan {scan} ns; nodes of {group}, word {access} ns, chunk {chunk_time} ns\n\
         {:>10}{:>14}{:>18}{:>12}{:>16}{:>14}",
        named.name,
        if law.is_some() { " by its law" } else { "" },
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
    let mut progress = Progress::new(true);
    for &processes in &options.processes {
        progress.show(|| format!("simulating {processes} processes"));
        let result = simulate(source, plan, processes as usize, costs, options.most_events);
        progress.clear();
        let result = result.map_err(|why| SimulateError::Simulation { processes, why })?;
        let totals = Totals::new(&result.processes);
        // By its law a tree has about as many nodes, and its depth is not known.
        let published = law.is_none().then_some(named.published);
        if let Some(expected) = totals.differs_from(published) {
            return Err(SimulateError::Wrong { processes, expected });
        }
        let failed: u64 = result.processes.iter().map(|it| it.traffic.failed_steals).sum();
        let rate = totals.nodes as f64 / result.seconds;
        println!(
            "{processes:>10}{:>14.6}{rate:>18.0}{:>11.1}%{failed:>16}{:>14}",
            result.seconds,
            100.0 * rate * node * 1e-9 / f64::from(processes),
            result.events
        );
    }
    println!("ok");
    Ok(())
}

fn find(name: &str) -> Result<&'static Named, SimulateError> {
    named::find(name).ok_or_else(|| {
        let known = NAMED.iter().map(|tree| tree.name).collect::<Vec<_>>().join(", ");
        SimulateError::UnknownTree { name: name.to_owned(), known }
    })
}

/// Nanoseconds of a node in a sequential search, the best of three.
fn measured_node(kernel: Kernel) -> Result<f64, SimulateError> {
    let tree = Tree::new(find("T1")?.parameters)?;
    let times = (0..3).map(|_| {
        let began = std::time::Instant::now();
        let counts = sequential::search(&tree, kernel, 1 << 20, |_| ControlFlow::Continue(()));
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
