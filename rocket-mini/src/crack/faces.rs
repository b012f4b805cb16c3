//! The faces of broken edges: hot gas ignites them, and the propellant below warms up.
//!
//! Both faces of an edge are equal, so one profile represents them. They burn at the rate given by the pressure in the
//! crack; faces of the notch have burned before, so their profiles are settled, and cost nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flow::Problem;
use crate::rocket::Heat;

/// An edge: its element's column and row in the plate, and whether it is the one to the right.
pub type Place = (usize, usize, bool);

/// The faces of a strip.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Faces {
    heats: BTreeMap<Place, Heat>,
}

impl Faces {
    /// Marks an edge as filled with gas.
    pub(super) fn expose(&mut self, place: Place) {
        self.heats.entry(place).or_insert_with(Heat::cold);
    }

    /// Advances by `dt` with gas at `pressure`. A profile has this many `points`.
    pub(super) fn warm(&mut self, pressure: f64, dt: f64, points: usize) {
        let rate = Problem::Chamber.propellant().rate(pressure);
        self.heats.values_mut().for_each(|heat| heat.advance(rate, dt, points));
    }

    /// Number of edges whose faces are warming up.
    pub(super) fn warming(&self) -> usize {
        self.heats.values().filter(|heat| heat.is_warming()).count()
    }

    /// The heat of each face above that of cold propellant, per area.
    pub(super) fn stored(&self) -> impl Iterator<Item = (Place, f64)> {
        self.heats.iter().map(|(place, heat)| (*place, heat.stored()))
    }
}
