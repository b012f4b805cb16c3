//! The whole plate at one time, gathered on rank 0.

use mpi::topology::SimpleCommunicator;
use serde::{Deserialize, Serialize};

use super::faces::Place;
use crate::picture;

/// An element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Element {
    /// Its column and row.
    pub at: [usize; 2],
    /// Its corners at rest: lower left, lower right, upper left, upper right.
    pub corners: [[f64; 2]; 4],
    /// The displacements of its corners.
    pub u: [[f64; 2]; 4],
    /// The stress in its middle: along x, along y, shear.
    pub stress: [f64; 3],
}

impl Element {
    /// The largest stress across any line through the middle.
    pub fn principal_stress(&self) -> f64 {
        let [xx, yy, xy] = self.stress;
        0.5 * (xx + yy) + (0.25 * (xx - yy) * (xx - yy) + xy * xy).sqrt()
    }
}

/// An edge between two elements that is no longer bonded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parted {
    /// The column and the row of the element before it, and whether the edge is to the right of that element.
    pub at: Place,
    /// Whether it was broken from the beginning.
    pub is_notch: bool,
    /// Whether it is broken.
    pub is_broken: bool,
    /// Its ends at rest.
    pub ends: [[f64; 2]; 2],
    /// The displacements at its two ends: those of the element before it and of the one after it.
    pub u: [[[f64; 2]; 2]; 2],
}

/// The plate at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Steps made.
    pub steps: usize,
    /// The time.
    pub time: f64,
    /// Elements, in the order of their places.
    pub elements: Vec<Element>,
    /// Edges that are no longer bonded, in the order of their places.
    pub edges: Vec<Parted>,
}

impl Snapshot {
    /// How many edges are broken, without the notch.
    pub fn broken(&self) -> usize {
        self.edges.iter().filter(|edge| edge.is_broken && !edge.is_notch).count()
    }

    /// The position along the plate of the end of the farthest broken edge, at rest; the notch
    /// counts.
    pub fn tip(&self) -> f64 {
        let broken = self.edges.iter().filter(|edge| edge.is_broken);
        broken.flat_map(|edge| edge.ends).map(|[x, _]| x).fold(0.0, f64::max)
    }

    /// Gathers the parts of all ranks on rank 0; the others get `None`.
    pub fn gather(self, world: &SimpleCommunicator) -> Option<Self> {
        let mut all = picture::gather(self, world, |all, more| {
            all.elements.extend(more.elements);
            all.edges.extend(more.edges);
        })?;
        // Files have to be the same for any number of ranks.
        all.elements.sort_unstable_by_key(|element| element.at);
        all.edges.sort_unstable_by_key(|edge| edge.at);
        Some(all)
    }
}
