//! The coupled rocket: gas, propellant, and the surface between them.
//!
//! The chamber of [`crate::flow`] is closed above by propellant that a case holds. Its surface burns
//! at a rate given by the pressure and recedes, the gas that it gives off raises the pressure, the
//! pressure deforms the propellant ([`crate::solid`]), and the deformation moves the surface. Loads and
//! motions pass between the meshes by [`crate::face`]; each rank has a block of gas and a part of the
//! propellant, which need not lie side by side.
//!
//! Coupling is staggered: in each interval the gas flows in as many steps as it needs, with a surface
//! that burns and moves as the propellant did in the last interval; then its pressure loads the
//! propellant for one implicit step. What has burned is cut from the propellant's mesh, whose columns
//! are divided anew between surface and case. A front of ignition may travel along the grain; behind it
//! the propellant warms up, which is costly, so that the load travels with the front. Deformations are small, and loads act along y.
//!
//! | file | subject |
//! |---|---|
//! | `surface` | what of both meshes lies at the surface |
//! | `heat` | how the propellant warms up before it burns |
//! | `run` | an interval, the run on ranks, what it gives |
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
    /// Intervals, after each of which gas and propellant meet.
    pub intervals: usize,
    /// The length of an interval.
    pub interval: f64,
    /// The Courant number of the gas's steps.
    pub cfl: f64,
    /// How long the front of ignition takes from one end of the grain to the other; with 0 all of it
    /// burns from the beginning.
    pub ignition: f64,
    /// Points of a heat profile below the surface; none are computed with 0, else [`MIN_POINTS`] at
    /// least.
    pub heat_points: usize,
    /// When the propellant's solver stops.
    pub precision: Precision,
    /// Intervals after which ranks offer themselves to be moved; never with 0.
    pub migrate_every: usize,
    /// Intervals from one snapshot to the next, beside those at the beginning and the end; none at
    /// all with 0.
    pub snapshot_every: usize,
}

impl Settings {
    /// Meshes that do not match, with `size` cells of gas along the chamber.
    pub fn meshes(size: usize) -> ([usize; 3], [usize; 3]) {
        let part = |share: usize| (size / share).max(2);
        ([size, part(4), part(4)], [(5 * size / 8).max(2), part(8), part(8)])
    }

    /// How the gas is computed, up to a time.
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

/// How thick the propellant is at first.
const THICKNESS: f64 = 0.5;

/// The propellant as a solid. Its density is the one that the gas gains by.
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
    /// All of the propellant has burned somewhere.
    #[error("the propellant has burned through after {intervals} intervals; try fewer")]
    BurnedThrough {
        /// Intervals made.
        intervals: usize,
    },
}

#[cfg(test)]
mod tests;
