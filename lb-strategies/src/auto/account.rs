//! What all trials of a job have brought and cost, as [`Auto`](super::Auto) keeps count of it.

use super::compare::Change;

/// What has come of all trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Seconds of all samples.
    pub seconds: f64,
    /// Placements that were tried, those that stayed because they were better, those of which nobody can
    /// tell, and those that were taken back.
    pub tried: u32,
    /// See there.
    pub kept: u32,
    /// See there.
    pub unclear: u32,
    /// See there.
    pub taken_back: u32,
    /// Seconds that were gained by where objects were, not where they began: by the model, as far as it was
    /// right in the trials; less those that trials have cost that were taken back.
    pub gained: f64,
    /// One standard error of that.
    pub spread: f64,
    /// By how much the rate that came differed from the promised one, as a part of that, for each trial that
    /// was decided.
    pub errors: Vec<f64>,
    /// What was kept last.
    pub last_kept: Option<String>,
    /// Seconds that the model says were gained, and those that trials have cost.
    pub(super) by_model: f64,
    pub(super) lost: f64,
    /// What was measured in the trials that were kept, over what was promised; how many, and the square of
    /// the standard error.
    measured: f64,
    promised: f64,
    uncertain: f64,
}

/// What was measured is taken for so many times what the model says at most: other things have changed, too.
const MOST_KEPT: f64 = 1.5;

impl Account {
    /// By how much the rate that came differed from the promised one, as a part of that: the median of all
    /// trials that were decided, if any was.
    #[must_use]
    pub fn median_error(&self) -> Option<f64> {
        let mut errors: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied()
    }

    pub(super) fn keeps(&mut self, name: &str, promised: f64, change: Change) {
        self.kept += 1;
        self.last_kept = Some(name.to_owned());
        // What was learned promises nothing that the model knows.
        if promised > 0.0 {
            self.measured += change.gain;
            self.promised += promised;
            self.uncertain += change.spread.powi(2);
        }
    }

    pub(super) fn takes_back(&mut self, change: Change, seconds: f64) {
        self.taken_back += 1;
        self.lost -= change.gain * seconds;
        self.estimate();
    }

    pub(super) fn estimate(&mut self) {
        let (kept, error) = match self.promised > 0.0 {
            true => {
                let kept = (self.measured / self.promised).clamp(0.0, MOST_KEPT);
                (kept, self.uncertain.sqrt() / self.promised)
            }
            false => (1.0, 0.0),
        };
        self.gained = self.by_model * kept - self.lost;
        self.spread = self.by_model.abs() * error;
    }
}

/// By how much a rate that is larger by the part `came` than before differs from one that was promised to be larger
/// by `promised`, as a part of that.
///
/// ```
/// use lb_strategies::auto::relative_error;
///
/// // A quarter more was promised, and nothing came.
/// assert!((relative_error(0.25, 0.0) + 0.2).abs() < 1e-12);
/// ```
#[must_use]
pub fn relative_error(promised: f64, came: f64) -> f64 {
    (1.0 + came) / (1.0 + promised) - 1.0
}
