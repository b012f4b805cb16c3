//! All strategies, by name.

use std::fmt::Write;

use crate::{
    assignment::Assignment,
    auto,
    chaos::{Pile, Random, Rotate},
    config::{COMMON, Config, ConfigError, Parameter},
    diffusion::Diffusion,
    gossip::Gossip,
    graph_bisection::GraphBisection,
    greedy::Greedy,
    greedy_comm::GreedyComm,
    greedy_refine::GreedyRefine,
    hierarchical::Hierarchical,
    hilbert::Hilbert,
    model::LoadModel,
    null::Null,
    orb::Orb,
    refine::Refine,
    similar::did_you_mean,
    strategy::Strategy,
};
use thiserror::Error;

/// All strategies of this crate.
#[must_use]
pub fn strategies() -> &'static [&'static dyn Strategy] {
    &[
        &Null,
        &Rotate,
        &Random,
        &Pile,
        &Greedy,
        &GreedyRefine,
        &Refine,
        &GreedyComm,
        &GraphBisection,
        &Orb,
        &Hilbert,
        &Diffusion,
        &Gossip,
        &Hierarchical,
        #[cfg(feature = "metis")]
        &crate::metis::Metis,
    ]
}

/// The strategy called `name`.
///
/// # Errors
///
/// If no strategy has that name.
pub fn find(name: &str) -> Result<&'static dyn Strategy, UnknownStrategy> {
    strategies().iter().find(|it| it.name() == name).copied().ok_or_else(|| UnknownStrategy {
        name: name.to_owned(),
        known: strategies().iter().map(|it| it.name()).collect(),
    })
}

/// The strategy called `name`, ready for use, with `arguments` set and the defaults for the rest.
///
/// # Errors
///
/// If the strategy does not exist, has no such parameter, or does not allow the value.
pub fn create<K: AsRef<str>, V: AsRef<str>>(
    name: &str,
    arguments: &[(K, V)],
) -> Result<Balancer, CreateError> {
    let strategy = find(name)?;
    let mut config = Config::new(strategy);
    for (key, value) in arguments {
        config
            .set(key.as_ref().trim(), value.as_ref().trim())
            .map_err(|error| CreateError::Argument { strategy: strategy.name(), error })?;
    }
    Ok(Balancer { strategy, config })
}

/// A strategy with its configuration.
#[derive(Clone)]
pub struct Balancer {
    strategy: &'static dyn Strategy,
    config: Config,
}

impl Balancer {
    /// The strategy.
    #[must_use]
    pub fn strategy(&self) -> &'static dyn Strategy {
        self.strategy
    }

    /// The values of its parameters.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Places the objects of `model`; see [`Strategy::assign`].
    #[must_use]
    pub fn assign(&self, model: &LoadModel, seed: u64) -> Assignment {
        self.strategy.assign(model, &self.config, seed)
    }
}

impl std::fmt::Debug for Balancer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Balancer")
            .field("strategy", &self.strategy.name())
            .field("config", &self.config)
            .finish()
    }
}

/// The user's choices: every strategy and its parameters, as text for a terminal.
#[must_use]
pub fn list() -> String {
    let mut text = String::new();
    describe(&mut text, auto::NAME, auto::HELP, auto::PARAMETERS);
    for strategy in strategies() {
        let chaos = if strategy.is_chaos() { " [for tests: may make things worse]" } else { "" };
        let help = format!("{}{chaos}", strategy.help());
        describe(&mut text, strategy.name(), &help, strategy.parameters());
    }
    text.push_str("\nevery strategy that is not for tests also has\n");
    parameters(&mut text, COMMON);
    text
}

/// Writes the help of `name` and its parameters.
pub(crate) fn describe(
    text: &mut String,
    name: &str,
    help: &str,
    parameters: &'static [Parameter],
) {
    entry(text, 0, name, help);
    self::parameters(text, parameters);
}

fn parameters(text: &mut String, parameters: &[Parameter]) {
    for Parameter { name, help, domain } in parameters {
        let key = format!("{name}={}", domain.default_text());
        entry(text, 4, &key, &format!("{help}; {}", domain.allowed()));
    }
}

/// Writes a name and its help beside it, wrapped.
fn entry(text: &mut String, indent: usize, name: &str, help: &str) {
    const COLUMN: usize = 26;
    const WIDTH: usize = 100;
    let mut line = format!("{:indent$}{name:<rest$}", "", rest = COLUMN - 1 - indent);
    for word in help.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(COLUMN - 1);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

/// No strategy has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no load-balancing strategy `{name}`; strategies: {}{}",
    known.join(", "),
    did_you_mean(name, known.iter().copied())
)]
pub struct UnknownStrategy {
    name: String,
    known: Vec<&'static str>,
}

impl UnknownStrategy {
    /// Adds another allowed name, which is listed first.
    #[must_use]
    pub fn or(mut self, name: &'static str) -> Self {
        self.known.insert(0, name);
        self
    }
}

/// Why a strategy could not be created.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CreateError {
    /// No strategy has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownStrategy),
    /// The strategy does not take an argument.
    #[error("load-balancing strategy {strategy}: {error}")]
    Argument {
        /// The strategy's name.
        strategy: &'static str,
        /// What is wrong with the argument.
        #[source]
        error: ConfigError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_found_by_its_own_name_only() {
        for strategy in strategies() {
            assert_eq!(find(strategy.name()).map(Strategy::name).ok(), Some(strategy.name()));
            assert!(strategy.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
        }
        let error = find("gready").map(Strategy::name).expect_err("no such strategy").to_string();
        let start =
            "no load-balancing strategy `gready`; strategies: null, rotate, random, pile, greedy, ";
        assert!(error.starts_with(start), "{error}");
        assert!(error.ends_with("; did you mean `greedy`?"), "{error}");
        let error = find("aut").map(Strategy::name).expect_err("no such strategy").or("auto");
        let error = error.to_string();
        assert!(error.contains("strategies: auto, null") && error.ends_with("`auto`?"), "{error}");
    }

    #[test]
    fn defaults_are_allowed_and_names_are_unique() {
        for strategy in strategies() {
            let mut config = Config::new(*strategy);
            let mut names = vec![];
            for Parameter { name, domain, .. } in strategy.parameters().iter().chain(COMMON) {
                assert!(!names.contains(name), "{}: {name}", strategy.name());
                names.push(name);
                if !strategy.is_chaos() {
                    assert_eq!(config.set(name, &domain.default_text()), Ok(()), "{name}");
                }
            }
            assert_eq!(config, Config::new(*strategy));
        }
    }

    #[test]
    fn creates_with_arguments_or_says_why_not() {
        let greedy = create("greedy", &[("home-bias", "0.5")]).expect("allowed");
        assert_eq!(greedy.config().number("home-bias"), 0.5);
        let refusal =
            |name, key, value| create(name, &[(key, value)]).expect_err("bad").to_string();
        assert!(refusal("gready", "", "").starts_with("no load-balancing strategy `gready`"));
        assert_eq!(
            refusal("greedy", "bias", "1"),
            "load-balancing strategy greedy: no parameter `bias`; parameters: home-bias, \
             minimum-gain, horizon"
        );
        assert_eq!(
            refusal("greedy", "home-bias", "lots"),
            "load-balancing strategy greedy: home-bias=lots: allowed is a number from 0 to 1"
        );
    }

    #[test]
    fn the_list_names_everything() {
        let list = list();
        for strategy in strategies() {
            assert!(list.lines().any(|line| line.split(' ').next() == Some(strategy.name())));
            for parameter in strategy.parameters() {
                let key = format!("    {}={}", parameter.name, parameter.domain.default_text());
                assert!(list.lines().any(|line| line.starts_with(&key)), "{key}");
            }
        }
        assert!(list.lines().all(|line| line.len() <= 100), "{list}");
    }
}
