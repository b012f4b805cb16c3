//! What an assignment saves in each period, and what its moves cost once.
//!
//! A runtime that decides whether to balance compares the two over the number of periods for which
//! it expects a placement to last.

use crate::{assignment::Assignment, model::LoadModel, model::MoveCost};

/// The predicted saving and cost of an assignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Seconds by which each period gets shorter: the load of the busiest PE today minus the load
    /// of the busiest PE as assigned. Negative if the period gets longer.
    pub saved: f64,
    /// Seconds, once, on the PE that sends and receives most.
    pub spent: f64,
}

impl Gain {
    /// Whether the moves are paid back within `periods` periods.
    ///
    /// An assignment that saves nothing is never worth its moves, even if they are free.
    #[must_use]
    pub fn pays_within(&self, periods: f64) -> bool {
        self.saved > 0.0 && (self.spent == 0.0 || self.saved * periods > self.spent)
    }

    /// The number of periods after which the saving equals the cost; `None` if never.
    #[must_use]
    pub fn break_even(&self) -> Option<f64> {
        (self.saved > 0.0).then(|| self.spent / self.saved)
    }
}

/// Compares `assignment` with today's placement if moves have this `cost`.
///
/// The model's own [move cost](LoadModel::move_cost) is not used. Cost: `n + p`.
///
/// # Panics
///
/// If `assignment` is for another model.
#[must_use]
pub fn gain(model: &LoadModel, assignment: &Assignment, cost: MoveCost) -> Gain {
    let today = Assignment::today(model).max_load(model);
    Gain {
        saved: today - assignment.max_load(model),
        spent: assignment.move_seconds_at(model, cost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Object, Pe};

    fn two_objects() -> LoadModel {
        let objects = vec![Object::new(2.0, 0).with_bytes(100), Object::new(1.0, 0)];
        LoadModel::new(vec![Pe::default(); 2], objects, vec![]).expect("sound")
    }

    #[test]
    fn a_move_pays_after_as_many_periods_as_it_takes() {
        let model = two_objects();
        let cost = MoveCost { fixed: 1.0, per_byte: 0.02 };
        let moved = Assignment::new(&model, vec![1, 0]).expect("allowed");
        let gain = gain(&model, &moved, cost);
        assert_eq!(gain, Gain { saved: 1.0, spent: 3.0 });
        assert_eq!(gain.break_even(), Some(3.0));
        assert!(!gain.pays_within(3.0) && gain.pays_within(3.1));
    }

    #[test]
    fn what_saves_nothing_never_pays() {
        let model = two_objects();
        let gain = gain(&model, &Assignment::today(&model), MoveCost::default());
        assert_eq!(gain, Gain { saved: 0.0, spent: 0.0 });
        assert_eq!(gain.break_even(), None);
        assert!(!gain.pays_within(f64::INFINITY));
        let both = Assignment::new(&model, vec![1, 1]).expect("allowed");
        assert!(!super::gain(&model, &both, MoveCost::default()).pays_within(1e9));
    }
}
