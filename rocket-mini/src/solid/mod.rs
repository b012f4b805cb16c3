//! Elasticity: trilinear hexahedra, implicit in time, a part of the mesh for each rank.
//!
//! Newmark's method makes each step a linear system, which is solved by conjugate gradients with the blocks of nodes as
//! preconditioner. Parts exchange their contributions to shared nodes, and sum dot products by reductions; so a result
//! depends on the number of ranks by rounding, and agrees to the solver's tolerance.
//!
//! | file | subject |
//! |---|---|
//! | `problem` | bodies, constraints, loads, known properties of the solution |
//! | `element` | the hexahedron |
//! | `partition` | the distribution of a grid's elements |
//! | `mesh` | bodies of any shape, from a file, and their parts |
//! | `region` | a rank's part of a body |
//! | `matrix` | sparse matrices of blocks |
//! | `body` | the matrix of a part, conjugate gradients, Newmark's step |
//! | `parallel` | the run on ranks |
//! | `outcome` | the result of a run, and its verification |

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
    /// Steps after which ranks offer themselves to be moved; 0: never.
    pub migrate_every: usize,
}

/// The shape of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// That of the problem, with this many elements along x, y and z.
    Grid([usize; 3]),
    /// The mesh in a file, which rank 0 reads: see [`Mesh::read`]. It is held where it begins along x and pulled where
    /// it ends.
    File(PathBuf),
}

/// Why a problem cannot be solved.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// There are fewer elements than ranks.
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
    /// The same for a mesh from a file.
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
    /// Rank 0 has no part of a body for this rank, and knows why.
    #[error("rank 0 has no mesh")]
    NoMesh,
    /// The problem's solution holds only for its own body.
    #[error(
        "the problem wave is that of a straight bar, and has no mesh; allowed with one are patch, \
         cantilever, vibration"
    )]
    OwnShape,
    /// An element has no volume or a negative one.
    #[error("an element is turned inside out: {}", .element.map_or("another rank's".to_owned(), |e| format!("number {e} of its part")))]
    InsideOut {
        /// The element, if it belongs to this part.
        element: Option<usize>,
    },
    /// The solver did not reach its tolerance.
    #[error(
        "conjugate gradients left a residual of {residual:e} after {iterations} iterations; try a \
         larger --max-iterations or --tolerance"
    )]
    NotConverged {
        /// Number of iterations.
        iterations: usize,
        /// The residual, relative to the right-hand side.
        residual: f64,
    },
}

#[cfg(test)]
mod tests;
