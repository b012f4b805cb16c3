//! Predictors: estimate an object's next load from its previous loads.
//!
//! A load database pushes each object's load into a [`History`] at every step, and passes the
//! history's predictions to strategies.
//!
//! | predictor | what it predicts | good for |
//! |---|---|---|
//! | `last` | the last load | load that changes slowly or for good |
//! | `mean` | the mean of the last `n` | load that scatters around a level |
//! | `median` | the median of the last `n` | the same, with outliers |
//! | `linear` | the least-squares line through the last `n`, one step on | load that grows or falls |
//!
//! They are those of DARMA vt's load models (`NaivePersistence`, `PersistenceMedianLastN`,
//! `LinearModel`) and the mean. All use the loads that exist while there are fewer than `n`, and
//! none predicts less than 0. Cost of a prediction: `n` (`n log n` for the median).
//!
//! ```
//! use lb_strategies::predict;
//!
//! let linear = predict::create("linear", &[("n", "3")])?;
//! let mut history = predict::History::new(linear);
//! for load in [9.0, 1.0, 2.0, 3.0] {
//!     history.push(7, load)?;
//! }
//! assert_eq!(history.predict(7), Some(4.0));
//! assert_eq!(history.predict(8), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    collections::{HashMap, VecDeque},
    fmt,
};

use crate::{
    config::{Config, ConfigError, Domain, Parameter},
    registry::describe,
    similar::did_you_mean,
};
use thiserror::Error;

/// A way to predict a load.
#[derive(Debug)]
pub struct Predictor {
    name: &'static str,
    help: &'static str,
    parameters: &'static [Parameter],
    /// Computes it from one or more loads, oldest first.
    next: fn(&VecDeque<f64>) -> f64,
}

/// All predictors.
const PREDICTORS: &[Predictor] = &[
    Predictor { name: "last", help: "the last load", parameters: &[], next: last },
    Predictor {
        name: "mean",
        help: "the mean of the last loads",
        parameters: &[WINDOW],
        next: mean,
    },
    Predictor {
        name: "median",
        help: "the median of the last loads: a step that stands out does not count",
        parameters: &[WINDOW],
        next: median,
    },
    Predictor {
        name: "linear",
        help: "the line through the last loads (least squares), one step on",
        parameters: &[WINDOW],
        next: linear,
    },
];

const WINDOW: Parameter = Parameter {
    name: "n",
    help: "how many of an object's loads count",
    domain: Domain::Count { default: 5, range: 1..=1000 },
};

impl Predictor {
    /// The name that users select the predictor by.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One line for users.
    #[must_use]
    pub fn help(&self) -> &'static str {
        self.help
    }

    /// The parameters that users can set.
    #[must_use]
    pub fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

/// All predictors of this crate.
#[must_use]
pub fn predictors() -> &'static [Predictor] {
    PREDICTORS
}

/// The predictor called `name`.
///
/// # Errors
///
/// If no predictor has that name.
pub fn find(name: &str) -> Result<&'static Predictor, UnknownPredictor> {
    PREDICTORS.iter().find(|it| it.name == name).ok_or_else(|| UnknownPredictor {
        name: name.to_owned(),
        known: PREDICTORS.iter().map(|it| it.name).collect(),
    })
}

/// The predictor called `name`, ready for use, with `arguments` set and defaults for the rest.
///
/// # Errors
///
/// If the predictor does not exist, has no such parameter, or does not allow the value.
pub fn create<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    arguments: &[(K, V)],
) -> Result<Forecast, PredictError> {
    let predictor = find(name)?;
    let mut config = Config::of(predictor.parameters.iter());
    for (key, value) in arguments {
        config
            .set(key.as_ref().trim(), value.as_ref().trim())
            .map_err(|error| PredictError::Argument { predictor: predictor.name, error })?;
    }
    let window = if predictor.parameters.is_empty() { 1 } else { config.count("n") };
    Ok(Forecast { predictor, window })
}

/// The user's choices: every predictor and its parameters, as text for a terminal.
#[must_use]
pub fn list() -> String {
    let mut text = String::new();
    for predictor in PREDICTORS {
        describe(&mut text, predictor.name, predictor.help, predictor.parameters);
    }
    text
}

/// A predictor with its arguments.
#[derive(Clone, Copy)]
pub struct Forecast {
    predictor: &'static Predictor,
    window: usize,
}

impl Forecast {
    /// The predictor.
    #[must_use]
    pub fn predictor(&self) -> &'static Predictor {
        self.predictor
    }

    /// The number of an object's loads that count.
    #[must_use]
    pub fn window(&self) -> usize {
        self.window
    }
}

impl Default for Forecast {
    /// Predicts the last load.
    fn default() -> Self {
        Self { predictor: &PREDICTORS[0], window: 1 }
    }
}

impl fmt::Debug for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forecast")
            .field("predictor", &self.predictor.name)
            .field("window", &self.window)
            .finish()
    }
}

/// The previous loads of objects, as many of each as the predictor uses.
///
/// Objects are identified by any number that does not change.
#[derive(Clone, Debug, Default)]
pub struct History {
    forecast: Forecast,
    loads: HashMap<u64, VecDeque<f64>>,
}

impl History {
    /// An empty history for a predictor.
    #[must_use]
    pub fn new(forecast: Forecast) -> Self {
        Self { forecast, loads: HashMap::new() }
    }

    /// Records that `object` took `load` seconds in the step that has ended.
    ///
    /// # Errors
    ///
    /// If `load` is negative, infinite or not a number; then nothing is recorded.
    pub fn push(&mut self, object: u64, load: f64) -> Result<(), BadLoad> {
        if !(load.is_finite() && load >= 0.0) {
            return Err(BadLoad { object, load });
        }
        let loads = self.loads.entry(object).or_default();
        if loads.len() == self.forecast.window {
            loads.pop_front();
        }
        loads.push_back(load);
        Ok(())
    }

    /// Seconds that `object` is expected to take in the next step: a finite number, at least 0.
    /// `None` if nothing was recorded for it.
    #[must_use]
    pub fn predict(&self, object: u64) -> Option<f64> {
        let loads = self.loads.get(&object)?;
        let last = *loads.back()?;
        let next = (self.forecast.predictor.next)(loads);
        // Sums of numbers near the end of the range leave it.
        Some(if next.is_finite() { next.max(0.0) } else { last })
    }

    /// Forgets an object that has ended.
    pub fn forget(&mut self, object: u64) {
        self.loads.remove(&object);
    }

    /// Number of objects with recorded loads.
    #[must_use]
    pub fn len(&self) -> usize {
        self.loads.len()
    }

    /// Whether nothing has been recorded yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }
}

fn last(loads: &VecDeque<f64>) -> f64 {
    loads.back().copied().unwrap_or_default()
}

fn mean(loads: &VecDeque<f64>) -> f64 {
    loads.iter().sum::<f64>() / loads.len() as f64
}

fn median(loads: &VecDeque<f64>) -> f64 {
    let mut sorted: Vec<f64> = loads.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

fn linear(loads: &VecDeque<f64>) -> f64 {
    let steps = loads.len() as f64;
    let mean_load = mean(loads);
    let mean_step = (steps - 1.0) / 2.0;
    let (mut along, mut spread) = (0.0, 0.0);
    for (step, load) in loads.iter().enumerate() {
        let off = step as f64 - mean_step;
        along += off * (load - mean_load);
        spread += off * off;
    }
    if spread == 0.0 { mean_load } else { mean_load + along / spread * (steps - mean_step) }
}

/// No predictor has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no load predictor `{name}`; predictors: {}{}",
    known.join(", "),
    did_you_mean(name, known.iter().copied())
)]
pub struct UnknownPredictor {
    name: String,
    known: Vec<&'static str>,
}

/// Why a predictor could not be created.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PredictError {
    /// No predictor has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownPredictor),
    /// The predictor does not take an argument.
    #[error("load predictor {predictor}: {error}")]
    Argument {
        /// The predictor's name.
        predictor: &'static str,
        /// What is wrong with the argument.
        #[source]
        error: ConfigError,
    },
}

/// A load that cannot be a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("object {object} is said to have taken {load} s: a load is a finite number, 0 or more")]
pub struct BadLoad {
    /// The object.
    pub object: u64,
    /// The refused load.
    pub load: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(name: &str, n: &str, loads: &[f64]) -> f64 {
        let arguments: &[(&str, &str)] = if name == "last" { &[] } else { &[("n", n)] };
        let mut history = History::new(create(name, arguments).expect("allowed"));
        for &load in loads {
            history.push(1, load).expect("a load");
        }
        history.predict(1).expect("loads were pushed")
    }

    #[test]
    fn each_predicts_what_it_says() {
        let loads = [100.0, 4.0, 1.0, 10.0, 5.0];
        assert_eq!(after("last", "", &loads), 5.0);
        assert_eq!(after("mean", "4", &loads), 5.0);
        assert_eq!(after("median", "3", &loads), 5.0);
        assert_eq!(after("median", "4", &loads), 4.5);
        assert!((after("linear", "5", &[2.0, 4.0, 6.0]) - 8.0).abs() < 1e-12);
        assert_eq!(after("linear", "5", &[3.0]), 3.0);
        assert_eq!(after("linear", "1", &[3.0, 9.0]), 9.0);
        // The line through 9, 5, 1 comes to -3.
        assert_eq!(after("linear", "3", &[9.0, 5.0, 1.0]), 0.0);
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        let refusal =
            |name, key, value| create(name, &[(key, value)]).expect_err("bad").to_string();
        assert_eq!(
            refusal("lest", "n", "1"),
            "no load predictor `lest`; predictors: last, mean, median, linear; did you mean `last`?"
        );
        assert_eq!(
            refusal("mean", "n", "0"),
            "load predictor mean: n=0: allowed is a whole number from 1 to 1000"
        );
        assert_eq!(
            refusal("last", "n", "1"),
            "load predictor last: no parameter `n`; parameters: none"
        );
        let mut history = History::default();
        assert!(history.push(3, f64::NAN).is_err() && history.is_empty());
        assert_eq!(
            history.push(3, -1.0).expect_err("negative").to_string(),
            "object 3 is said to have taken -1 s: a load is a finite number, 0 or more"
        );
    }

    #[test]
    fn the_list_names_everything() {
        let list = list();
        for predictor in predictors() {
            assert!(list.lines().any(|line| line.split(' ').next() == Some(predictor.name())));
        }
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let mut history = History::default();
        history.push(1, 1.0).expect("a load");
        history.push(2, 1.0).expect("a load");
        history.forget(1);
        assert_eq!((history.len(), history.predict(1), history.predict(2)), (1, None, Some(1.0)));
    }

    proptest! {
        #[test]
        fn predictions_are_loads_and_only_the_window_counts(
            old in prop::collection::vec(0.0..1e308_f64, 0..5),
            new in prop::collection::vec(0.0..1e3_f64, 1..20),
        ) {
            for predictor in predictors() {
                let n = new.len().to_string();
                let all: Vec<f64> = old.iter().chain(&new).copied().collect();
                let next = after(predictor.name(), &n, &all);
                prop_assert!(next.is_finite() && next >= 0.0);
                prop_assert_eq!(next, after(predictor.name(), &n, &new));
                let huge = after(predictor.name(), "1000", &all);
                prop_assert!(huge.is_finite() && huge >= 0.0);
            }
        }

        #[test]
        fn a_constant_load_goes_on(load in 0.0..1e6_f64, steps in 1_usize..30, n in 1_u64..30) {
            for predictor in predictors() {
                let next = after(predictor.name(), &n.to_string(), &vec![load; steps]);
                prop_assert!((next - load).abs() <= 1e-9 * load);
            }
        }

        #[test]
        fn mean_and_median_stay_within_what_was(
            loads in prop::collection::vec(0.0..1e3_f64, 1..30),
        ) {
            let low = loads.iter().copied().fold(f64::INFINITY, f64::min);
            let high = loads.iter().copied().fold(0.0, f64::max);
            for name in ["mean", "median"] {
                let next = after(name, "1000", &loads);
                prop_assert!(low * (1.0 - 1e-12) <= next && next <= high * (1.0 + 1e-12));
            }
        }

        #[test]
        fn a_line_goes_on(first in 0.0..1e3_f64, step in 0.0..1e2_f64, count in 2_usize..30) {
            let loads: Vec<f64> = (0..count).map(|it| first + step * it as f64).collect();
            let next = after("linear", "1000", &loads);
            let expected = first + step * count as f64;
            prop_assert!((next - expected).abs() <= 1e-9 * (1.0 + expected));
        }
    }
}
