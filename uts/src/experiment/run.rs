//! Runs a job of an experiment: this program itself, whose table of ranks is parsed.

use super::{
    ExperimentError,
    catalog::{Job, Measure},
};
use crate::csv_text::Row;
use std::process::{Command, Stdio};

/// The measurements of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Seconds from the first node to the last.
    pub seconds: f64,
    /// Nodes of the tree.
    pub nodes: u64,
    /// Nodes of the rank with the most.
    pub most: u64,
    /// Prefetches, and those that brought work.
    pub prefetches: [u64; 2],
    /// Mean seconds of the ranks in work, overhead, search, and idle.
    pub times: [f64; 4],
    /// Chunks stolen, and failed attempts.
    pub steals: [u64; 2],
}

impl Outcome {
    /// The value in the figure; `None` if there is none.
    pub(crate) fn value(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Rate => Some(self.nodes as f64 / self.seconds / 1e6),
            Measure::LargestShare => Some(100.0 * self.most as f64 / self.nodes as f64),
            Measure::Prefetched => {
                let [made, brought] = self.prefetches.map(|it| it as f64);
                (made > 0.0).then(|| 100.0 * brought / made)
            }
        }
    }

    fn of(rows: &[Row]) -> Option<Self> {
        let sum = |it: fn(&Row) -> u64| rows.iter().map(it).sum::<u64>();
        let mean = |it: fn(&Row) -> f64| rows.iter().map(it).sum::<f64>() / rows.len() as f64;
        Some(Self {
            seconds: rows.first()?.seconds,
            nodes: sum(|it| it.nodes),
            most: rows.iter().map(|it| it.nodes).max()?,
            prefetches: [sum(|it| it.prefetches), sum(|it| it.prefetched)],
            times: [
                mean(|it| it.working),
                mean(|it| it.overhead),
                mean(|it| it.searching),
                mean(|it| it.idle),
            ],
            steals: [sum(|it| it.stolen), sum(|it| it.failed)],
        })
    }
}

/// Runs the job. It must find the tree as published.
pub(crate) fn run(job: &Job) -> Result<Outcome, ExperimentError> {
    let fail = |why: String| ExperimentError::Job { line: job.arguments.clone(), why };
    let program = std::env::current_exe().map_err(|it| fail(it.to_string()))?;
    let output = Command::new(program)
        .args(job.arguments.split_whitespace())
        .args(["--csv", "--no-progress"])
        .stdin(Stdio::null())
        .output()
        .map_err(|it| fail(it.to_string()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(fail(format!("{}: {}", output.status, stderr.trim())));
    }
    let rows: Result<Vec<Row>, csv::Error> =
        csv::Reader::from_reader(&output.stdout[..]).deserialize().collect();
    let rows = rows.map_err(|it| fail(it.to_string()))?;
    Outcome::of(&rows).ok_or_else(|| fail("it printed no ranks".to_owned()))
}
