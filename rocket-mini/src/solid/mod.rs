//! Elasticity: trilinear hexahedra, implicit in time, a part of the mesh for each rank.
//!
//! Newmark's method makes a linear system of each step, which conjugate gradients solve with the
//! blocks of nodes as preconditioner. Parts exchange what they give to shared nodes, and sum dot
//! products by reductions; so a result depends on the number of ranks by roundings, and agrees to the
//! solver's tolerance.
//!
//! | file | subject |
//! |---|---|
//! | `problem` | bodies, what holds and loads them, what is known of the solution |
//! | `element` | the hexahedron |
//! | `partition` | who has which elements of a grid |
//! | `mesh` | bodies of any shape, which a file has, and their parts |
//! | `region` | what a rank has of a body |
//! | `matrix` | sparse matrices of blocks |
//! | `body` | the matrix of a part, conjugate gradients, Newmark's step |
//! | `parallel` | the run on ranks |
//! | `outcome` | what a run gives, and whether it is right |

mod body;
mod element;
mod matrix;
mod mesh;
mod outcome;
mod parallel;
mod partition;
mod problem;
mod region;

pub use body::{Body, Motion, Parts, Precision, Whole};
pub use element::{Coupling, Element, Material, Vector};
pub use mesh::{Mesh, MeshError};
pub use outcome::{Outcome, Wrong};
pub use parallel::{Ranks, Run, solve, solve_whole};
pub use partition::{Part, Partition, Shared};
pub use problem::Problem;

use std::path::PathBuf;

/// What to solve, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The problem.
    pub problem: Problem,
    /// The shape of the body.
    pub shape: Shape,
    /// Time steps; none for a body at rest.
    pub steps: usize,
    /// When the solver of a step stops.
    pub precision: Precision,
    /// Steps after which ranks offer themselves to be moved; never with 0.
    pub migrate_every: usize,
}

/// The shape of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// That of the problem, of so many elements along x, y and z.
    Grid([usize; 3]),
    /// What a file has, which rank 0 reads: see [`Mesh::read`]. It is held where it begins along x and
    /// pulled where it ends.
    File(PathBuf),
}

/// Why a problem cannot be solved.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// There are not enough elements for a part for each rank.
    #[error(
        "{ranks} ranks cannot each have elements of a mesh of {} x {} x {} that is bisected along \
         its longest axis", .elements[0], .elements[1], .elements[2]
    )]
    TooManyRanks {
        /// The ranks.
        ranks: usize,
        /// Elements along x, y and z.
        elements: [usize; 3],
    },
    /// The same, of a mesh.
    #[error("{ranks} ranks cannot each have elements of a mesh of {elements}")]
    TooFewElements {
        /// The ranks.
        ranks: usize,
        /// The elements.
        elements: usize,
    },
    /// There is no body.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// Rank 0 has no part of a body for this one, and knows why.
    #[error("rank 0 has no mesh")]
    NoMesh,
    /// The problem's solution is one of its own body.
    #[error(
        "the problem wave is that of a straight bar, and has no mesh; allowed with one are patch, \
         cantilever, vibration"
    )]
    OwnShape,
    /// An element has no volume or a negative one.
    #[error("an element is turned inside out: {}", .element.map_or("another rank's".to_owned(), |e| format!("number {e} of its part")))]
    InsideOut {
        /// The element, if it is this part's.
        element: Option<usize>,
    },
    /// The solver did not reach its tolerance.
    #[error(
        "conjugate gradients left a residual of {residual:e} after {iterations} iterations; try a \
         larger --max-iterations or --tolerance"
    )]
    NotConverged {
        /// The iterations made.
        iterations: usize,
        /// The residual, relative to the right side.
        residual: f64,
    },
}

#[cfg(test)]
mod tests;
