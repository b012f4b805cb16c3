//! Ranks of a PE that yield to each other.

use std::cell::{Cell, RefCell};
use std::hint::black_box;

use mpi::collective::SystemOperation;
use mpi::environment::pes;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::stack::at_depth;
use super::{Error, Run, Settings, Stacks};

/// The depth to which ranks use their own stack if another is copied instead.
const SHALLOW: usize = 256;

/// Measures ranks of one PE, which must all call this with the same `settings`. Rank 0 gets the measurements.
///
/// # Errors
///
/// [`Error::Ranks`], on all ranks.
pub fn switch_ranks(world: &SimpleCommunicator, settings: &Settings) -> Result<Option<Run>, Error> {
    let (rank, ranks) = (world.rank(), world.size() as usize);
    if ranks < 2 || pes() != 1 {
        return Err(Error::Ranks { ranks, pes: pes() });
    }
    let is_copied = settings.stacks == Stacks::Copied;
    let mut saved = Saved::new(if is_copied { settings.depth } else { 0 }, rank as u64);
    let own_depth = if is_copied { SHALLOW } else { settings.depth };
    let (mut alone, mut first, mut last) = (0, 0.0, 0.0);
    let mut used = at_depth(own_depth, rank as u64, &mut || {
        world.barrier();
        first = mpi::time();
        for _ in 0..settings.switches {
            if is_copied {
                saved.run();
            }
            alone += usize::from(yield_alone());
        }
        last = mpi::time();
    });
    if is_copied {
        used.depth = saved.bytes();
        used.spoiled += saved.spoiled(rank as u64, settings.switches);
    }
    let mut ends = [0.0; 2];
    world.all_reduce_into(&[-first, last][..], &mut ends[..], SystemOperation::max());
    let mut depth = 0;
    world.all_reduce_into(&(used.depth as u64), &mut depth, SystemOperation::min());
    let mut counts = [0; 2];
    let own = [used.spoiled as u64, alone as u64];
    world.all_reduce_into(&own[..], &mut counts[..], SystemOperation::sum());
    let [spoiled, alone] = counts.map(|count: u64| count as usize);
    let switches = ranks * settings.switches;
    let seconds = ends[0] + ends[1];
    let depth = depth as usize;
    Ok((rank == 0).then_some(Run { ranks, seconds, switches, depth, spoiled, alone }))
}

thread_local! {
    /// How often ranks of this PE have yielded.
    static TURN: Cell<u64> = const { Cell::new(0) };
    /// The stack that ranks share. Its memory is never freed: it has no owner that outlives the
    /// others.
    static COMMON: RefCell<&'static mut [u64]> = const { RefCell::new(&mut []) };
}

/// Yields. Returns whether no other rank ran.
fn yield_alone() -> bool {
    let turn = TURN.get() + 1;
    TURN.set(turn);
    mpi::yield_now();
    TURN.get() == turn
}

/// A rank's contents of the common stack, while others use it.
struct Saved {
    words: Vec<u64>,
}

impl Saved {
    fn new(bytes: usize, mark: u64) -> Self {
        let mut words = vec![mark; bytes.div_ceil(size_of::<u64>())];
        if let Some(count) = words.first_mut() {
            *count = 0;
        }
        COMMON.with_borrow_mut(|common| {
            if common.len() < words.len() {
                *common = Box::leak(vec![0; words.len()].into_boxed_slice());
            }
        });
        Self { words }
    }

    /// Copies it to the common stack, counts there as a running rank would, and copies it back.
    fn run(&mut self) {
        COMMON.with_borrow_mut(|common| {
            let stack = &mut common[..self.words.len()];
            stack.copy_from_slice(black_box(&self.words));
            if let Some(count) = black_box(&mut *stack).first_mut() {
                *count += 1;
            }
            self.words.copy_from_slice(black_box(stack));
        });
        black_box(&self.words);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.words[..])
    }

    /// Number of words that are wrong after this many runs.
    fn spoiled(&self, mark: u64, runs: usize) -> usize {
        let expected = std::iter::once(runs as u64).chain(std::iter::repeat(mark));
        self.words.iter().zip(expected).filter(|(word, expected)| *word != expected).count()
    }
}
