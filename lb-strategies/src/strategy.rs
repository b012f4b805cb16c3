//! The interface of every strategy, and the guarantees that every strategy gives.
//!
//! A strategy is a pure function of a model, a configuration and a seed, so that it does the same
//! online, in a replay and in a test. An author writes [`Strategy::propose`]; users call
//! [`Strategy::assign`], which enforces the guarantees for all strategies:
//!
//! 1. objects that cannot move stay;
//! 2. the predicted load of the busiest PE is never above today's;
//! 3. there is no move without a gain: either that load falls, or, for a strategy that heeds
//!    communication, the bytes between PEs do, by more than rounding and by at least the part that
//!    the user requested;
//! 4. no move costs more than it gains within the user's horizon;
//! 5. objects of equal load are exchangeable: unless the strategy heeds communication, as many as
//!    possible stay, and among a PE's equal objects the smallest ones move.
//!
//! Strategies that are *chaos* exist to test a runtime's migration. They give only the first
//! guarantee.

use crate::{
    assignment::Assignment,
    config::{Config, Parameter},
    model::{LoadModel, MoveCost},
    order::{Order, by_home},
    ties::settle,
};

/// A smaller relative change is rounding of a sum, not a gain.
pub(crate) const ROUNDING: f64 = 1e-9;

/// A way to place objects.
pub trait Strategy: Sync {
    /// The name that users select the strategy by: lower case, no spaces.
    fn name(&self) -> &'static str;

    /// One line for users: what the strategy does and what it is good for.
    fn help(&self) -> &'static str;

    /// The strategy's own parameters. A [`Config`] also has the [common](crate::config::COMMON)
    /// ones.
    fn parameters(&self) -> &'static [Parameter];

    /// Whether the strategy moves objects for the sake of moving, however bad that is for balance.
    /// Only strategies for tests do.
    fn is_chaos(&self) -> bool {
        false
    }

    /// Whether less communication between PEs is worth moves at equal balance.
    fn heeds_communication(&self) -> bool {
        false
    }

    /// The strategy's proposal: a PE for each object.
    ///
    /// The same arguments give the same proposal on every machine. `seed` is for randomised
    /// strategies; the others ignore it. The proposal for objects that cannot move does not matter:
    /// they stay.
    fn propose(&self, model: &LoadModel, config: &Config, seed: u64) -> Vec<usize>;

    /// Places the objects of `model`: as proposed if that satisfies the guarantees of this module,
    /// otherwise as today.
    ///
    /// # Panics
    ///
    /// If the proposal is not one PE of the model for each object: a bug in the strategy.
    fn assign(&self, model: &LoadModel, config: &Config, seed: u64) -> Assignment {
        let mut pes = self.propose(model, config, seed);
        for (pe, object) in pes.iter_mut().zip(model.objects()) {
            if !object.migratable {
                *pe = object.pe;
            }
        }
        if !self.is_chaos() && !self.heeds_communication() {
            settle(model, &Order::falling(model, by_home(model)), &mut pes);
        }
        let proposed = Assignment::new(model, pes)
            .expect("a strategy proposes a PE of the model for each of its objects");
        if self.is_chaos() || is_worth_it(model, config, &proposed, self.heeds_communication()) {
            proposed
        } else {
            Assignment::today(model)
        }
    }
}

/// Whether `proposed` satisfies guarantees 2 to 4.
fn is_worth_it(
    model: &LoadModel,
    config: &Config,
    proposed: &Assignment,
    heeds_communication: bool,
) -> bool {
    let today = Assignment::today(model);
    let busiest = today.max_load(model);
    let mut saved = busiest - proposed.max_load(model);
    if saved < 0.0 {
        return false;
    }
    let least = config.number("minimum-gain").max(ROUNDING);
    let mut gains = saved > busiest * least;
    if !gains {
        saved = 0.0;
    }
    if heeds_communication {
        let (before, after) = (today.remote_bytes(model), proposed.remote_bytes(model));
        if (after as f64) < before as f64 * (1.0 - least) {
            gains = true;
            saved +=
                model.move_cost().per_byte * (before - after) as f64 / model.pes().len() as f64;
        }
    }
    if !gains || model.move_cost() == MoveCost::default() {
        return gains;
    }
    let spent = proposed.move_seconds(model);
    spent == 0.0 || saved * config.number("horizon") > spent
}

/// The cost of a move, per period of the user's horizon.
pub(crate) struct Price<'a> {
    model: &'a LoadModel,
    horizon: f64,
    is_free: bool,
}

impl<'a> Price<'a> {
    pub(crate) fn new(model: &'a LoadModel, config: &Config) -> Self {
        let is_free = model.move_cost() == MoveCost::default();
        Self { model, horizon: config.number("horizon"), is_free }
    }

    /// Seconds for `object`.
    pub(crate) fn of(&self, object: usize) -> f64 {
        if self.is_free {
            return 0.0;
        }
        let cost = self.model.move_cost().seconds(self.model.objects()[object].bytes);
        if cost > 0.0 { cost / self.horizon } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        greedy::Greedy,
        model::{Object, Pe},
    };

    #[test]
    fn what_costs_more_than_it_gains_is_left() {
        let objects = vec![Object::new(1.0, 0).with_bytes(100); 2];
        let cost = MoveCost { fixed: 1.0, per_byte: 0.01 };
        let model = LoadModel::new(vec![Pe::default(); 2], objects, vec![])
            .and_then(|model| model.with_move_cost(cost))
            .expect("sound");
        // The one move gains a second in each period and costs two.
        let moves = |text: &str| {
            let config = Config::parse(&Greedy, text).expect("allowed");
            Greedy.assign(&model, &config, 0).moves(&model).count()
        };
        assert_eq!(moves("horizon=1.9"), 0);
        assert_eq!(moves("horizon=2.1"), 1);
    }
}
