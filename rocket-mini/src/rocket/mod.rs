//! The coupled rocket: gas, propellant, and the surface between them.
//!
//! The chamber of [`crate::flow`] is closed above by propellant that is held by a case. Its surface burns at a rate
//! given by the pressure and recedes, the released gas raises the pressure, the pressure deforms the propellant
//! ([`crate::solid`]), and the deformation moves the surface. Loads and motions are transferred between the meshes by
//! [`crate::face`]; each rank has a block of gas and a part of the propellant, which need not be adjacent.
//!
//! Coupling is staggered: in each interval the gas flows in as many steps as it needs, with a surface that burns and
//! moves as the propellant did in the last interval; then its pressure loads the propellant for one implicit step.
//! Burned propellant is removed from its mesh, whose columns are redivided between surface and case. A front of
//! ignition may travel along the grain; behind it the propellant warms up, which is costly, so that the load travels
//! with the front. Deformations are small, and loads act along y.
//!
//! | file | subject |
//! |---|---|
//! | `surface` | the parts of both meshes at the surface |
//! | `heat` | how the propellant warms up before it burns |
//! | `run` | an interval, the run on ranks, its result |
//! | `snapshot` | the whole state at one time, on rank 0 |
//! | `picture` | snapshots as VTK files and as a drawing |

mod heat;
mod picture;
mod run;
mod snapshot;
mod surface;

pub use heat::{Heat, MIN_POINTS};
pub use picture::{write_picture, write_vtk};
pub use run::{Outcome, Run, Wrong, solve};
pub use snapshot::{Cell, Hexahedron, Snapshot};

pub use crate::picture::WriteError;

use crate::flow::{Limiter, Problem};
use crate::solid::{Material, Precision};
use crate::{flow, solid};

/// What to compute, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Cells of the gas along x, y and z.
    pub cells: [usize; 3],
    /// Hexahedra of the propellant along x, y and z.
    pub elements: [usize; 3],
    /// Number of intervals; gas and propellant are coupled after each.
    pub intervals: usize,
    /// The length of an interval.
    pub interval: f64,
    /// The Courant number of the gas's steps.
    pub cfl: f64,
    /// How long the front of ignition takes from one end of the grain to the other; 0: all of it burns from the
    /// beginning.
    pub ignition: f64,
    /// Points of a heat profile below the surface, at least [`MIN_POINTS`]; 0: profiles are not
    /// computed.
    pub heat_points: usize,
    /// When the propellant's solver stops.
    pub precision: Precision,
    /// Intervals after which ranks offer themselves to be moved; 0: never.
    pub migrate_every: usize,
    /// Intervals between snapshots, which are also taken at the beginning and the end; 0: none at
    /// all.
    pub snapshot_every: usize,
}

impl Settings {
    /// Meshes that do not match, with `size` cells of gas along the chamber.
    pub fn meshes(size: usize) -> ([usize; 3], [usize; 3]) {
        let part = |share: usize| (size / share).max(2);
        ([size, part(4), part(4)], [(5 * size / 8).max(2), part(8), part(8)])
    }

    /// The settings of the gas, up to a time.
    fn flow(&self, end_time: f64) -> flow::Settings {
        flow::Settings {
            problem: PROBLEM,
            cells: self.cells,
            end_time,
            cfl: self.cfl,
            limiter: Limiter::VanAlbada,
            unevenness: 1.0,
            migrate_every: 0,
        }
    }
}

/// The chamber.
const PROBLEM: Problem = Problem::Chamber;

/// The pressure outside, at which the propellant is not loaded.
const OUTSIDE: f64 = 1.0;

/// The initial thickness of the propellant.
const THICKNESS: f64 = 0.5;

/// The propellant as a solid. Its density is the one with which it becomes gas.
fn material() -> Material {
    Material { young: 200.0, poisson: 0.3, density: PROBLEM.propellant().density }
}

/// Why the rocket cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The gas.
    #[error(transparent)]
    Flow(#[from] flow::Error),
    /// The propellant.
    #[error(transparent)]
    Solid(#[from] solid::Error),
    /// The propellant has burned through somewhere.
    #[error("the propellant has burned through after {intervals} intervals; try fewer")]
    BurnedThrough {
        /// Intervals made.
        intervals: usize,
    },
}

#[cfg(test)]
mod tests;
