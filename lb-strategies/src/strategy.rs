//! What every strategy offers, and its parameters.
//!
//! A strategy is a pure function of a model, a configuration and a seed, so that it does the
//! same online, in a replay and in a test. Its parameters are a table, from which their checks,
//! defaults and help texts come.

use crate::{assignment::Assignment, model::LoadModel};
use std::ops::RangeInclusive;
use thiserror::Error;

/// A way to place objects.
pub trait Strategy: Sync {
    /// The name by which users ask for the strategy: lower case, no spaces.
    fn name(&self) -> &'static str;

    /// One line for users: what the strategy does and what it is good for.
    fn help(&self) -> &'static str;

    /// The parameters that a [`Config`] for this strategy may set.
    fn parameters(&self) -> &'static [Parameter];

    /// Places the objects of `model`.
    ///
    /// The same arguments give the same assignment on every machine. `seed` is for strategies
    /// that draw lots; the others ignore it. Objects that cannot move stay.
    fn assign(&self, model: &LoadModel, config: &Config, seed: u64) -> Assignment;
}

/// A number that a user may set.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name in `name=value`.
    pub name: &'static str,
    /// One line for users.
    pub help: &'static str,
    /// Value when nothing is set.
    pub default: f64,
    /// Values that are allowed.
    pub range: RangeInclusive<f64>,
}

/// A value for each parameter of one strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    parameters: &'static [Parameter],
    values: Vec<f64>,
}

impl Config {
    /// The defaults of `strategy`.
    #[must_use]
    pub fn new(strategy: &dyn Strategy) -> Self {
        let parameters = strategy.parameters();
        Self { parameters, values: parameters.iter().map(|it| it.default).collect() }
    }

    /// The defaults of `strategy`, changed by `text`: `name=value,name=value`, possibly empty.
    ///
    /// # Errors
    ///
    /// If a part of `text` is not a parameter of the strategy with an allowed value.
    pub fn parse(strategy: &dyn Strategy, text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::new(strategy);
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)))
                .ok_or_else(|| ConfigError::Malformed { part: part.to_owned() })?;
            config.set(name, value)?;
        }
        Ok(config)
    }

    /// Sets one parameter.
    ///
    /// # Errors
    ///
    /// If the strategy has no such parameter or does not allow the value.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), ConfigError> {
        let Some(index) = self.parameters.iter().position(|it| it.name == name) else {
            let names: Vec<_> = self.parameters.iter().map(|it| it.name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(ConfigError::Unknown { name: name.to_owned(), known });
        };
        let parameter = &self.parameters[index];
        if !parameter.range.contains(&value) {
            let (low, high) = (*parameter.range.start(), *parameter.range.end());
            return Err(ConfigError::OutOfRange { name: parameter.name, value, low, high });
        }
        self.values[index] = value;
        Ok(())
    }

    /// The value of a parameter.
    ///
    /// # Panics
    ///
    /// If the strategy that this configuration was made for has no parameter `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> f64 {
        match self.parameters.iter().position(|it| it.name == name) {
            Some(index) => self.values[index],
            None => panic!("the configuration of another strategy: it has no parameter {name}"),
        }
    }
}

/// Why a [`Config`] was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// Not of the form `name=number`.
    #[error("`{part}` is not of the form name=number")]
    Malformed {
        /// The part between two commas.
        part: String,
    },
    /// The strategy has no such parameter.
    #[error("no parameter `{name}`; parameters: {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The value is outside the allowed range.
    #[error("{name}={value}: allowed are {low} to {high}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The refused value.
        value: f64,
        /// Smallest allowed value.
        low: f64,
        /// Largest allowed value.
        high: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{greedy::Greedy, null::Null};

    #[test]
    fn text_changes_defaults() {
        assert_eq!(Config::parse(&Greedy, "").expect("empty").get("home-bias"), 0.0);
        let config = Config::parse(&Greedy, " home-bias = 0.25 ,").expect("allowed");
        assert_eq!(config.get("home-bias"), 0.25);
        assert_eq!(config.get("minimum-gain"), 0.0);
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        let refusal = |text| Config::parse(&Greedy, text).expect_err("must be refused").to_string();
        assert_eq!(refusal("home-bias"), "`home-bias` is not of the form name=number");
        assert_eq!(refusal("home-bias=x"), "`home-bias=x` is not of the form name=number");
        assert_eq!(refusal("bias=1"), "no parameter `bias`; parameters: home-bias, minimum-gain");
        assert_eq!(refusal("minimum-gain=2"), "minimum-gain=2: allowed are 0 to 1");
        assert_eq!(refusal("minimum-gain=NaN"), "minimum-gain=NaN: allowed are 0 to 1");
        let refusal = Config::parse(&Null, "x=1").expect_err("must be refused").to_string();
        assert_eq!(refusal, "no parameter `x`; parameters: none");
    }
}
