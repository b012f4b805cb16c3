//! Parameters of strategies and predictors: one table each, used for parsing, checks, defaults and help.

use std::ops::RangeInclusive;
use thiserror::Error;

use crate::similar::did_you_mean;
use crate::strategy::Strategy;

/// Something that a user may set, as `name=value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: &'static str,
    /// One line for users.
    pub help: &'static str,
    /// The valid values, and the default.
    pub domain: Domain,
}

/// The valid values of a parameter, and its default.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// A number.
    Number {
        /// The default.
        default: f64,
        /// The allowed range.
        range: RangeInclusive<f64>,
    },
    /// A whole number.
    Count {
        /// The default.
        default: u64,
        /// The allowed range.
        range: RangeInclusive<u64>,
    },
    /// A word.
    Choice {
        /// The default.
        default: &'static str,
        /// The allowed words.
        of: &'static [&'static str],
    },
}

impl Domain {
    /// The default, as a user would write it.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self {
            Self::Number { default, .. } => default.to_string(),
            Self::Count { default, .. } => default.to_string(),
            Self::Choice { default, .. } => (*default).to_owned(),
        }
    }

    /// The allowed values, in words.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self {
            Self::Number { range, .. } => {
                format!("a number from {} to {}", range.start(), range.end())
            }
            Self::Count { range, .. } if *range.end() == u64::MAX => {
                format!("a whole number, {} or more", range.start())
            }
            Self::Count { range, .. } => {
                format!("a whole number from {} to {}", range.start(), range.end())
            }
            Self::Choice { of, .. } => format!("one of {}", of.join(", ")),
        }
    }

    /// A suggestion for a value that is not allowed, as the end of a message.
    fn meant(&self, text: &str) -> String {
        match self {
            Self::Choice { of, .. } => did_you_mean(text, of.iter().copied()),
            _ => String::new(),
        }
    }

    fn default(&self) -> Setting {
        match self {
            Self::Number { default, .. } => Setting::Number(*default),
            Self::Count { default, .. } => Setting::Count(*default),
            Self::Choice { default, .. } => Setting::Choice(default),
        }
    }

    fn parse(&self, text: &str) -> Option<Setting> {
        match self {
            Self::Number { range, .. } => {
                text.parse().ok().filter(|it| range.contains(it)).map(Setting::Number)
            }
            Self::Count { range, .. } => {
                text.parse().ok().filter(|it| range.contains(it)).map(Setting::Count)
            }
            Self::Choice { of, .. } => {
                of.iter().find(|it| **it == text).copied().map(Setting::Choice)
            }
        }
    }
}

/// Parameters, besides its own, of every strategy that is not [chaos](Strategy::is_chaos): they
/// decide when its proposal is worth the moves.
pub const COMMON: &[Parameter] = &[
    Parameter {
        name: "minimum-gain",
        help: "nothing moves unless the load of the busiest PE (or, for a strategy that heeds \
               communication, the bytes between PEs) falls by this part",
        domain: Domain::Number { default: 0.0, range: 0.0..=1.0 },
    },
    Parameter {
        name: "horizon",
        help: "periods for which a new placement is taken to last: nothing moves unless it gains \
               more in them than the moves cost",
        domain: Domain::Number { default: 10.0, range: 0.0..=1e9 },
    },
];

/// A value for each parameter of one strategy or predictor.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    values: Vec<(&'static Parameter, Setting)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Setting {
    Number(f64),
    Count(u64),
    Choice(&'static str),
}

impl Config {
    /// The defaults of `strategy`.
    #[must_use]
    pub fn new(strategy: &dyn Strategy) -> Self {
        let common = if strategy.is_chaos() { &[] } else { COMMON };
        Self::of(strategy.parameters().iter().chain(common))
    }

    /// The defaults of `parameters`.
    pub(crate) fn of(parameters: impl Iterator<Item = &'static Parameter>) -> Self {
        Self { values: parameters.map(|it| (it, it.domain.default())).collect() }
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
                .ok_or_else(|| ConfigError::Malformed { part: part.to_owned() })?;
            config.set(name.trim(), value.trim())?;
        }
        Ok(config)
    }

    /// Sets one parameter.
    ///
    /// # Errors
    ///
    /// If the strategy has no such parameter or does not allow the value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let Some(index) = self.values.iter().position(|(it, _)| it.name == name) else {
            let names: Vec<_> = self.values.iter().map(|(it, _)| it.name).collect();
            return Err(ConfigError::Unknown { name: name.to_owned(), known: names });
        };
        let (parameter, slot) = &mut self.values[index];
        *slot = parameter.domain.parse(value).ok_or_else(|| ConfigError::Value {
            name: parameter.name,
            value: value.to_owned(),
            allowed: parameter.domain.allowed(),
            meant: parameter.domain.meant(value),
        })?;
        Ok(())
    }

    /// The value of a parameter that is a number.
    ///
    /// # Panics
    ///
    /// If the strategy that this configuration was made for has no such number.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Some(Setting::Number(it)) => it,
            other => panic!("the configuration of another strategy: its {name} is {other:?}"),
        }
    }

    /// The value of a parameter that is a whole number.
    ///
    /// # Panics
    ///
    /// If the strategy that this configuration was made for has no such whole number.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        match self.value(name) {
            Some(Setting::Count(it)) => usize::try_from(it).unwrap_or(usize::MAX),
            other => panic!("the configuration of another strategy: its {name} is {other:?}"),
        }
    }

    /// The value of a parameter that is a word.
    ///
    /// # Panics
    ///
    /// If the strategy that this configuration was made for has no such word.
    #[must_use]
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Some(Setting::Choice(it)) => it,
            other => panic!("the configuration of another strategy: its {name} is {other:?}"),
        }
    }

    fn value(&self, name: &str) -> Option<Setting> {
        self.values.iter().find(|(it, _)| it.name == name).map(|(_, value)| *value)
    }
}

/// Why a [`Config`] was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ConfigError {
    /// A part is not of the form `name=value`.
    #[error("`{part}` is not of the form name=value")]
    Malformed {
        /// The part between two commas.
        part: String,
    },
    /// The strategy has no such parameter.
    #[error(
        "no parameter `{name}`; parameters: {}{}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") },
        did_you_mean(name, known.iter().copied())
    )]
    Unknown {
        /// The given name.
        name: String,
        /// The names of existing parameters.
        known: Vec<&'static str>,
    },
    /// The value is not allowed.
    #[error("{name}={value}: allowed is {allowed}{meant}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The refused value.
        value: String,
        /// The allowed values, in words.
        allowed: String,
        /// A suggestion, as the end of the message.
        meant: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chaos::Rotate, greedy::Greedy};

    #[test]
    fn text_changes_defaults() {
        assert_eq!(Config::parse(&Greedy, "").expect("empty").number("home-bias"), 0.0);
        let config = Config::parse(&Greedy, " home-bias = 0.25 ,").expect("allowed");
        assert_eq!(config.number("home-bias"), 0.25);
        assert_eq!(config.number("minimum-gain"), 0.0);
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        let refusal = |text| Config::parse(&Greedy, text).expect_err("must be refused").to_string();
        assert_eq!(refusal("home-bias"), "`home-bias` is not of the form name=value");
        let number = "allowed is a number from 0 to 1";
        assert_eq!(refusal("home-bias=x"), format!("home-bias=x: {number}"));
        assert_eq!(refusal("minimum-gain=2"), format!("minimum-gain=2: {number}"));
        assert_eq!(refusal("minimum-gain=NaN"), format!("minimum-gain=NaN: {number}"));
        assert_eq!(
            refusal("bias=1"),
            "no parameter `bias`; parameters: home-bias, minimum-gain, horizon"
        );
        let refusal = Config::parse(&Rotate, "by=-1").expect_err("must be refused").to_string();
        assert_eq!(refusal, "by=-1: allowed is a whole number, 1 or more");
    }
}
