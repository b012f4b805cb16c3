//! Compressible flow: Euler's equations by finite volumes, with a block of columns for each rank.
//!
//! Fluxes are HLLC's between linear profiles (MUSCL) that a limiter keeps from overshooting; time
//! steps are Heun's. One side of the domain may be a propellant that burns at a rate given by the
//! pressure and recedes; then the grid grows with it (ALE).
//!
//! The bits of every cell are the same for any number of blocks: both blocks at a face compute its
//! flux from the same cells in the same order, and the length of a step comes from a maximum.
//!
//! | file | subject |
//! |---|---|
//! | `problem` | domains, boundaries, initial states, exact solutions |
//! | `gas` | states, HLLC, limiters |
//! | `riemann` | the exact Riemann solver |
//! | `block` | cells, the moving surface, a stage of a step |
//! | `geometry` | positions of cells, and their faces |
//! | `ghosts` | ghost cells |
//! | `lanes` | the gas in several cells at a time |
//! | `flux` | fluxes through faces |
//! | `march` | a step |
//! | `decomposition` | the distribution of cells over ranks |
//! | `parallel` | the run on ranks |
//! | `outcome` | the result of a run, and its verification |

mod block;
mod decomposition;
mod flux;
mod gas;
mod geometry;
mod ghosts;
mod lanes;
mod march;
mod outcome;
mod parallel;
mod problem;
mod riemann;

pub use crate::jacobi::cell_checksum;
pub use block::Block;
pub use decomposition::{Blocks, Extent};
pub use gas::{Conserved, Gas, Limiter, Primitive};
pub use march::{Alone, Clock, Neighbours, step};
pub use outcome::{Outcome, Sums, Wrong, closed_chamber_pressure};
pub(crate) use parallel::sum;
pub use parallel::{Ranks, Run, solve, solve_alone};
pub use problem::{Boundary, Problem, Propellant};
pub use riemann::Riemann;

/// Ghost cells on each side of a block: as many as a face's two profiles need.
pub const GHOSTS: usize = 2;

/// What to solve, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The problem.
    pub problem: Problem,
    /// Cells along x, y and z; there are no fluxes along an axis of one cell.
    pub cells: [usize; 3],
    /// The time at which to stop.
    pub end_time: f64,
    /// The Courant number: how many cells the fastest wave crosses in a step, summed over the axes.
    /// The scheme is not stable above 1.
    pub cfl: f64,
    /// The limiter of the profiles.
    pub limiter: Limiter,
    /// The length of the last block relative to the first one, along x.
    pub unevenness: f64,
    /// Steps after which ranks offer themselves to be moved; 0: never.
    pub migrate_every: usize,
}

/// Why a problem cannot be solved.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// There are fewer columns than a block for each rank needs.
    #[error(
        "{ranks} ranks cannot each have a block of {} x {} x {} cells: blocks are cut across x and \
         z, and each needs {GHOSTS} cells at least", .cells[0], .cells[1], .cells[2]
    )]
    TooManyRanks {
        /// The ranks.
        ranks: usize,
        /// The cells of the domain.
        cells: [usize; 3],
    },
    /// The state of a cell is not a gas.
    #[error(
        "the flow blew up after step {step}, at time {time}: a density or pressure is not positive; \
         try a smaller --cfl (above 1 the scheme is not stable)"
    )]
    BlownUp {
        /// Number of steps.
        step: usize,
        /// The time reached.
        time: f64,
    },
}

#[cfg(test)]
mod tests;
