//! How long a PE polls before it sleeps.
//!
//! Falling asleep and being woken takes several tens of microseconds, and everything that waits for this PE waits as
//! long. So a PE with its own core polls at least for that long: waits are then never much longer than with perfect
//! foresight. If its sleeps turn out to be short, it polls longer the next time, up to a time of which a sleep would be
//! a small part. If they are long, the time shrinks again step by step.
//!
//! On a shared core, polling may keep from the core the very process that would provide what is polled for. A gap
//! between two polls reveals that; then the PE stops polling, and starts from the minimum again.

use std::time::Duration;

/// About what a sleep costs.
const LEAST: Duration = Duration::from_micros(30);
/// Of this a sleep is some percent.
const MOST: Duration = Duration::from_micros(500);

/// What a look is taken to last until that has been measured.
const LOOK: Duration = Duration::from_nanos(12);

/// How long a PE looks, in cycles.
#[derive(Debug)]
pub(in crate::pe) struct Patience {
    now: u64,
    least: u64,
    most: u64,
}

impl Patience {
    pub(in crate::pe) fn new(cycles_per_second: f64) -> Patience {
        let cycles = |time: Duration| ((time.as_secs_f64() * cycles_per_second) as u64).max(1);
        Patience { now: cycles(LEAST), least: cycles(LEAST), most: cycles(MOST) }
    }

    /// How long to poll this time.
    pub(in crate::pe) fn cycles(&self) -> u64 {
        self.now
    }

    /// After polling in vain the PE slept for this long, until another one woke it.
    pub(in crate::pe) fn slept(&mut self, cycles: u64) {
        let enough = self.now.saturating_add(cycles);
        self.now = match enough <= self.most {
            // As much again, since the next wait may well be longer.
            true => (2 * enough).min(self.most),
            false => (self.now / 2).max(self.least),
        };
    }

    /// The number of cycles between two polls: whether something else has run on the core meanwhile. Then polling ends.
    pub(in crate::pe) fn ends_at_gap(&mut self, cycles: u64) -> bool {
        let is_interrupted = cycles > self.least;
        if is_interrupted {
            self.now = self.least;
        }
        is_interrupted
    }
}

/// How long a look for something to do lasts, in cycles: to ask for the time would take as long as the look.
#[derive(Debug)]
pub(in crate::pe) struct LookTime(u64);

impl LookTime {
    pub(in crate::pe) fn new(cycles_per_second: f64) -> LookTime {
        LookTime(((LOOK.as_secs_f64() * cycles_per_second) as u64).max(1))
    }

    /// The approximate time of this many polls.
    pub(in crate::pe) fn of(&self, looks: u32) -> u64 {
        u64::from(looks) * self.0
    }

    /// This many polls have taken this many cycles. That may be much more than they need, if something else has run on
    /// the core meanwhile, so the estimate grows only in small steps.
    pub(in crate::pe) fn have_taken(&mut self, looks: u32, cycles: u64) {
        let one = cycles / u64::from(looks.max(1));
        self.0 = one.clamp(1, self.0 + self.0 / 8 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_interrupted_is_not_taken_for_a_long_one() {
        let mut look = LookTime::new(1e9);
        assert_eq!(look.of(10), 120);
        look.have_taken(100, 4_000_000);
        assert_eq!(look.of(1), 14);
        for _ in 0..20 {
            look.have_taken(100, 4_000);
        }
        assert_eq!(look.of(1), 40);
        look.have_taken(100, 2_000);
        assert_eq!(look.of(1), 20);
        look.have_taken(0, 0);
        assert_eq!(look.of(1), 1);
    }

    fn patience() -> Patience {
        // Cycles are microseconds.
        Patience::new(1e6)
    }

    #[test]
    fn short_sleeps_make_patient_and_long_ones_do_not() {
        let mut patience = patience();
        assert_eq!(patience.cycles(), 30);
        patience.slept(10);
        assert_eq!(patience.cycles(), 80);
        patience.slept(100);
        assert_eq!(patience.cycles(), 360);
        patience.slept(100);
        assert_eq!(patience.cycles(), 500);
        for cycles in [250, 125, 62, 31, 30, 30] {
            patience.slept(100_000);
            assert_eq!(patience.cycles(), cycles);
        }
        patience.slept(u64::MAX);
        assert_eq!(patience.cycles(), 30);
    }

    #[test]
    fn who_is_interrupted_has_no_patience() {
        let mut patience = patience();
        patience.slept(100);
        assert!(!patience.ends_at_gap(3));
        assert_eq!(patience.cycles(), 260);
        assert!(patience.ends_at_gap(31));
        assert_eq!(patience.cycles(), 30);
    }
}
