//! How often `--lb auto` may measure the costs of ranks: a part of the time, after some measurements in quick
//! succession.
//!
//! The time spent measuring and deciding is a debt that rests pay off. No rest is needed while the debt is small, so
//! that a job is balanced soon after it began.

use std::time::{Duration, Instant};

/// A rest is this many times as long as the measurements took: if nothing can be gained, they cost less than half a
/// percent.
const RESTS: u32 = 250;
/// A debt that needs no rest.
const AT_ONCE: Duration = Duration::from_millis(5);

/// The cost of measurements that rests have not paid off yet.
#[derive(Debug)]
pub(crate) struct Looks {
    /// The usual time of a measurement.
    usual: Duration,
    debt: Duration,
    number: u32,
    /// The time of the last one.
    last: Option<Instant>,
}

impl Looks {
    pub(crate) fn new() -> Looks {
        Looks { usual: Duration::MAX, debt: Duration::ZERO, number: 0, last: None }
    }

    /// Adds a measurement that took this long and has just ended.
    pub(crate) fn add(&mut self, took: Duration, now: Instant) {
        // A PE that another program has interrupted did not look for so long.
        let more = took.saturating_sub(self.usual) / 16;
        self.usual = took.min(self.usual.saturating_add(more));
        let rested = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.debt = self.debt.saturating_sub(rested / RESTS) + self.usual;
        self.number = self.number.saturating_add(1);
        // What all have cost is not known to be more. One that had to search ranks' memory says nothing of the next.
        self.debt = self.debt.min(self.usual.saturating_mul(self.number));
        self.last = Some(now);
    }

    /// How long to wait before the next measurement.
    pub(crate) fn rest(&self) -> Duration {
        if self.number < 2 {
            // What one usually takes nobody knows.
            return Duration::ZERO;
        }
        self.debt.saturating_sub(AT_ONCE).saturating_mul(RESTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_looks_are_free_and_all_others_paid_for() {
        let ms = Duration::from_millis;
        let (mut looks, mut now) = (Looks::new(), Instant::now());
        let begin = now;
        let mut number = 0;
        while now < begin + ms(10_000) {
            looks.add(ms(1), now);
            number += 1;
            assert_eq!(looks.rest() == Duration::ZERO, number <= 5, "{number}: {looks:?}");
            now += looks.rest().max(ms(10));
        }
        assert_eq!(number, 5 + 10_000 / 250);
    }

    #[test]
    fn an_interruption_is_no_look() {
        let (mut looks, now) = (Looks::new(), Instant::now());
        looks.add(Duration::from_micros(100), now);
        looks.add(Duration::from_millis(16), now);
        assert!(looks.debt < Duration::from_micros(1200), "{looks:?}");
    }

    #[test]
    fn a_first_look_that_takes_long_delays_nothing() {
        let (mut looks, now) = (Looks::new(), Instant::now());
        looks.add(Duration::from_millis(30), now);
        assert_eq!(looks.rest(), Duration::ZERO);
        looks.add(Duration::from_micros(100), now);
        assert_eq!(looks.rest(), Duration::ZERO, "{looks:?}");
        let mut looks = Looks::new();
        looks.add(Duration::from_millis(30), now);
        looks.add(Duration::from_millis(30), now);
        assert!(looks.rest() > Duration::from_secs(10), "it is always so long: {looks:?}");
    }
}
