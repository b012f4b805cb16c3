//! The length of a sample: long enough for every object to do something in it, and for noise to even out.

use super::compare::{Point, jitter};
use super::{FEW, Sample};

/// The initial and the greatest length of a sample, in seconds.
const RANGE: (f64, f64) = (0.01, 0.5);
/// Events per object that a sample should have.
const EVENTS: f64 = 2.0;
/// Rates that scatter more than this need longer samples.
const STEADY: f64 = 0.1;

/// The length of the next sample. The need of each purpose is kept separately: a program that begins slowly needs long
/// samples for its events at first, but not forever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    for_events: f64,
    /// It only grows: a steady average does not show that a shorter one would be steady.
    against_noise: f64,
    /// Samples since the length was last increased.
    since: usize,
    /// The user has set it.
    is_fixed: bool,
}

impl Interval {
    /// This length in seconds, or one that is determined while the job runs.
    pub(super) fn new(fixed: Option<f64>) -> Interval {
        let least = fixed.unwrap_or(RANGE.0);
        Interval { for_events: least, against_noise: least, since: 0, is_fixed: fixed.is_some() }
    }

    /// Begins with the length that a previous run needed.
    pub(super) fn begin_with(&mut self, seconds: f64) {
        if !self.is_fixed && seconds.is_finite() {
            self.against_noise = seconds.clamp(RANGE.0, RANGE.1);
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.for_events.max(self.against_noise)
    }

    /// Adapts the length to the last sample and the points; returns whether the next sample is longer than this one.
    pub(super) fn fit(&mut self, sample: &Sample, points: &[Point]) -> bool {
        if self.is_fixed {
            return false;
        }
        let now = self.seconds();
        let longer = (2.0 * now).min(RANGE.1);
        if sample.events > 0 {
            let each = sample.events as f64 / sample.ids.len() as f64 / sample.seconds;
            let needed = EVENTS / each;
            if needed > now {
                self.for_events = longer;
            } else if needed < self.for_events / 4.0 {
                self.for_events = (self.for_events / 2.0).max(RANGE.0);
            }
        }
        self.since += 1;
        let newest = &points[points.len().saturating_sub(FEW)..];
        let scatters = self.since >= FEW && jitter(newest).is_some_and(|it| it > STEADY);
        if scatters {
            self.against_noise = longer;
        }
        let is_longer = self.seconds() > now;
        if is_longer {
            self.since = 0;
        }
        is_longer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::MessageCost;
    use crate::model::{LoadModel, Object, Pe};

    /// After samples with this rate, each with all points considered.
    fn after(interval: &mut Interval, samples: usize, rate: impl Fn(usize) -> f64) -> f64 {
        let object = Object::new(0.001, 0);
        let model = LoadModel::new(vec![Pe::default()], vec![object], vec![]).expect("sound");
        let mut points = Vec::new();
        for number in 0..samples {
            let seconds = interval.seconds();
            let events = rate(number);
            points.push(Point { seconds, events, work: 1.0 });
            let sample = Sample {
                seconds,
                model: &model,
                ids: &[1],
                pes: &[],
                events: (events * seconds) as u64,
                grain: 1.0,
                message_cost: MessageCost::default(),
            };
            interval.fit(&sample, &points);
        }
        interval.seconds()
    }

    #[test]
    fn a_slow_beginning_is_soon_forgotten() {
        let mut interval = Interval::new(None);
        let slow = after(&mut interval, 10, |_| 110.0);
        assert!((0.02..0.05).contains(&slow), "{slow}");
        let mut interval = Interval::new(None);
        interval.for_events = 0.5;
        assert!(after(&mut interval, 8, |_| 1e5) <= RANGE.0);
    }

    #[test]
    fn noise_makes_it_longer() {
        let noisy = |number: usize| if number.is_multiple_of(2) { 1e5 } else { 2e5 };
        let mut interval = Interval::new(None);
        assert!(after(&mut interval, 40, noisy) >= RANGE.1);
        assert!(after(&mut interval, 40, |_| 1e5) >= RANGE.1);
        let mut fixed = Interval::new(Some(3.0));
        assert!((after(&mut fixed, 40, noisy) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn without_events_it_stays() {
        assert!(after(&mut Interval::new(None), 8, |_| 0.0) <= RANGE.0);
    }
}
