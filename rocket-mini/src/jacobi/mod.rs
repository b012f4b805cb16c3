//! Jacobi relaxation of Laplace's equation on a cube, with a block of cells
//! for each rank.
//!
//! The values on the boundary of the cube are given. In each iteration a cell
//! becomes the mean of its six neighbours; before it, ranks exchange the cells
//! on the faces of their blocks.
//!
//! The bits of every cell are the same for every number of ranks: the
//! arithmetic of a cell has one order, and the residual that ends the run is a
//! maximum, which has none. So a parallel run is checked against the
//! sequential one for equality, not for likeness.

mod block;
mod decomposition;
mod exchange;
mod kernel;
mod problem;
mod sequential;

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use block::Block;
pub use decomposition::{Extent, Face, ProcessGrid};
use exchange::exchange;
use kernel::Change;
pub use problem::{Costly, ParseCostlyError, Problem};
pub use sequential::solve_sequentially;

/// What to solve, and when to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The equation and its grid.
    pub problem: Problem,
    /// Iterations after which to stop at the latest.
    pub max_iterations: usize,
    /// The run has converged when the residual is below this; never with 0.
    pub tolerance: f64,
    /// Iterations from one look at the residual to the next, at least 1. The
    /// residual of the last iteration is looked at in any case.
    pub check_every: usize,
    /// Iterations after which ranks offer themselves to be moved; never with 0.
    pub migrate_every: usize,
}

/// How far a rank is: all it needs to begin again elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct Progress {
    block: Block,
    residuals: Vec<f64>,
    converged: bool,
    iterations: usize,
    squares: f64,
    compute_seconds: f64,
    start: f64,
}

impl Settings {
    /// Whether the residual of an iteration, counted from 1, is looked at.
    pub fn is_check(&self, iteration: usize) -> bool {
        iteration.is_multiple_of(self.check_every) || iteration == self.max_iterations
    }
}

/// What a run computed: the same for every number of ranks, but for the last
/// bits of `l2`.
///
/// The residual of an iteration is by how much it changed the cells, which is
/// the residual of the linear system divided by its diagonal.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The residual at each check: the largest change of a cell.
    pub residuals: Vec<f64>,
    /// The changes of the last iteration: the root of the mean of their squares.
    pub l2: f64,
    /// Iterations made.
    pub iterations: usize,
    /// Whether the last residual is below the tolerance.
    pub converged: bool,
    /// The largest distance of a cell from the exact solution.
    pub error: f64,
    /// A checksum of the bits of all cells, see [`cell_checksum`].
    pub checksum: u64,
}

impl Solution {
    /// The residual of the last iteration.
    pub fn residual(&self) -> f64 {
        self.residuals.last().copied().unwrap_or(f64::INFINITY)
    }

    /// How this solution differs from one that must be the same; `None` when
    /// it does not. The two `l2` may differ by 1e-12 of their size.
    pub fn difference_from(&self, reference: &Self) -> Option<Difference> {
        let same_bits = |a: &f64, b: &f64| a.to_bits() == b.to_bits();
        let check = (self.residuals.iter())
            .zip(&reference.residuals)
            .position(|(ours, theirs)| !same_bits(ours, theirs));
        if let Some(check) = check {
            Some(Difference::Residual {
                check: check + 1,
                found: self.residuals[check],
                expected: reference.residuals[check],
            })
        } else if self.iterations != reference.iterations {
            Some(Difference::Iterations { found: self.iterations, expected: reference.iterations })
        } else if self.checksum != reference.checksum {
            Some(Difference::Cells { found: self.checksum, expected: reference.checksum })
        } else if (self.l2 - reference.l2).abs() > 1e-12 * reference.l2.abs() {
            Some(Difference::L2 { found: self.l2, expected: reference.l2 })
        } else {
            None
        }
    }
}

/// Where a solution departs from the one it must equal.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Difference {
    /// The residual of a check.
    #[error(
        "the residual at check {check} is {found:e}, that of the sequential solver {expected:e}"
    )]
    Residual {
        /// The number of the check, from 1.
        check: usize,
        /// The residual of this solution.
        found: f64,
        /// The residual it must have.
        expected: f64,
    },
    /// The number of iterations.
    #[error("stopped after iteration {found}, the sequential solver after {expected}")]
    Iterations {
        /// The iterations of this solution.
        found: usize,
        /// The iterations it must have.
        expected: usize,
    },
    /// The cells.
    #[error(
        "the checksum of the cells is {found:016x}, that of the sequential solver {expected:016x}"
    )]
    Cells {
        /// The checksum of this solution.
        found: u64,
        /// The checksum it must have.
        expected: u64,
    },
    /// The root mean square of the changes.
    #[error("the L2 residual is {found:e}, that of the sequential solver {expected:e}")]
    L2 {
        /// The norm of this solution.
        found: f64,
        /// The norm it must have.
        expected: f64,
    },
}

/// What a parallel run took, beside its solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The solution.
    pub solution: Solution,
    /// The blocks.
    pub grid: ProcessGrid,
    /// Seconds for all iterations, from when all ranks were ready.
    pub seconds: f64,
    /// For each rank the seconds it computed, without the exchange of faces.
    pub compute_seconds: Vec<f64>,
}

/// Why a problem cannot be solved on the ranks there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are not enough cells for a block for each rank.
    #[error(
        "{ranks} ranks cannot each have a block of a grid of {size} cells a side; \
         the number of ranks must be a product of three numbers up to {size}"
    )]
    TooManyRanks {
        /// The ranks.
        ranks: usize,
        /// Cells a side of the domain.
        size: usize,
    },
    /// A rank cannot get the memory for its block.
    #[error(
        "no memory for a block of {bytes} bytes; try a smaller --size, more --ranks or a larger --slot"
    )]
    OutOfMemory {
        /// The bytes asked for.
        bytes: usize,
    },
}

/// Solves a problem on all ranks of `world`, which must all call this with the
/// same `settings`. Rank 0 gets the outcome, the others `None`.
///
/// Cells of the part of the domain that `costly` names are computed several
/// times, with the same result. `progress` is called at each check on rank 0
/// with the iteration and its residual.
///
/// # Errors
///
/// The errors of [`Error`]. [`Error::TooManyRanks`] comes on all ranks;
/// a rank that is out of memory leaves the others waiting, so the program
/// should end the job.
pub fn solve(
    world: &SimpleCommunicator,
    settings: &Settings,
    costly: Option<Costly>,
    mut progress: impl FnMut(usize, f64),
) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let grid = ProcessGrid::new(ranks, settings.problem.size)?;
    let mut state = match world.restore::<Progress>() {
        Some(state) => state,
        None => {
            let block = Block::new(settings.problem, grid.extent(rank), |face| {
                grid.neighbour(rank, face).is_some()
            })?;
            world.barrier();
            Progress {
                block,
                residuals: Vec::new(),
                converged: false,
                iterations: 0,
                squares: 0.0,
                compute_seconds: 0.0,
                start: mpi::time(),
            }
        }
    };
    world.set_coordinates(grid.extent(rank).centre());
    let neighbours = Face::ALL.map(|face| grid.neighbour(rank, face).map(|r| r as i32));
    while state.iterations < settings.max_iterations && !state.converged {
        state.iterations += 1;
        exchange(world, &neighbours, &mut state.block);
        let is_check = settings.is_check(state.iterations);
        let mut change = is_check.then(Change::default);
        let sweep_start = mpi::time();
        state.block.sweep(costly, change.as_mut());
        state.compute_seconds += mpi::time() - sweep_start;
        if let Some(change) = change {
            state.squares = change.squares();
            let mut residual = 0.0;
            world.all_reduce_into(&change.largest(), &mut residual, SystemOperation::max());
            state.residuals.push(residual);
            state.converged = residual < settings.tolerance;
            if rank == 0 {
                progress(state.iterations, residual);
            }
        }
        if settings.migrate_every > 0 && state.iterations.is_multiple_of(settings.migrate_every) {
            world.migrate(&mut state);
        }
    }
    let seconds = mpi::time() - state.start;
    let Progress { block, residuals, converged, iterations, squares, compute_seconds, .. } = state;

    let mut all_squares = 0.0;
    world.all_reduce_into(&squares, &mut all_squares, SystemOperation::sum());
    let summary = Summary::of(&settings.problem, &block);
    let mut error = 0.0;
    world.all_reduce_into(&summary.error, &mut error, SystemOperation::max());
    let Some((checksums, compute_seconds)) = gather(world, summary.checksum, compute_seconds)
    else {
        return Ok(None);
    };
    Ok(Some(Run {
        solution: Solution {
            residuals,
            l2: (all_squares / settings.problem.cells() as f64).sqrt(),
            iterations,
            converged,
            error,
            checksum: checksums.into_iter().fold(0, u64::wrapping_add),
        },
        grid,
        seconds,
        compute_seconds,
    }))
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

/// What a block adds to the solution at the end.
struct Summary {
    checksum: u64,
    error: f64,
}

impl Summary {
    fn of(problem: &Problem, block: &Block) -> Self {
        let mut summary = Self { checksum: 0, error: 0.0 };
        block.for_each_cell(|number, node, value| {
            summary.checksum = (summary.checksum).wrapping_add(cell_checksum(number, value));
            summary.error = (summary.error).max((value - problem.exact(node)).abs());
        });
        summary
    }
}

/// Brings a checksum and the seconds of each rank to rank 0.
fn gather(world: &SimpleCommunicator, checksum: u64, seconds: f64) -> Option<(Vec<u64>, Vec<f64>)> {
    let root = world.process_at_rank(0);
    if world.rank() != 0 {
        root.gather_into(&checksum);
        root.gather_into(&seconds);
        return None;
    }
    let ranks = world.size() as usize;
    let mut checksums = vec![0; ranks];
    let mut all_seconds = vec![0.0; ranks];
    root.gather_into_root(&checksum, &mut checksums[..]);
    root.gather_into_root(&seconds, &mut all_seconds[..]);
    Some((checksums, all_seconds))
}

#[cfg(test)]
mod tests;
