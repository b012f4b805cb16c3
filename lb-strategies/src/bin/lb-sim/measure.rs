//! Runs a strategy and measures what it does, how long it takes and how much memory it needs.

use std::{
    fs,
    time::{Duration, Instant},
};

use lb_strategies::{Assignment, Balancer, LoadModel, gain, lower_bound};
use serde::Serialize;

/// The properties of a placement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// Load of the busiest PE over the mean, minus 1.
    pub imbalance: f64,
    /// Seconds of the busiest PE.
    pub max_load: f64,
    /// The same over the lower bound; 1 if that is 0.
    pub over_bound: f64,
    pub moves: usize,
    pub bytes_moved: u64,
    pub off_pe_bytes: u64,
    pub off_node_bytes: u64,
    /// Seconds by which each period gets shorter, and seconds that the moves take, once.
    pub saved_seconds: f64,
    pub spent_seconds: f64,
    /// Loads of PEs, for the drawing.
    #[serde(skip)]
    pub loads: Vec<f64>,
}

/// What a strategy did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    pub strategy: &'static str,
    #[serde(flatten)]
    pub outcome: Outcome,
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub time: Duration,
    /// The greatest amount of memory that the program held while the strategy ran, including the
    /// model, if the system reports it.
    pub peak_bytes: Option<u64>,
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// Today's placement.
pub(crate) fn today(model: &LoadModel) -> Outcome {
    outcome(model, &Assignment::today(model))
}

/// Runs `balancer` on `model`.
pub(crate) fn run(balancer: &Balancer, model: &LoadModel, seed: u64) -> Measured {
    let resets = reset_peak();
    let began = Instant::now();
    let assignment = balancer.assign(model, seed);
    let time = began.elapsed();
    let peak_bytes = if resets { peak() } else { None };
    let strategy = balancer.strategy().name();
    Measured { strategy, outcome: outcome(model, &assignment), time, peak_bytes }
}

fn outcome(model: &LoadModel, assignment: &Assignment) -> Outcome {
    let (bound, max_load) = (lower_bound(model), assignment.max_load(model));
    let gain = gain(model, assignment, model.move_cost());
    Outcome {
        imbalance: assignment.imbalance(model),
        max_load,
        over_bound: if bound > 0.0 { max_load / bound } else { 1.0 },
        moves: assignment.moves(model).count(),
        bytes_moved: assignment.moves(model).map(|it| it.bytes).sum(),
        off_pe_bytes: assignment.remote_bytes(model),
        off_node_bytes: assignment.off_node_bytes(model),
        saved_seconds: gain.saved,
        spent_seconds: gain.spent,
        loads: assignment.pe_loads(model),
    }
}

/// Resets Linux's record of the largest resident size.
fn reset_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
