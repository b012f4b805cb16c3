//! How long a PE looks for something to do before it sleeps.
//!
//! To fall asleep and to be woken takes some tens of microseconds, which whoever waits for this PE waits too. So a
//! PE with a core of its own looks for that long at least: waits are then never much longer than they would have been
//! if it had known. Where its sleeps turn out to be short it looks longer the next time, up to a time of which a sleep
//! would be a small part. Where they are long it goes back, step by step.
//!
//! A core that others use is another matter: who looks there may keep the very process from it that has
//! what is looked for. A gap between two looks tells that; then patience is at its end, and the least again.

use std::time::Duration;

/// About what a sleep costs.
const LEAST: Duration = Duration::from_micros(30);
/// Of this a sleep is some percent.
const MOST: Duration = Duration::from_micros(500);

/// What a look is taken to last until that has been measured.
const LOOK: Duration = Duration::from_nanos(12);

/// How long a PE looks, in cycles.
#[derive(Debug)]
pub(super) struct Patience {
    now: u64,
    least: u64,
    most: u64,
}

impl Patience {
    pub fn new(cycles_per_second: f64) -> Patience {
        let cycles = |time: Duration| ((time.as_secs_f64() * cycles_per_second) as u64).max(1);
        Patience { now: cycles(LEAST), least: cycles(LEAST), most: cycles(MOST) }
    }

    /// For how long to look this time.
    pub fn cycles(&self) -> u64 {
        self.now
    }

    /// After having looked in vain the PE slept for so long, until another one woke it.
    pub fn slept(&mut self, cycles: u64) {
        let enough = self.now.saturating_add(cycles);
        self.now = match enough <= self.most {
            // As much again, since the next wait may well be longer.
            true => (2 * enough).min(self.most),
            false => (self.now / 2).max(self.least),
        };
    }

    /// So many cycles lie between two looks: whether something else has run on the core meanwhile. Then there
    /// is no more looking.
    pub fn ends_at_gap(&mut self, cycles: u64) -> bool {
        let is_interrupted = cycles > self.least;
        if is_interrupted {
            self.now = self.least;
        }
        is_interrupted
    }
}

/// How long a look for something to do lasts, in cycles: to ask for the time would take as long as the look.
#[derive(Debug)]
pub(super) struct LookTime(u64);

impl LookTime {
    pub fn new(cycles_per_second: f64) -> LookTime {
        LookTime(((LOOK.as_secs_f64() * cycles_per_second) as u64).max(1))
    }

    /// What so many looks have taken, about.
    pub fn of(&self, looks: u32) -> u64 {
        u64::from(looks) * self.0
    }

    /// So many looks have taken so many cycles. That may be much more than they need, if something else has run on
    /// the core meanwhile, so the time grows by small steps only.
    pub fn have_taken(&mut self, looks: u32, cycles: u64) {
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
