//! The run on ranks: ghost cells by messages, the length of a step by a reduction.

use mpi::Tag;
use mpi::collective::SystemOperation;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::decomposition::Blocks;
use super::march::{Alone, Clock, Neighbours, step};
use super::outcome::{Outcome, Sums};
use super::{Error, Settings};

/// A run: its outcome and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The outcome.
    pub outcome: Outcome,
    /// The blocks.
    pub blocks: Blocks,
    /// Seconds for all steps.
    pub seconds: f64,
}

/// The progress of a rank: all it needs to continue elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    block: Block,
    clock: Clock,
    start: f64,
}

/// Solves a problem on all ranks of `world`, which must all call this with the same `settings`.
/// Rank 0 gets the outcome, the others `None`; there `progress` is called after each step.
///
/// # Errors
///
/// Those of [`Error`], on all ranks.
pub fn solve(
    world: &SimpleCommunicator,
    settings: &Settings,
    mut progress: impl FnMut(&Clock),
) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let blocks = Blocks::new(ranks, settings.cells, settings.unevenness)?;
    let extent = blocks.extent(rank);
    let first_block = || Block::new(settings.problem, settings.limiter, settings.cells, extent);
    let mut state = world.restore().unwrap_or_else(|| State {
        block: first_block(),
        clock: Clock::default(),
        start: mpi::time(),
    });
    world.set_coordinates(extent.centre());
    let mut neighbours = Ranks::new(world, &blocks);
    while state.clock.time < settings.end_time {
        step(&mut state.block, &mut neighbours, settings, &mut state.clock)?;
        if rank == 0 {
            progress(&state.clock);
        }
        if settings.migrate_every > 0 && state.clock.steps.is_multiple_of(settings.migrate_every) {
            world.migrate(&mut state);
        }
    }
    let seconds = mpi::time() - state.start;
    let first = Sums::of(settings, &first_block(), 0.0);
    let last = Sums::of(settings, &state.block, state.clock.time);
    let (first, last) = (sum(world, first), sum(world, last));
    let outcome = Outcome { clock: state.clock, first, last };
    Ok((rank == 0).then_some(Run { outcome, blocks, seconds }))
}

/// Solves a problem on one block, without ranks.
///
/// # Errors
///
/// [`Error::BlownUp`].
pub fn solve_alone(settings: &Settings) -> Result<Outcome, Error> {
    let extent = Blocks::new(1, settings.cells, 1.0)?.extent(0);
    let mut block = Block::new(settings.problem, settings.limiter, settings.cells, extent);
    let first = Sums::of(settings, &block, 0.0);
    let mut clock = Clock::default();
    while clock.time < settings.end_time {
        step(&mut block, &mut Alone, settings, &mut clock)?;
    }
    Ok(Outcome { clock, first, last: Sums::of(settings, &block, clock.time) })
}

/// Sums over all ranks.
pub(crate) fn sum(world: &SimpleCommunicator, sums: Sums) -> Sums {
    let mut row = [0.0; 13];
    world.all_reduce_into(&sums.to_row()[..], &mut row[..], SystemOperation::sum());
    let mut checksums = vec![0; world.size() as usize];
    world.all_gather_into(&sums.checksum, &mut checksums[..]);
    Sums::from_row(row, checksums.into_iter().fold(0, u64::wrapping_add))
}

/// The neighbours of a rank's block.
pub struct Ranks<'a> {
    world: &'a SimpleCommunicator,
    blocks: &'a Blocks,
    /// Buffers for the cells sent to and received from the neighbours along an axis, reused by each
    /// exchange.
    outgoing: [Vec<f64>; 2],
    incoming: [Vec<f64>; 2],
}

impl<'a> Ranks<'a> {
    /// The neighbours of the calling rank.
    pub fn new(world: &'a SimpleCommunicator, blocks: &'a Blocks) -> Self {
        let [outgoing, incoming] = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
        Self { world, blocks, outgoing, incoming }
    }

    /// Exchanges the cells at the ends of `block` with both neighbours along an axis.
    fn exchange(&mut self, block: &mut Block, axis: usize) {
        let rank = self.world.rank() as usize;
        let beside = self.blocks.neighbours(rank, axis, block.is_periodic(axis));
        let there = || beside.iter().enumerate().filter_map(|(side, rank)| Some((side, (*rank)?)));
        for (side, _) in there() {
            block.lend(axis, side, &mut self.outgoing[side]);
            self.incoming[side].resize(block.lent_values(axis), 0.0);
        }
        let count = 2 * there().count();
        multiple_scope(count, |scope, requests| {
            for (side, buffer) in self.incoming.iter_mut().enumerate() {
                let Some(rank) = beside[side] else { continue };
                let tag = tag(axis, 1 - side);
                let from = self.world.process_at_rank(rank as i32);
                requests.add(from.immediate_receive_into_with_tag(scope, &mut buffer[..], tag));
            }
            for (side, rank) in there() {
                let to = self.world.process_at_rank(rank as i32);
                let buffer = &self.outgoing[side][..];
                requests.add(to.immediate_send_with_tag(scope, buffer, tag(axis, side)));
            }
            requests.wait_all(&mut Vec::with_capacity(count));
        });
        for (side, _) in there() {
            block.borrow(axis, side, &self.incoming[side]);
        }
    }
}

impl Neighbours for Ranks<'_> {
    fn fill(&mut self, block: &mut Block) {
        for axis in [0, 2] {
            if block.has_ghosts(axis) {
                self.exchange(block, axis);
                block.fill_boundary(axis);
            }
        }
    }

    fn largest(&mut self, value: f64) -> f64 {
        let mut largest = 0.0;
        self.world.all_reduce_into(&value, &mut largest, SystemOperation::max());
        largest
    }
}

/// The tag of a message: the side of the sender's block.
fn tag(axis: usize, side: usize) -> Tag {
    (2 * axis + side) as Tag
}
