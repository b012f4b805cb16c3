//! Jacobi relaxation of Laplace's equation on a cube, with a block of cells
//! for each rank.
//!
//! The values on the boundary of the cube are given. In each iteration a cell
//! becomes the mean of its six neighbours; before it, ranks exchange the cells
//! on the faces of their blocks.
//!
//! The bits of every cell are the same for every number of ranks: the arithmetic of a cell has a
//! fixed order, and the residual that ends the run is a maximum, which does not depend on the
//! order. So a parallel run is checked for equality with the sequential one, not for similarity.
//!
//! The same blocks are computed in three styles: by blocking ranks ([`solve`]), by
//! async ranks ([`solve_async`]), and by an event loop over many chunks in each rank,
//! without coroutines ([`solve_by_events`]).

mod block;
mod decomposition;
mod events;
mod exchange;
mod kernel;
mod problem;
mod ranks;
mod sequential;
mod solution;
mod state;
mod uneven;

pub use decomposition::{Cut, Extent, Face, ProcessGrid};
pub use events::solve_by_events;
pub use problem::Problem;
pub use ranks::{solve, solve_async};
pub use sequential::solve_sequentially;
pub use solution::{Difference, Solution};
pub use uneven::{Costly, ParseCostlyError, Uneven};

/// What to solve, and when to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The equation and its grid.
    pub problem: Problem,
    /// How the grid is cut into blocks.
    pub cut: Cut,
    /// The greatest number of iterations.
    pub max_iterations: usize,
    /// The run has converged when the residual is below this; 0: never.
    pub tolerance: f64,
    /// Iterations between checks of the residual, at least 1. The residual of the last iteration is
    /// checked in any case.
    pub check_every: usize,
    /// Iterations after which ranks offer themselves to be moved; 0: never.
    pub migrate_every: usize,
}

impl Settings {
    /// Whether the residual is checked in an iteration, counted from 1.
    pub fn is_check(&self, iteration: usize) -> bool {
        iteration.is_multiple_of(self.check_every) || iteration == self.max_iterations
    }
}

/// A parallel run: its solution and its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The solution.
    pub solution: Solution,
    /// The blocks.
    pub grid: ProcessGrid,
    /// Seconds for all iterations, from when all ranks were ready.
    pub seconds: f64,
    /// For each rank, the seconds that it computed, without the exchange of faces.
    pub compute_seconds: Vec<f64>,
}

/// Why a problem cannot be solved on these ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are fewer cells than a block for each rank needs.
    #[error(
        "{ranks} ranks cannot each have a block of a grid of {size} cells a side; \
         the number of ranks must be a product of three numbers up to {size}"
    )]
    TooManyRanks {
        /// The ranks.
        ranks: usize,
        /// Cells per side of the domain.
        size: usize,
    },
    /// There are fewer planes than ranks.
    #[error("{ranks} ranks cannot each have a slab of a grid of {size} cells a side")]
    TooManySlabs {
        /// The ranks.
        ranks: usize,
        /// Cells per side of the domain.
        size: usize,
    },
    /// There are fewer chunks than ranks that run them.
    #[error("{ranks} ranks cannot each have one of {chunks} chunks")]
    TooFewChunks {
        /// The ranks.
        ranks: usize,
        /// The chunks.
        chunks: usize,
    },
    /// A rank cannot get the memory for its block.
    #[error(
        "no memory for a block of {bytes} bytes; try a smaller --size, more --ranks or a larger --slot"
    )]
    OutOfMemory {
        /// The requested bytes.
        bytes: usize,
    },
}

/// A cell's part of the checksum of a grid, which is the sum of all parts
/// modulo 2^64. `number` is the cell's number in the domain, x fastest.
pub fn cell_checksum(number: u64, value: f64) -> u64 {
    scramble(value.to_bits() ^ scramble(number))
}

/// Spreads each bit over the word: the output function of the SplitMix64
/// generator of Steele, Lea and Flood (OOPSLA 2014).
fn scramble(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests;
