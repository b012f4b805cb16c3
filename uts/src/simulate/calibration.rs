//! Checks simulations against reality: every algorithm on 2 PEs here, and simulated with costs measured here.
//!
//! The machine's speed varies. So costs are measured before every run, and its rate is divided by the measured rate of
//! nodes: the efficiencies are compared, as medians of several runs. Rates are given at the median cost of a node. On 2
//! PEs, one rank of `share` searches alone, as the other one is the manager: its nodes are assumed to cost what they do
//! while no other rank looks at nodes. The same holds for the nodes that one rank of `static` still has when the other
//! has none.

use super::{SimulateError, find};
use crate::experiment::{Job, run_job};
use std::process::{Command, Stdio};
use uts::{
    costs::Measured,
    lanes::Kernel,
    plan::{Algorithm, Plan},
    simulation::{Costs, Simulated, Source, simulate},
    tree::Tree,
};
use vrt_cli::{Progress, statistics::median};

const ROUNDS: usize = 5;
const TREES: [&str; 2] = ["T1L", "T3L"];
/// The greatest allowed difference of rates, in per cent.
const ALLOWED: f64 = 10.0;

/// Measures, runs, simulates; prints a table.
///
/// # Errors
///
/// If a run fails, or rates differ too much.
pub(super) fn run() -> Result<(), SimulateError> {
    let pairs: Vec<(&str, Algorithm)> =
        TREES.iter().flat_map(|tree| Algorithm::ALL.map(|it| (*tree, it))).collect();
    let mut progress = Progress::new(true);
    let mut all: Vec<Measured> = Vec::new();
    let mut efficiencies = vec![Vec::new(); pairs.len()];
    for round in 0..ROUNDS {
        for (&(tree, algorithm), found) in pairs.iter().zip(&mut efficiencies) {
            let arguments =
                format!("--tree {tree} --algorithm {} --pes 2 --ranks 2", algorithm.name());
            progress.show(|| format!("round {} of {ROUNDS}: {arguments}", round + 1));
            let before = measure()?;
            let outcome = run_job(&Job { series: String::new(), x: 0.0, arguments })?;
            let after = measure()?;
            let node = 0.5 * (node_of(&before, algorithm) + node_of(&after, algorithm));
            found.push(outcome.nodes as f64 * node * 1e-9 / (2.0 * outcome.seconds));
            all.extend([before, after]);
        }
    }
    progress.clear();
    let least = all.iter().copied().reduce(Measured::least).unwrap_or_default();
    let of_all = |of: fn(&Measured) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
    let (node, node_alone) = (of_all(|it| it.node), of_all(|it| it.node_alone));
    let measured = Measured { node, node_alone, ..least };
    for (what, time) in measured.lines() {
        println!("{what:<40}{time:>12.2} ns");
    }
    println!(
        "\n{:<6}{:<14}{:>22}{:>22}{:>14}",
        "tree", "algorithm", "real, million nodes/s", "simulated", "difference"
    );
    let mut worst: f64 = 0.0;
    for ((tree, algorithm), efficiencies) in pairs.into_iter().zip(efficiencies) {
        let named = find(tree)?;
        let (tree, processes) = (Tree::new(named.parameters)?, 2);
        let source = Source::Tree(&tree, Kernel::fastest());
        let result =
            simulate(source, Plan::of(algorithm), processes, costs(&measured, algorithm), u64::MAX);
        let result =
            result.map_err(|why| SimulateError::Simulation { processes: processes as u32, why })?;
        let real = median(&efficiencies) * 2e3 / node_of(&measured, algorithm);
        let simulated = named.published.nodes as f64 / seconds(&result, &measured, algorithm) / 1e6;
        let difference = 100.0 * (simulated / real - 1.0);
        worst = worst.max(difference.abs());
        println!(
            "{:<6}{:<14}{real:>22.1}{simulated:>22.1}{difference:>13.1}%",
            named.name,
            algorithm.name()
        );
    }
    if worst > ALLOWED {
        return Err(SimulateError::NotCalibrated(worst));
    }
    println!("ok: within {worst:.1}%, allowed are {ALLOWED}%");
    Ok(())
}

/// The cost of a node for an algorithm on 2 PEs.
fn node_of(measured: &Measured, algorithm: Algorithm) -> f64 {
    if algorithm == Algorithm::Share { measured.node_alone } else { measured.node }
}

/// The time of a simulated search, if a node costs less while no other rank looks at nodes. (In `share` that is so from
/// the beginning; in the others all ranks have nodes till the end.)
fn seconds(result: &Simulated, measured: &Measured, algorithm: Algorithm) -> f64 {
    if algorithm != Algorithm::Static {
        return result.seconds;
    }
    let working = result.processes.iter().map(|it| it.times.seconds[0]);
    let (least, most) =
        working.fold((f64::MAX, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
    result.seconds - (most - least) * (1.0 - measured.node_alone / measured.node)
}

/// The costs in terms of LogGP.
fn costs(measured: &Measured, algorithm: Algorithm) -> Costs {
    let &Measured { poll, message, send, byte, turn, access, release, acquire, steal, .. } =
        measured;
    Costs {
        node: node_of(measured, algorithm),
        look: poll,
        turn,
        latency: (message - 2.0 * send).max(0.0),
        overhead: send,
        byte,
        branch: measured.branch(),
        scan: 0.0,
        access,
        release,
        acquire,
        steal,
        // Both PEs are on this node; but `hierarchical` has a group for each.
        group: if algorithm == Algorithm::Hierarchical { 1 } else { 2 },
    }
}

/// The output of `uts costs`.
fn measure() -> Result<Measured, SimulateError> {
    let fail = |why: &dyn std::fmt::Display| SimulateError::Costs(why.to_string());
    let program = std::env::current_exe().map_err(|it| fail(&it))?;
    let output = Command::new(program)
        .args(["costs", "--pes", "2", "--ranks", "2", "--csv"])
        .stdin(Stdio::null())
        .output()
        .map_err(|it| fail(&it))?;
    if !output.status.success() {
        return Err(fail(&String::from_utf8_lossy(&output.stderr).trim()));
    }
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let line = reader.deserialize().next();
    line.ok_or_else(|| fail(&"it printed nothing"))?.map_err(|it| fail(&it))
}
