//! All strategies, by name.

use crate::{greedy::Greedy, null::Null, strategy::Strategy};
use thiserror::Error;

/// All strategies of this crate.
#[must_use]
pub fn strategies() -> &'static [&'static dyn Strategy] {
    &[&Null, &Greedy]
}

/// The strategy called `name`.
///
/// # Errors
///
/// If there is none of that name.
pub fn find(name: &str) -> Result<&'static dyn Strategy, UnknownStrategy> {
    strategies().iter().find(|it| it.name() == name).copied().ok_or_else(|| UnknownStrategy {
        name: name.to_owned(),
        known: strategies().iter().map(|it| it.name()).collect::<Vec<_>>().join(", "),
    })
}

/// There is no strategy of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no load-balancing strategy `{name}`; strategies: {known}")]
pub struct UnknownStrategy {
    name: String,
    known: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_found_by_its_own_name_only() {
        for strategy in strategies() {
            assert_eq!(find(strategy.name()).map(Strategy::name).ok(), Some(strategy.name()));
            assert!(strategy.name().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
            for parameter in strategy.parameters() {
                assert!(parameter.range.contains(&parameter.default), "{}", parameter.name);
            }
        }
        let error = find("gready").map(Strategy::name).expect_err("no such strategy");
        assert_eq!(
            error.to_string(),
            "no load-balancing strategy `gready`; strategies: null, greedy"
        );
    }
}
