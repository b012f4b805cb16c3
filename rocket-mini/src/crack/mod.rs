//! A crack driven by pressure: explicit dynamics with cohesive edges that are inserted where the stress requires it.
//!
//! A plate under plane strain consists of square elements, each with its own corners. Corners that meet in a vertex and
//! are connected through bonded edges are one node: they have one acceleration. Where the stress across an edge exceeds
//! the strength of the material, the edge is no longer bonded: its two sides attract each other with a traction that
//! falls as they part (Camacho and Ortiz, Int. J. Solids Structures 33, 1996), until the edge is broken and the gas
//! pushes them apart. There the gas also ignites them, and the propellant warms up, which is costly: the load grows
//! where the crack has been.
//!
//! The bits of all displacements are the same for any number of ranks: what happens at a vertex follows from the
//! displacements of the four elements around it, in a fixed order.
//!
//! | file | subject |
//! |---|---|
//! | `plate` | elements, edges, forces, a step: for a strip of columns with a ghost column on either side |
//! | `edge` | the cohesive law |
//! | `faces` | how propellant warms up where edges are broken |
//! | `run` | the run on ranks, its result, and its verification |
//! | `snapshot` | the whole plate at one time, on rank 0 |
//! | `picture` | snapshots as VTK files and as a drawing |

mod edge;
mod faces;
mod picture;
mod plate;
mod run;
mod snapshot;

pub use edge::Edge;
pub use faces::Place;
pub use picture::{write_picture, write_vtk};
pub use plate::{Plate, Strip, Sums};
pub use run::{Outcome, Run, Wrong, solve, solve_alone};
pub use snapshot::{Element, Parted, Snapshot};

pub use crate::picture::WriteError;

use serde::{Deserialize, Serialize};

/// What to compute, and how.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Elements along the plate, which is twice as long as high; even, and at least 8.
    pub size: usize,
    /// Time steps.
    pub steps: usize,
    /// The pressure of the gas in the crack.
    pub pressure: f64,
    /// The length of a step, relative to the time in which a wave crosses an element.
    pub courant: f64,
    /// Points of the temperature profile below an ignited face, at least [`crate::rocket::MIN_POINTS`]; 0: profiles are
    /// not computed.
    pub heat_points: usize,
    /// Steps after which ranks offer themselves to be moved; 0: never.
    pub migrate_every: usize,
    /// Steps between snapshots, which are also taken at the beginning and the end; 0: none at all.
    pub snapshot_every: usize,
}

/// The length and the height of the plate.
const SIZE: [f64; 2] = [2.0, 1.0];
/// The part of the length that is cracked at first, from the left end.
const NOTCH: f64 = 0.15;
const YOUNG: f64 = 1000.0;
const POISSON: f64 = 0.25;
const DENSITY: f64 = 1.0;

impl Settings {
    /// Columns and rows of elements.
    pub fn elements(&self) -> [usize; 2] {
        [self.size, self.size / 2]
    }

    /// The length of an element's edge.
    pub fn spacing(&self) -> f64 {
        SIZE[0] / self.size as f64
    }

    /// The length of a step.
    pub fn dt(&self) -> f64 {
        let (lambda, shear) = lame();
        self.courant * self.spacing() / ((lambda + 2.0 * shear) / DENSITY).sqrt()
    }
}

/// Lame's moduli.
fn lame() -> (f64, f64) {
    let shear = YOUNG / (2.0 * (1.0 + POISSON));
    (2.0 * shear * POISSON / (1.0 - 2.0 * POISSON), shear)
}

/// Why a crack cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// There are not enough columns of elements for all ranks.
    #[error("{ranks} ranks cannot each have one of {columns} columns of elements")]
    TooManyRanks {
        /// The ranks.
        ranks: usize,
        /// The columns.
        columns: usize,
    },
    /// Displacements are far longer than the plate, or not numbers any more.
    #[error(
        "the plate blew up before step {step}; try a smaller --courant (above 0.4 steps are not stable)"
    )]
    BlownUp {
        /// The step at which it was detected.
        step: usize,
    },
}

#[cfg(test)]
mod tests;
