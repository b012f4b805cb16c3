//! The answer of a strategy: the PE of each object, and the predictions that follow from it.

use crate::model::{LoadModel, MoveCost};
use thiserror::Error;

/// A PE for every object.
///
/// Predictions are for the period that the model measured: the load of a PE is its background load
/// plus, for each object on it, the object's load divided by the PE's speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pes: Vec<usize>,
}

impl Assignment {
    /// Today's assignment: every object on its current PE.
    #[must_use]
    pub fn today(model: &LoadModel) -> Self {
        Self { pes: model.objects().iter().map(|object| object.pe).collect() }
    }

    /// Assigns object `i` to PE `pes[i]`.
    ///
    /// # Errors
    ///
    /// If `pes` does not contain one PE of the model for each of its objects, or moves an object
    /// that cannot move.
    pub fn new(model: &LoadModel, pes: Vec<usize>) -> Result<Self, AssignmentError> {
        let (objects, count) = (model.objects(), model.pes().len());
        if pes.len() != objects.len() {
            return Err(AssignmentError::Length { given: pes.len(), objects: objects.len() });
        }
        for (object, (&pe, today)) in pes.iter().zip(objects).enumerate() {
            if pe >= count {
                return Err(AssignmentError::NoSuchPe { object, pe, pes: count });
            }
            if pe != today.pe && !today.migratable {
                return Err(AssignmentError::Pinned { object, home: today.pe, pe });
            }
        }
        Ok(Self { pes })
    }

    /// The PE of each object, by the object's number.
    #[must_use]
    pub fn pes(&self) -> &[usize] {
        &self.pes
    }

    /// The same, as an owned list.
    #[must_use]
    pub fn into_pes(self) -> Vec<usize> {
        self.pes
    }

    /// The objects that leave their current PE, by number.
    pub fn moves<'a>(&'a self, model: &'a LoadModel) -> impl Iterator<Item = Move> + 'a {
        self.pes.iter().zip(model.objects()).enumerate().filter_map(|(object, (&to, today))| {
            (to != today.pe).then_some(Move { object, from: today.pe, to, bytes: today.bytes })
        })
    }

    /// Predicted load of each PE, in seconds.
    #[must_use]
    pub fn pe_loads(&self, model: &LoadModel) -> Vec<f64> {
        pe_loads(model, &self.pes)
    }

    /// Predicted load of the busiest PE, in seconds: how long the period would have taken.
    #[must_use]
    pub fn max_load(&self, model: &LoadModel) -> f64 {
        maximum(&self.pe_loads(model))
    }

    /// Bytes that objects send to objects on other PEs.
    #[must_use]
    pub fn remote_bytes(&self, model: &LoadModel) -> u64 {
        let remote = model.edges().iter().filter(|it| self.pes[it.from] != self.pes[it.to]);
        remote.fold(0, |sum, edge| sum.saturating_add(edge.bytes))
    }

    /// Bytes that objects send to objects on other nodes.
    #[must_use]
    pub fn off_node_bytes(&self, model: &LoadModel) -> u64 {
        let node = |object: usize| model.pes()[self.pes[object]].node;
        let remote = model.edges().iter().filter(|it| node(it.from) != node(it.to));
        remote.fold(0, |sum, edge| sum.saturating_add(edge.bytes))
    }

    /// How long moving would take for the PE that sends and receives most, by the model's
    /// [`MoveCost`].
    #[must_use]
    pub fn move_seconds(&self, model: &LoadModel) -> f64 {
        self.move_seconds_at(model, model.move_cost())
    }

    pub(crate) fn move_seconds_at(&self, model: &LoadModel, cost: MoveCost) -> f64 {
        let mut seconds = vec![0.0; model.pes().len()];
        for it in self.moves(model) {
            let cost = cost.seconds(it.bytes);
            seconds[it.from] += cost;
            seconds[it.to] += cost;
        }
        maximum(&seconds)
    }

    /// Predicted imbalance: load of the busiest PE / mean load of the PEs - 1.
    ///
    /// 0 is perfect balance; it is also the value for PEs without any load.
    #[must_use]
    pub fn imbalance(&self, model: &LoadModel) -> f64 {
        let loads = self.pe_loads(model);
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        if mean > 0.0 { maximum(&loads) / mean - 1.0 } else { 0.0 }
    }
}

/// The move of an object to another PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The object's number.
    pub object: usize,
    /// Its current PE.
    pub from: usize,
    /// Its new PE.
    pub to: usize,
    /// Its live bytes.
    pub bytes: u64,
}

/// Why an [`Assignment`] was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AssignmentError {
    /// The list does not have one PE per object.
    #[error("an assignment of {given} objects for a model of {objects}")]
    Length {
        /// Length of the given list.
        given: usize,
        /// Number of objects in the model.
        objects: usize,
    },
    /// A PE that the model does not have.
    #[error("object {object} is assigned to PE {pe}, but the PEs are 0..{pes}")]
    NoSuchPe {
        /// The object's number.
        object: usize,
        /// The requested PE.
        pe: usize,
        /// Number of PEs.
        pes: usize,
    },
    /// An object that cannot move was assigned to another PE.
    #[error("object {object} cannot move from PE {home}, but is assigned to PE {pe}")]
    Pinned {
        /// The object's number.
        object: usize,
        /// Its current PE, which it cannot leave.
        home: usize,
        /// The requested PE.
        pe: usize,
    },
}

/// Predicted load of each PE if object `i` is on PE `pes[i]`.
pub(crate) fn pe_loads(model: &LoadModel, pes: &[usize]) -> Vec<f64> {
    let mut loads: Vec<f64> = model.pes().iter().map(|pe| pe.background).collect();
    for (object, &pe) in pes.iter().enumerate() {
        loads[pe] += model.seconds_on(object, pe);
    }
    loads
}

fn maximum(loads: &[f64]) -> f64 {
    loads.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Edge, MoveCost, Object, Pe};

    fn two_pes() -> LoadModel {
        let pes = vec![Pe::default(), Pe { speed: 2.0, background: 0.5, ..Pe::default() }];
        let objects = vec![
            Object::new(3.0, 0).with_bytes(100),
            Object::new(1.0, 0),
            Object::new(1.0, 1).pinned(),
        ];
        LoadModel::new(pes, objects, vec![]).expect("a sound model")
    }

    #[test]
    fn predicts_with_speed_and_background() {
        let model = two_pes();
        let today = Assignment::today(&model);
        assert_eq!(today.pe_loads(&model), [4.0, 1.0]);
        assert_eq!(today.imbalance(&model), 4.0 / 2.5 - 1.0);
        assert_eq!(today.moves(&model).count(), 0);

        let moved = Assignment::new(&model, vec![1, 0, 1]).expect("allowed");
        assert_eq!(moved.pe_loads(&model), [1.0, 2.5]);
        assert_eq!(moved.max_load(&model), 2.5);
        let moves: Vec<Move> = moved.moves(&model).collect();
        assert_eq!(moves, [Move { object: 0, from: 0, to: 1, bytes: 100 }]);
    }

    #[test]
    fn counts_traffic_and_the_cost_of_moves() {
        let two = two_pes();
        let edges = vec![
            Edge { from: 0, to: 1, messages: 1, bytes: 8 },
            Edge { from: 1, to: 2, messages: 1, bytes: 100 },
        ];
        let cost = MoveCost { fixed: 0.5, per_byte: 0.01 };
        let model = LoadModel::new(two.pes().to_vec(), two.objects().to_vec(), edges)
            .and_then(|model| model.with_move_cost(cost))
            .expect("sound");
        assert_eq!(Assignment::today(&model).remote_bytes(&model), 100);
        assert_eq!(Assignment::today(&model).move_seconds(&model), 0.0);
        let moved = Assignment::new(&model, vec![1, 0, 1]).expect("allowed");
        assert_eq!(moved.remote_bytes(&model), 108);
        assert_eq!(moved.off_node_bytes(&model), 0);
        assert_eq!(moved.move_seconds(&model), 1.5);
    }

    #[test]
    fn nothing_to_do_is_balanced() {
        let model = LoadModel::new(vec![Pe::default(); 3], vec![], vec![]).expect("sound");
        assert_eq!(Assignment::today(&model).imbalance(&model), 0.0);
    }

    #[test]
    fn refuses_what_cannot_be_done() {
        let model = two_pes();
        let new = |pes: &[usize]| Assignment::new(&model, pes.to_vec());
        assert_eq!(new(&[0]), Err(AssignmentError::Length { given: 1, objects: 3 }));
        assert_eq!(new(&[0, 2, 1]), Err(AssignmentError::NoSuchPe { object: 1, pe: 2, pes: 2 }));
        assert_eq!(new(&[0, 0, 0]), Err(AssignmentError::Pinned { object: 2, home: 1, pe: 0 }));
    }
}
