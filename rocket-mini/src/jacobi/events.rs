//! Many chunks in each rank, run by an event loop: the code of a programmer who has no coroutines.
//!
//! A chunk is a block that waits for the faces of its neighbours and counts the missing ones; when
//! the last one has arrived, the chunk is computed, and its own faces are passed on: to a chunk of
//! the same rank by a copy, to others by a message whose tag contains chunk and face. A neighbour
//! may be one iteration ahead, never two, as it needs this chunk's faces for the next; so for each
//! face there is room for one that arrives early.

use std::collections::VecDeque;
use std::ops::Range;

use mpi::Tag;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

use super::block::Block;
use super::kernel::Change;
use super::state::{State, residual};
use super::{Error, Face, ProcessGrid, Run, Settings, Uneven};

/// Solves a problem in `chunks` blocks on all ranks of `world`, each of which runs about equally
/// many; otherwise like [`solve`](super::solve). A rank is moved with all its chunks.
///
/// # Errors
///
/// Those of [`solve`](super::solve), for this many blocks.
pub fn solve_by_events(
    world: &SimpleCommunicator,
    settings: &Settings,
    chunks: usize,
    uneven: Option<Uneven>,
    mut progress: impl FnMut(usize, f64),
) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    if chunks < ranks {
        return Err(Error::TooFewChunks { ranks, chunks });
    }
    let grid = ProcessGrid::cut(chunks, settings.problem.size, settings.cut)?;
    let mut own = match world.restore::<Chunks>() {
        Some(own) => own,
        None => {
            let mut own = Chunks::new(settings, &grid, range(rank, ranks, chunks))?;
            world.barrier();
            own.state.start = mpi::time();
            own
        }
    };
    while !own.state.is_done(settings) {
        let next = next_stop(settings, own.state.iterations);
        let ready = VecDeque::new();
        let mut events = Loop { world, settings, uneven, until: next, all: chunks, ready };
        let change = events.run(&mut own);
        if settings.is_check(next) {
            let residual = residual(world, &change);
            own.state.check(settings, &change, residual);
            if rank == 0 {
                progress(next, residual);
            }
        }
        if own.state.may_move(settings) {
            world.migrate(&mut own);
        }
    }
    let Chunks { chunks, state, .. } = own;
    let seconds = mpi::time() - state.start;
    let blocks = chunks.iter().map(|chunk| &chunk.block);
    let all = state.summary(settings, blocks).gather(world);
    Ok((rank == 0).then(|| state.outcome(settings, grid, &all, seconds)))
}

/// The chunks of a rank.
fn range(rank: usize, ranks: usize, chunks: usize) -> Range<usize> {
    rank * chunks / ranks..(rank + 1) * chunks / ranks
}

/// The next iteration after which all chunks of a rank stop.
fn next_stop(settings: &Settings, iterations: usize) -> usize {
    (iterations + 1..settings.max_iterations)
        .find(|next| {
            settings.is_check(*next)
                || (settings.migrate_every > 0 && next.is_multiple_of(settings.migrate_every))
        })
        .unwrap_or(settings.max_iterations)
}

/// A block, and what it waits for.
#[derive(Debug, Serialize, Deserialize)]
struct Chunk {
    block: Block,
    iterations: usize,
    /// The chunks beyond its faces, in the order of [`Face::ALL`].
    neighbours: [Option<usize>; 6],
    /// The faces that have arrived for the next iteration, or never arrive.
    came: [bool; 6],
    /// Faces for the iteration after that.
    early: [Option<Vec<f64>>; 6],
}

impl Chunk {
    fn new(settings: &Settings, grid: &ProcessGrid, number: usize) -> Result<Self, Error> {
        let neighbours = Face::ALL.map(|face| grid.neighbour(number, face));
        let is_shared = |face: Face| neighbours[face as usize].is_some();
        let block = Block::new(settings.problem, grid.extent(number), is_shared)?;
        let came = neighbours.map(|neighbour| neighbour.is_none());
        Ok(Self { block, iterations: 0, neighbours, came, early: Default::default() })
    }

    fn is_ready(&self) -> bool {
        self.came == [true; 6]
    }

    /// Stores a face; returns whether it was the last missing one.
    fn take(&mut self, face: Face, fill: impl FnOnce(&mut [f64])) -> bool {
        let at = face as usize;
        let is_early = std::mem::replace(&mut self.came[at], true);
        let room = self.block.face(face).incoming;
        if is_early {
            let length = room.len();
            fill(self.early[at].insert(vec![0.0; length]));
        } else {
            fill(room);
        }
        !is_early && self.is_ready()
    }

    /// Waits for the faces of the next iteration, some of which may have arrived.
    fn begin_next(&mut self) {
        self.iterations += 1;
        for face in Face::ALL {
            let at = face as usize;
            let early = self.early[at].take();
            if let Some(early) = &early {
                self.block.face(face).incoming.copy_from_slice(early);
            }
            self.came[at] = early.is_some() || self.neighbours[at].is_none();
        }
    }
}

/// A rank's chunks: all it needs to continue elsewhere.
#[derive(Debug, Serialize, Deserialize)]
struct Chunks {
    /// The number of the first among those of all ranks.
    first: usize,
    chunks: Vec<Chunk>,
    state: State,
}

impl Chunks {
    fn new(settings: &Settings, grid: &ProcessGrid, own: Range<usize>) -> Result<Self, Error> {
        let first = own.start;
        let chunks = own.map(|number| Chunk::new(settings, grid, number));
        Ok(Self { first, chunks: chunks.collect::<Result<_, Error>>()?, state: State::new() })
    }
}

/// The event loop, up to the iteration in which all chunks stop.
struct Loop<'a> {
    world: &'a SimpleCommunicator,
    settings: &'a Settings,
    uneven: Option<Uneven>,
    until: usize,
    /// Number of chunks of all ranks.
    all: usize,
    /// Chunks that have all their faces.
    ready: VecDeque<usize>,
}

impl Loop<'_> {
    /// Returns the changes of cells in the last iteration, if that is a check.
    fn run(&mut self, own: &mut Chunks) -> Change {
        let mut change = Change::default();
        let is_check = self.settings.is_check(self.until);
        let count = own.chunks.len();
        // Faces from ranks that were faster have come before; those of others make more ready.
        self.ready.extend((0..count).filter(|number| own.chunks[*number].is_ready()));
        (0..count).for_each(|number| self.hand_on(own, number));
        let mut running = count;
        while running > 0 {
            let Some(number) = self.ready.pop_front() else {
                self.receive(own);
                continue;
            };
            let chunk = &mut own.chunks[number];
            let is_last = chunk.iterations + 1 == self.until;
            chunk.block.unpack();
            let start = mpi::time();
            let costly = self.uneven.and_then(|uneven| uneven.at(start - own.state.start));
            chunk.block.sweep(costly, (is_last && is_check).then_some(&mut change));
            own.state.compute_seconds += mpi::time() - start;
            chunk.begin_next();
            if is_last {
                running -= 1;
                continue;
            }
            if chunk.is_ready() {
                self.ready.push_back(number);
            }
            self.hand_on(own, number);
        }
        own.state.iterations = self.until;
        change
    }

    /// Passes a chunk's faces to its neighbours.
    fn hand_on(&mut self, own: &mut Chunks, number: usize) {
        own.chunks[number].block.pack();
        for face in Face::ALL {
            let Some(neighbour) = own.chunks[number].neighbours[face as usize] else { continue };
            let there = face.opposite();
            let local = neighbour.wrapping_sub(own.first);
            if let Ok([chunk, other]) = own.chunks.get_disjoint_mut([number, local]) {
                let cells = chunk.block.face(face).outgoing;
                if other.take(there, |room| room.copy_from_slice(cells)) {
                    self.begin(other, local);
                }
            } else {
                let ranks = self.world.size() as usize;
                let rank = ((neighbour + 1) * ranks - 1) / self.all;
                let cells = own.chunks[number].block.face(face).outgoing;
                let to = self.world.process_at_rank(rank as i32);
                to.buffered_send_with_tag(cells, tag(neighbour, there));
            }
        }
    }

    /// Waits for a face from another rank.
    fn receive(&mut self, own: &mut Chunks) {
        let (message, status) = self.world.any_process().matched_probe();
        let (neighbour, face) = meaning(status.tag());
        let number = neighbour - own.first;
        let chunk = &mut own.chunks[number];
        let is_ready = chunk.take(face, |room| {
            message.matched_receive_into(room);
        });
        if is_ready {
            self.begin(chunk, number);
        }
    }

    /// Queues a chunk for computation, unless it stops here.
    fn begin(&mut self, chunk: &Chunk, number: usize) {
        if chunk.iterations < self.until {
            self.ready.push_back(number);
        }
    }
}

/// The tag of a message: its destination chunk, and its face.
fn tag(chunk: usize, face: Face) -> Tag {
    (6 * chunk + face as usize) as Tag
}

/// The chunk and the face of a tag.
fn meaning(tag: Tag) -> (usize, Face) {
    (tag as usize / 6, Face::ALL[tag as usize % 6])
}
