//! The input of a strategy: objects with their loads, the PEs they are on, and who sends to whom.
//!
//! A [`LoadModel`] is checked when it is built. Its holder may rely on the following: there is at
//! least one PE; loads are finite and not negative; speeds are finite and positive; every object is
//! on a PE of the model and every edge joins objects of the model. So strategies cannot fail.

use thiserror::Error;

/// A processing element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pe {
    /// The speed of the PE, relative to a PE on which an object's load is one second per second.
    pub speed: f64,
    /// Seconds of work that belongs to no object and cannot move: the runtime's own, or another
    /// program's.
    pub background: f64,
    /// The node of the PE: PEs with the same number share memory.
    pub node: usize,
}

impl Default for Pe {
    /// A PE of speed 1 without background load, on node 0.
    fn default() -> Self {
        Self { speed: 1.0, background: 0.0, node: 0 }
    }
}

/// A piece of work that can be placed: in `vrt`, a virtual rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    /// Seconds that the object needs on a PE of speed 1, in the measured period.
    pub load: f64,
    /// The PE that the object is on today: an index into [`LoadModel::pes`].
    pub pe: usize,
    /// Whether the object can move. The load of one that cannot is fixed.
    pub migratable: bool,
    /// Live bytes that would travel with the object.
    pub bytes: u64,
    /// The position of the object's work in space, if given; for strategies that keep neighbours
    /// together.
    pub coordinates: Option<[f64; 3]>,
}

impl Object {
    /// A migratable object without memory of its own: `load` seconds on PE `pe`.
    #[must_use]
    pub fn new(load: f64, pe: usize) -> Self {
        Self { load, pe, migratable: true, bytes: 0, coordinates: None }
    }

    /// The same object, unable to move.
    #[must_use]
    pub fn pinned(self) -> Self {
        Self { migratable: false, ..self }
    }

    /// The same object with this many live bytes.
    #[must_use]
    pub fn with_bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// The same object at a point in space.
    #[must_use]
    pub fn at(self, coordinates: [f64; 3]) -> Self {
        Self { coordinates: Some(coordinates), ..self }
    }
}

/// What one object sent another in the measured period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The sending object: an index into [`LoadModel::objects`].
    pub from: usize,
    /// The receiving object.
    pub to: usize,
    /// Number of messages.
    pub messages: u64,
    /// Bytes in all of them.
    pub bytes: u64,
}

/// The measured cost of a move: seconds per object, plus seconds per live byte.
///
/// The sending and the receiving PE each pay this cost. Zero by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MoveCost {
    /// Seconds per object, whatever its size.
    pub fixed: f64,
    /// Seconds per live byte.
    pub per_byte: f64,
}

impl MoveCost {
    /// Seconds for a move of `bytes` live bytes.
    #[must_use]
    pub fn seconds(&self, bytes: u64) -> f64 {
        self.fixed + self.per_byte * bytes as f64
    }
}

/// The input of a strategy: PEs, objects, the communication between objects, the cost of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadModel {
    pes: Vec<Pe>,
    objects: Vec<Object>,
    edges: Vec<Edge>,
    move_cost: MoveCost,
}

impl LoadModel {
    /// Checks and builds a model.
    ///
    /// # Errors
    ///
    /// The first violation of the rules in this module's description.
    pub fn new(
        pes: Vec<Pe>,
        objects: Vec<Object>,
        edges: Vec<Edge>,
    ) -> Result<Self, LoadModelError> {
        if pes.is_empty() {
            return Err(LoadModelError::NoPes);
        }
        for (pe, &Pe { speed, background, .. }) in pes.iter().enumerate() {
            if !(speed.is_finite() && speed > 0.0) {
                return Err(LoadModelError::Speed { pe, speed });
            }
            if !(background.is_finite() && background >= 0.0) {
                return Err(LoadModelError::Background { pe, background });
            }
        }
        for (object, &Object { load, pe, coordinates, .. }) in objects.iter().enumerate() {
            if !(load.is_finite() && load >= 0.0) {
                return Err(LoadModelError::Load { object, load });
            }
            if pe >= pes.len() {
                return Err(LoadModelError::ObjectPe { object, pe, pes: pes.len() });
            }
            if let Some(value) = coordinates.iter().flatten().find(|it| !it.is_finite()) {
                return Err(LoadModelError::Coordinate { object, value: *value });
            }
        }
        for (edge, &Edge { from, to, .. }) in edges.iter().enumerate() {
            if let Some(&object) = [from, to].iter().find(|&&end| end >= objects.len()) {
                return Err(LoadModelError::EdgeEnd { edge, object, objects: objects.len() });
            }
        }
        Ok(Self { pes, objects, edges, move_cost: MoveCost::default() })
    }

    /// The same model with a measured cost of moves.
    ///
    /// # Errors
    ///
    /// If a part of the cost is negative, infinite or not a number.
    pub fn with_move_cost(self, move_cost: MoveCost) -> Result<Self, LoadModelError> {
        for value in [move_cost.fixed, move_cost.per_byte] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(LoadModelError::MoveCost { value });
            }
        }
        Ok(Self { move_cost, ..self })
    }

    /// The PEs, by number.
    #[must_use]
    pub fn pes(&self) -> &[Pe] {
        &self.pes
    }

    /// The objects, by number.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The communication between objects.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// What a move costs.
    #[must_use]
    pub fn move_cost(&self) -> MoveCost {
        self.move_cost
    }

    /// Seconds that `object` takes on `pe`.
    ///
    /// # Panics
    ///
    /// If the model has no such object or PE.
    #[must_use]
    pub fn seconds_on(&self, object: usize, pe: usize) -> f64 {
        self.objects[object].load / self.pes[pe].speed
    }
}

/// Why a [`LoadModel`] was refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LoadModelError {
    /// The model has no PE.
    #[error("a load model needs at least one PE")]
    NoPes,
    /// A speed is zero, negative, infinite or not a number.
    #[error("PE {pe} has speed {speed}: a speed is a finite number above 0")]
    Speed {
        /// The PE's number.
        pe: usize,
        /// The refused speed.
        speed: f64,
    },
    /// A background load is negative, infinite or not a number.
    #[error("PE {pe} has background load {background}: a load is a finite number, 0 or more")]
    Background {
        /// The PE's number.
        pe: usize,
        /// The refused load in seconds.
        background: f64,
    },
    /// An object's load is negative, infinite or not a number.
    #[error("object {object} has load {load}: a load is a finite number, 0 or more")]
    Load {
        /// The object's number.
        object: usize,
        /// The refused load in seconds.
        load: f64,
    },
    /// An object is on a PE that the model does not have.
    #[error("object {object} is on PE {pe}, but the PEs are 0..{pes}")]
    ObjectPe {
        /// The object's number.
        object: usize,
        /// The PE that it claims to be on.
        pe: usize,
        /// Number of PEs.
        pes: usize,
    },
    /// A coordinate is infinite or not a number.
    #[error("object {object} has the coordinate {value}: a coordinate is a finite number")]
    Coordinate {
        /// The object's number.
        object: usize,
        /// The refused coordinate.
        value: f64,
    },
    /// A part of the cost of a move is negative, infinite or not a number.
    #[error("a move costs {value} seconds: a cost is a finite number, 0 or more")]
    MoveCost {
        /// The refused cost.
        value: f64,
    },
    /// An edge begins or ends at an object that the model does not have.
    #[error("edge {edge} ends at object {object}, but the objects are 0..{objects}")]
    EdgeEnd {
        /// The edge's number.
        edge: usize,
        /// The object that it names.
        object: usize,
        /// Number of objects.
        objects: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_strategies_rely_on_not_to_happen() {
        let pe = Pe::default();
        let model = |pes: &[Pe], objects: &[Object], edges: &[Edge]| {
            LoadModel::new(pes.to_vec(), objects.to_vec(), edges.to_vec())
        };
        assert_eq!(model(&[], &[], &[]), Err(LoadModelError::NoPes));
        for speed in [0.0, -1.0, f64::INFINITY] {
            let refused = model(&[pe, Pe { speed, ..pe }], &[], &[]);
            assert_eq!(refused, Err(LoadModelError::Speed { pe: 1, speed }));
        }
        assert!(model(&[Pe { speed: f64::NAN, ..pe }], &[], &[]).is_err());
        let refused = model(&[Pe { background: -0.5, ..pe }], &[], &[]);
        assert_eq!(refused, Err(LoadModelError::Background { pe: 0, background: -0.5 }));
        let refused = model(&[pe], &[Object::new(-1.0, 0)], &[]);
        assert_eq!(refused, Err(LoadModelError::Load { object: 0, load: -1.0 }));
        assert!(model(&[pe], &[Object::new(f64::NAN, 0)], &[]).is_err());
        let refused = model(&[pe], &[Object::new(1.0, 1)], &[]);
        assert_eq!(refused, Err(LoadModelError::ObjectPe { object: 0, pe: 1, pes: 1 }));
        let lost = Object::new(1.0, 0).at([0.0, f64::INFINITY, 0.0]);
        let refused = model(&[pe], &[lost], &[]);
        assert_eq!(refused, Err(LoadModelError::Coordinate { object: 0, value: f64::INFINITY }));
        let cost = MoveCost { fixed: -1.0, per_byte: 0.0 };
        let refused = model(&[pe], &[], &[]).expect("sound").with_move_cost(cost);
        assert_eq!(refused, Err(LoadModelError::MoveCost { value: -1.0 }));
        let edge = Edge { from: 0, to: 2, messages: 1, bytes: 8 };
        let refused = model(&[pe], &[Object::new(1.0, 0)], &[edge]);
        assert_eq!(refused, Err(LoadModelError::EdgeEnd { edge: 0, object: 2, objects: 1 }));
    }

    #[test]
    fn errors_name_the_value_and_what_is_allowed() {
        let error = LoadModelError::ObjectPe { object: 3, pe: 9, pes: 4 };
        assert_eq!(error.to_string(), "object 3 is on PE 9, but the PEs are 0..4");
    }
}
