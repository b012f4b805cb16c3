//! Efficiency over granularity, and where it falls below one half.

use crate::programs::metg::flops;

/// The fraction of the peak rate that a task must reach.
const LEAST_EFFICIENCY: f64 = 0.5;

/// Runs of a graph with one number of iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    /// Iterations of each task's kernel.
    pub iterations: u32,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// The data from which rates and granularities are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// Number of cores that run the graph.
    pub cores: f64,
    /// Number of tasks of the graph.
    pub tasks: f64,
}

impl Scale {
    /// Core seconds per task.
    pub(super) fn granularity(self, run: Run) -> f64 {
        run.seconds * self.cores / self.tasks
    }

    /// Useful operations per core and second.
    pub(super) fn rate(self, run: Run) -> f64 {
        flops(run.iterations) / self.granularity(run)
    }
}

/// The efficiency of tasks of some size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub iterations: u32,
    /// Core seconds per task.
    pub granularity: f64,
    /// The fraction of the peak rate.
    pub efficiency: f64,
}

/// Points in the order of the runs.
pub(super) fn curve(scale: Scale, runs: &[Run], peak: f64) -> Vec<Point> {
    let point = |&run: &Run| Point {
        iterations: run.iterations,
        granularity: scale.granularity(run),
        efficiency: scale.rate(run) / peak,
    };
    runs.iter().map(point).collect()
}

/// Seconds of the smallest tasks that reach at least one half, from points of large tasks to small ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Metg {
    /// This value.
    At(f64),
    /// At most this value: all tasks that were tried reach it.
    Below(f64),
    /// No task reaches it.
    Never,
}

impl Metg {
    /// Seconds, if there is a number.
    pub(super) fn seconds(self) -> Option<f64> {
        match self {
            Self::At(seconds) | Self::Below(seconds) => Some(seconds),
            Self::Never => None,
        }
    }
}

/// The minimum effective task granularity of a curve: between the last point that reaches one half and the next one, by
/// interpolation over the logarithm of the granularity.
pub(super) fn metg(curve: &[Point]) -> Metg {
    let Some(at) = curve.iter().rposition(|point| point.efficiency >= LEAST_EFFICIENCY) else {
        return Metg::Never;
    };
    let large = curve[at];
    let Some(small) = curve.get(at + 1) else {
        return Metg::Below(large.granularity);
    };
    let way = (large.efficiency - LEAST_EFFICIENCY) / (large.efficiency - small.efficiency);
    // Where noise makes the smaller task the longer one, the larger one is known to be worth it.
    let least = small.granularity.min(large.granularity);
    Metg::At(large.granularity * (least / large.granularity).powf(way))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a runtime that adds this many seconds to each task.
    fn with_overhead(overhead: f64) -> Vec<Point> {
        let scale = Scale { cores: 2.0, tasks: 100.0 };
        let runs: Vec<Run> = (0..14)
            .rev()
            .map(|power| {
                let iterations = 1 << power;
                Run { iterations, seconds: 50.0 * (overhead + flops(iterations) / 1e9) }
            })
            .collect();
        curve(scale, &runs, 1e9)
    }

    #[test]
    fn a_task_pays_that_computes_as_long_as_it_costs() {
        for overhead in [0.3e-6, 1e-6, 20e-6] {
            let Metg::At(seconds) = metg(&with_overhead(overhead)) else {
                panic!("it falls below a half");
            };
            assert!((seconds / (2.0 * overhead) - 1.0).abs() < 0.05, "{overhead} {seconds}");
        }
    }

    #[test]
    fn curves_that_do_not_cross_the_half() {
        assert_eq!(metg(&[]), Metg::Never);
        assert_eq!(metg(&with_overhead(1.0)), Metg::Never);
        let curve = with_overhead(0.0);
        assert_eq!(metg(&curve), Metg::Below(curve[curve.len() - 1].granularity));
    }

    #[test]
    fn noise_does_not_make_the_smallest_task_larger() {
        let point = |granularity, efficiency| Point { iterations: 1, granularity, efficiency };
        assert_eq!(metg(&[point(1.0, 0.6), point(1.2, 0.4)]), Metg::At(1.0));
        // Nor a large task that something came between.
        let curve = [point(9.0, 0.4), point(3.0, 0.7), point(1.0, 0.5), point(0.9, 0.3)];
        assert_eq!(metg(&curve), Metg::At(1.0));
    }
}
