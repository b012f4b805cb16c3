//! How long a sample is: so long that every object has done something in it, and that noise evens out.

use super::compare::{Point, jitter};
use super::{FEW, Sample};

/// Seconds of a sample: at first, and at most.
const RANGE: (f64, f64) = (0.01, 0.5);
/// Events of each object that a sample should have.
const EVENTS: f64 = 2.0;
/// Rates that scatter more are taken over longer samples.
const STEADY: f64 = 0.1;

/// The length of the next sample. What each purpose needs is known apart: a program that begins slowly needs long
/// samples for its events then, and not for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    for_events: f64,
    /// It only grows: that what is averaged is steady does not say that less of it would be.
    against_noise: f64,
    /// Samples since the whole was last made longer.
    since: usize,
    /// It is the user's.
    is_fixed: bool,
}

impl Interval {
    /// These seconds, or those that turn out to be needed.
    pub fn new(fixed: Option<f64>) -> Interval {
        let least = fixed.unwrap_or(RANGE.0);
        Interval { for_events: least, against_noise: least, since: 0, is_fixed: fixed.is_some() }
    }

    /// Begins with what was needed in a former run.
    pub fn begin_with(&mut self, seconds: f64) {
        if !self.is_fixed && seconds.is_finite() {
            self.against_noise = seconds.clamp(RANGE.0, RANGE.1);
        }
    }

    pub fn seconds(&self) -> f64 {
        self.for_events.max(self.against_noise)
    }

    /// What the last sample and the points say of the next one; whether it is to be longer than this one.
    pub fn fit(&mut self, sample: &Sample, points: &[Point]) -> bool {
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

    /// After samples of this rate, each of all that is looked at.
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
