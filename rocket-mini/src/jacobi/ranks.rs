//! A block for each rank: blocking ranks, and async ones.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::exchange::{exchange, exchange_async};
use super::kernel::Change;
use super::state::{State, residual};
use super::{Error, Face, ProcessGrid, Run, Settings, Uneven};

/// A rank's block and its progress: all it needs to continue elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct Own {
    block: Block,
    state: State,
}

impl Own {
    fn new(settings: &Settings, grid: &ProcessGrid, rank: usize) -> Result<Self, Error> {
        let is_shared = |face| grid.neighbour(rank, face).is_some();
        let block = Block::new(settings.problem, grid.extent(rank), is_shared)?;
        Ok(Self { block, state: State::new() })
    }

    /// Computes the next iterate; with the changes of cells, if this iteration is a check.
    fn compute(&mut self, settings: &Settings, uneven: Option<Uneven>) -> Option<Change> {
        self.state.iterations += 1;
        let mut change = settings.is_check(self.state.iterations).then(Change::default);
        let start = mpi::time();
        let costly = uneven.and_then(|uneven| uneven.at(start - self.state.start));
        self.block.sweep(costly, change.as_mut());
        self.state.compute_seconds += mpi::time() - start;
        change
    }
}

/// Solves a problem on all ranks of `world`, which must all call this with the
/// same `settings`. Rank 0 gets the outcome, the others `None`.
///
/// Cells of the part of the domain in `uneven` are computed several times, with the same result.
/// `progress` is called at each check on rank 0 with the iteration and its residual.
///
/// # Errors
///
/// Those of [`Error`]. All except [`Error::OutOfMemory`] occur on all ranks; a rank that is out of
/// memory leaves the others waiting, so the program should end the job.
pub fn solve(
    world: &SimpleCommunicator,
    settings: &Settings,
    uneven: Option<Uneven>,
    mut progress: impl FnMut(usize, f64),
) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let grid = ProcessGrid::cut(ranks, settings.problem.size, settings.cut)?;
    let mut own = match world.restore::<Own>() {
        Some(own) => own,
        None => {
            let mut own = Own::new(settings, &grid, rank)?;
            world.barrier();
            own.state.start = mpi::time();
            own
        }
    };
    world.set_coordinates(grid.extent(rank).centre());
    let neighbours = Face::ALL.map(|face| grid.neighbour(rank, face).map(|r| r as i32));
    while !own.state.is_done(settings) {
        exchange(world, &neighbours, &mut own.block);
        if let Some(change) = own.compute(settings, uneven) {
            let residual = residual(world, &change);
            own.state.check(settings, &change, residual);
            if rank == 0 {
                progress(own.state.iterations, residual);
            }
        }
        if own.state.may_move(settings) {
            world.migrate(&mut own);
        }
    }
    let Own { block, state } = own;
    let seconds = mpi::time() - state.start;
    let all = state.summary(settings, [&block]).gather(world);
    Ok((rank == 0).then(|| state.outcome(settings, grid, &all, seconds)))
}

/// The async twin of [`solve`]: the same blocks and messages, but each rank is a future.
///
/// # Errors
///
/// Those of [`solve`].
pub async fn solve_async(
    world: &SimpleCommunicator,
    settings: &Settings,
    uneven: Option<Uneven>,
    mut progress: impl FnMut(usize, f64),
) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let grid = ProcessGrid::cut(ranks, settings.problem.size, settings.cut)?;
    let mut own = match world.restore::<Own>() {
        Some(own) => own,
        None => {
            let mut own = Own::new(settings, &grid, rank)?;
            world.barrier_async().await;
            own.state.start = mpi::time();
            own
        }
    };
    world.set_coordinates(grid.extent(rank).centre());
    let neighbours = Face::ALL.map(|face| grid.neighbour(rank, face).map(|r| r as i32));
    while !own.state.is_done(settings) {
        exchange_async(world, &neighbours, &mut own.block).await;
        if let Some(change) = own.compute(settings, uneven) {
            let mut residual = 0.0;
            let (largest, max) = (change.largest(), SystemOperation::max());
            world.all_reduce_into_async(&largest, &mut residual, max).await;
            own.state.check(settings, &change, residual);
            if rank == 0 {
                progress(own.state.iterations, residual);
            }
        }
        if own.state.may_move(settings) {
            world.migrate_async(&mut own).await;
        }
    }
    let Own { block, state } = own;
    let seconds = mpi::time() - state.start;
    let all = state.summary(settings, [&block]).gather_async(world).await;
    Ok((rank == 0).then(|| state.outcome(settings, grid, &all, seconds)))
}
