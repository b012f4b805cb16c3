//! The gains and costs of all trials of a job, as [`Auto`](super::Auto) records them.

use super::compare::Change;

/// The result of all trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Seconds of all samples.
    pub seconds: f64,
    /// Placements that were tried, kept because they were better, undecided, and undone.
    pub tried: u32,
    /// See there.
    pub kept: u32,
    /// See there.
    pub unclear: u32,
    /// See there.
    pub taken_back: u32,
    /// Seconds gained by the objects' placement over their initial one: as predicted by the model, corrected by how
    /// accurate it was in the trials; minus the cost of trials that were undone.
    pub gained: f64,
    /// One standard error of `gained`.
    pub spread: f64,
    /// The relative difference between the measured and the predicted rate, for each trial that was decided.
    pub errors: Vec<f64>,
    /// The strategy that was kept last.
    pub last_kept: Option<String>,
    /// Seconds gained according to the model, and seconds that trials cost.
    pub(super) by_model: f64,
    pub(super) lost: f64,
    /// The measured gains of the trials that were kept, over the predicted ones; their number, and the square of the
    /// standard error.
    measured: f64,
    promised: f64,
    uncertain: f64,
}

/// A measured gain counts for at most this many times the predicted one: other things have changed, too.
const MOST_KEPT: f64 = 1.5;

impl Account {
    /// The relative difference between the measured and the predicted rate: the median of all decided trials, if there
    /// was one.
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

/// The relative difference between a rate that grew by the part `came` and one that was predicted to grow by
/// `promised`.
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
