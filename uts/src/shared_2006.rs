//! The shared-memory algorithm of S. Olivier et al., "UTS: An Unbalanced Tree Search Benchmark"
//! (LCPC 2006), section 3, on windows.
//!
//! A rank with more than two chunks releases one to its [`StealStack`], at most one in each interval. One without nodes
//! acquires what it has released; if nothing is left, it probes the others in a pseudo-random order, and steals the
//! oldest chunk of the first that has one. If none has, it goes to a *cancellable barrier*: when all ranks are there,
//! the search has ended; a rank that releases a chunk lets one out again.
//!
//! # The barrier
//!
//! Rank 0 owns its words. Ranks add themselves to the count before they wait, and remove themselves before they search
//! again, so that the count never includes a rank that has work or steals. A rank goes to the barrier with nothing in
//! its frontier and its stack: so when the count is the number of ranks, there is no work. A rank that a cancellation
//! lets out removes itself by a compare-and-swap, which also tells whether the count was complete: then it stays.

use crate::{
    budget::Budget,
    frontier::{Branch, Frontier, OpenNodes},
    lanes::Kernel,
    machine::{Traffic, mix},
    parallel::Progress,
    plan::{Asks, Sharing},
    statistics::{Clock, RankStatistics, State},
    steal_stack::{FREE, Patience, StealStack},
    tree::Tree,
};
use mpi::{
    topology::{Rank, SimpleCommunicator},
    traits::*,
};

/// Ranks at the barrier.
const COUNT: usize = FREE;
/// 1 if one of them may leave.
const CANCELLED: usize = FREE + 1;
/// 1 when the search has ended.
const DONE: usize = FREE + 2;
/// The rank that owns these words.
const ROOT: Rank = 0;

/// Searches the tree with all ranks; returns this rank's part.
pub(crate) fn search(
    world: &SimpleCommunicator,
    tree: &Tree,
    kernel: Kernel,
    sharing: Sharing,
    mut budget: Budget,
    mut progress: impl FnMut(Progress),
) -> RankStatistics {
    let (rank, ranks) = (world.rank(), world.size());
    // The plan was checked: a chunk fits.
    let stack = StealStack::new(world, sharing.chunk as usize);
    let mut frontier = Frontier::new(tree, kernel);
    if rank == ROOT {
        frontier.start();
    }
    world.barrier();
    let mut traffic = Traffic::default();
    let mut clock = Clock::start(State::Working);
    let mut probes = rank as u64;
    loop {
        while frontier.open() > 0 {
            clock.enter(State::Working);
            frontier.explore(sharing.interval.first());
            progress(Progress { counts: frontier.counts(), traffic });
            if budget.is_spent(frontier.counts().nodes) {
                frontier.abandon();
            }
            if frontier.open() > 2 * sharing.chunk && stack.has_room() {
                clock.enter(State::Overhead);
                let chunk = frontier.take_bottom(sharing.chunk);
                traffic.note_put(&chunk);
                stack.release(&chunk);
                if stack.read(ROOT, CANCELLED) == 0 {
                    stack.write(ROOT, CANCELLED, 1);
                }
            }
            mpi::yield_now();
        }
        clock.enter(State::Overhead);
        if let Some(chunk) = stack.acquire() {
            traffic.note_acquired(&chunk);
            frontier.add(chunk);
            continue;
        }
        clock.enter(State::Searching);
        if sharing.asks == Asks::WhenIdle {
            mpi::block_on(mpi::when_idle());
        }
        probes = mix(probes);
        if let Some(chunk) = probe(&stack, rank, ranks, probes, &mut traffic) {
            traffic.note_got(&chunk);
            frontier.add(chunk);
            continue;
        }
        clock.enter(State::Idle);
        if wait_at_barrier(&stack, ranks as u32, sharing.asks) {
            break;
        }
    }
    world.barrier();
    budget.close();
    stack.close();
    RankStatistics { counts: frontier.counts(), traffic, times: clock.stop() }
}

/// Looks at all other ranks once, beginning with a given one; steals from the first that has a
/// chunk.
fn probe(
    stack: &StealStack,
    rank: Rank,
    ranks: Rank,
    random: u64,
    traffic: &mut Traffic,
) -> Option<Vec<Branch>> {
    // The remainder of a division by a number of ranks fits.
    let first = (random % ranks as u64) as Rank;
    for victim in (first..ranks).chain(0..first).filter(|&it| it != rank) {
        match stack.steal(victim) {
            None => traffic.failed_steals += 1,
            chunk => return chunk,
        }
    }
    None
}

/// Waits until work was released or there is none; returns whether the search has ended.
fn wait_at_barrier(stack: &StealStack, ranks: u32, asks: Asks) -> bool {
    if stack.increment(ROOT, COUNT) == ranks {
        stack.write(ROOT, DONE, 1);
        return true;
    }
    let mut patience = Patience::for_work(asks);
    loop {
        let [cancelled, done] = stack.read_two(ROOT, CANCELLED);
        if done == 1 {
            return true;
        }
        if cancelled == 1 && stack.swap(ROOT, CANCELLED, 1, 0) {
            loop {
                let count = stack.read(ROOT, COUNT);
                if count == ranks {
                    // All are here: there is no work any more.
                    return true;
                }
                if stack.swap(ROOT, COUNT, count, count - 1) {
                    return false;
                }
            }
        }
        patience.wait();
    }
}
