//! Whether a placement is better than the previous one: compares two series of measured rates and
//! their noise.

/// The progress of a job in a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Length of the sample.
    pub seconds: f64,
    /// Messages and collective operations per second.
    pub events: f64,
    /// Seconds of work per second, over all PEs.
    pub work: f64,
}

impl Point {
    fn per_work(&self) -> f64 {
        if self.work > 0.0 { self.events / self.work } else { 0.0 }
    }
}

/// How much faster a job runs than before, as a part, and the standard error of that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// 0.1: ten percent more per second than before.
    pub gain: f64,
    /// One standard error of `gain`.
    pub spread: f64,
}

/// The verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Better,
    Worse,
    /// The change is within noise.
    Unclear,
}

/// A change of at least this many standard errors is significant: about one percent of random changes exceed it.
const SURE: f64 = 2.6;
/// With fewer points than this, their scatter is uncertain.
const FEW: f64 = 4.0;
/// A mean is rarely more than this many standard errors too large.
const HARDLY: f64 = 2.0;
/// No rate is assumed to be steadier than this part of it.
const STEADIEST: f64 = 0.002;
/// A smaller change does not count.
const LEAST: f64 = 0.005;
/// If the events per second of work change by more than this part, the program does something different than before,
/// and its events are not comparable.
const ANOTHER_PHASE: f64 = 0.25;

impl Change {
    /// Compares two series of points; `None` if either has too few.
    ///
    /// A job runs faster if its PEs work for more of the time, or if they do more in a second of work. How much they do
    /// scatters with other load on the machine, far more than how long they work: a change within that scatter does not
    /// count. It does count if messages between nodes are part of the work (`costs_are_even` does not hold): with other
    /// messages the work differs.
    pub(crate) fn between(
        before: &[Point],
        after: &[Point],
        costs_are_even: bool,
    ) -> Option<Change> {
        let of_work = Self::of(before, after, |it| it.work)?;
        if !counts_events(before, after) {
            return Some(of_work);
        }
        let per_work = Self::of(before, after, Point::per_work)?;
        match per_work.verdict() {
            Verdict::Unclear if costs_are_even => Some(of_work),
            _ => Self::of(before, after, |it| it.events),
        }
    }

    fn of(before: &[Point], after: &[Point], rate: impl Fn(&Point) -> f64) -> Option<Change> {
        let (mut before, mut after) = (Row::of(before, &rate)?, Row::of(after, &rate)?);
        if before.mean <= 0.0 {
            return None;
        }
        // How much few points scatter nobody knows: as those that they are compared with, at least.
        let deviation = before.deviation().max(after.deviation());
        for row in [&mut before, &mut after] {
            if row.count < FEW {
                row.error = row.error.max(deviation / row.count.sqrt());
            }
        }
        let spread = (before.error.powi(2) + after.error.powi(2)).sqrt() / before.mean;
        Some(Change { gain: after.mean / before.mean - 1.0, spread })
    }

    pub(crate) fn verdict(self) -> Verdict {
        if self.gain.abs() < LEAST.max(SURE * self.spread) {
            Verdict::Unclear
        } else if self.gain > 0.0 {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }
}

/// Whether events measure a program's speed: it has events, and as many for the same work as before.
fn counts_events(before: &[Point], after: &[Point]) -> bool {
    let per_work = |points: &[Point]| {
        let sum = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>();
        sum(|it| it.events) / sum(|it| it.work)
    };
    let (before, after) = (per_work(before), per_work(after));
    before > 0.0 && (after / before - 1.0).abs() < ANOTHER_PHASE
}

/// The scatter of points, as a part of their mean: computed from the differences of neighbours, so that slow changes do
/// not count. `None` if there are fewer than two.
pub(crate) fn jitter(points: &[Point]) -> Option<f64> {
    let rate = match points.iter().all(|it| it.events > 0.0) {
        true => |it: &Point| it.events,
        false => |it: &Point| it.work,
    };
    let mean = Row::of(points, rate)?.mean;
    let steps = points.windows(2).map(|pair| rate(&pair[1]) - rate(&pair[0]));
    let squares: f64 = steps.map(|step| step.powi(2)).sum();
    // Two neighbours differ by the noise of both.
    let variance = squares / (2.0 * points.len().saturating_sub(1) as f64);
    (points.len() > 1 && mean > 0.0).then(|| variance.sqrt() / mean)
}

/// The scatter of how long PEs work, as a part of the mean; `None` if there are fewer than two points.
pub(crate) fn scatter_of_work(points: &[Point]) -> Option<f64> {
    let row = Row::of(points, |it| it.work)?;
    (points.len() > 1 && row.mean > 0.0).then(|| row.deviation() / row.mean)
}

/// The mean of some numbers.
pub(crate) struct Row {
    count: f64,
    pub mean: f64,
    /// Standard error of the mean.
    error: f64,
}

impl Row {
    pub(super) fn of<T>(points: &[T], rate: impl Fn(&T) -> f64) -> Option<Row> {
        if points.is_empty() {
            return None;
        }
        let count = points.len() as f64;
        let mean = points.iter().map(&rate).sum::<f64>() / count;
        let squares: f64 = points.iter().map(|it| (rate(it) - mean).powi(2)).sum();
        let variance = if points.len() > 1 { squares / (count - 1.0) } else { 0.0 };
        let error = (variance / count).sqrt().max(STEADIEST * mean / count.sqrt());
        Some(Row { count, mean, error })
    }

    /// A lower bound for the mean of many more numbers.
    pub(super) fn at_least(&self) -> f64 {
        self.mean - HARDLY * self.error
    }

    fn deviation(&self) -> f64 {
        self.error * self.count.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(events: &[f64]) -> Vec<Point> {
        events.iter().map(|&events| Point { seconds: 1.0, events, work: 2.0 }).collect()
    }

    #[test]
    fn what_is_clear_is_told_and_noise_is_not() {
        let before = points(&[100.0, 101.0, 99.0, 100.0]);
        let verdict =
            |after: &[f64]| Change::between(&before, &points(after), true).unwrap().verdict();
        assert_eq!(verdict(&[120.0, 121.0, 119.0]), Verdict::Better);
        assert_eq!(verdict(&[80.0, 81.0, 79.0]), Verdict::Worse);
        assert_eq!(verdict(&[100.0, 101.0, 100.5]), Verdict::Unclear);
        assert_eq!(verdict(&[80.0, 140.0, 95.0]), Verdict::Unclear);
        assert!(Change::between(&before, &[], true).is_none());
    }

    #[test]
    fn a_machine_that_is_faster_and_slower_hides_no_gain() {
        let points = |rates: &[f64], work: f64| -> Vec<Point> {
            rates.iter().map(|rate| Point { seconds: 1.0, events: rate * work, work }).collect()
        };
        let before = points(&[100.0, 130.0, 80.0, 110.0], 1.5);
        let change =
            Change::between(&before, &points(&[90.0, 105.0, 75.0, 130.0], 1.8), true).unwrap();
        assert!((change.gain - 0.2).abs() < 1e-9, "{change:?}");
        assert_eq!(change.verdict(), Verdict::Better);
        // Busy for longer, and yet slower.
        let change = Change::between(&before, &points(&[50.0, 48.0, 52.0, 50.0], 1.8), true);
        assert_eq!(change.unwrap().verdict(), Verdict::Better, "it does something else");
        let change =
            Change::between(&points(&[100.0; 4], 1.5), &points(&[80.0; 4], 1.6), true).unwrap();
        assert_eq!(change.verdict(), Verdict::Worse);
    }

    #[test]
    fn what_changes_slowly_is_no_jitter() {
        let slow = jitter(&points(&[100.0, 90.0, 80.0, 70.0])).unwrap();
        let noise = jitter(&points(&[100.0, 70.0, 90.0, 80.0])).unwrap();
        assert!((slow - 10.0 / 2_f64.sqrt() / 85.0).abs() < 1e-9, "{slow}");
        assert!(noise > 2.0 * slow, "{noise}");
        assert_eq!((jitter(&points(&[1.0])), jitter(&[])), (None, None));
    }

    #[test]
    fn in_another_phase_work_counts() {
        let before = points(&[100.0; 4]);
        let after: Vec<Point> =
            (0..4).map(|_| Point { seconds: 1.0, events: 10.0, work: 2.4 }).collect();
        let change = Change::between(&before, &after, true).unwrap();
        assert!((change.gain - 0.2).abs() < 1e-12, "{change:?}");
    }

    #[test]
    fn scatter_is_relative() {
        assert_eq!(jitter(&points(&[5.0])), None);
        let some = jitter(&points(&[90.0, 110.0])).unwrap();
        assert!((some - 0.1414).abs() < 1e-3, "{some}");
    }
}
