//! A stack of chunks, in a window, from which other ranks can steal without their owner's help.
//!
//! Each rank has a private frontier, and a ring of chunks in its part of a [`Window`] (S. Olivier et al., LCPC 2006,
//! section 3.2, figure 2). The owner *releases* its oldest nodes to the ring's tail and *acquires* them from there
//! again when it has no others; a thief takes the chunk at the head, the oldest.
//!
//! # Access rules
//!
//! * The number of chunks and the head may be read by any rank, and are changed under the lock of their owner: a word
//!   that is 0 or one more than the rank that holds it.
//! * A slot is written by the owner while it is empty (its length is 0) and not among the chunks; a chunk is read by
//!   the rank that has removed it from the chunks under the lock. The thief reads it after it has released the lock,
//!   and then sets the length to 0: so the owner waits for at most two accesses, and does not write to a slot that is
//!   being read.
//! * The other words belong to the algorithms; the constants document their owners.
//!
//! Accesses between nodes are messages to the owner's PE, and need no help of the owner either. The window's copies are
//! not ordered among themselves; there is a fence after taking the lock and before releasing it, and wherever the order
//! of two accesses matters.

use crate::{frontier::Branch, parallel::LONGEST, plan::Asks};
use mpi::{
    collective::SystemOperation,
    topology::{Rank, SimpleCommunicator},
    traits::*,
    window::Window,
};
use std::time::Duration;

/// Chunks in a ring.
const SLOTS: u32 = 64;

const LOCK: usize = 0;
/// The number of chunks; the next word is the number of the oldest one's slot.
const AVAILABLE: usize = 1;
/// The first of the words of the algorithms.
pub const FREE: usize = 3;
/// Where a chunk from elsewhere lands.
const LANDING: usize = 16;

/// The ring of this rank, and access to those of the others.
#[derive(Debug)]
pub struct StealStack {
    window: Window<'static, u32>,
    rank: Rank,
    chunk: usize,
}

impl StealStack {
    /// Creates the rings of all ranks. A chunk has at most this many branches. Collective.
    #[must_use]
    pub fn new(world: &SimpleCommunicator, chunk: usize) -> Self {
        let words = LANDING + (SLOTS as usize + 1) * (1 + chunk * Branch::WORDS);
        let window = world.allocate_window(vec![0; words]);
        window.lock_all();
        Self { window, rank: world.rank(), chunk }
    }

    /// No access may follow. Collective.
    pub fn close(self) {
        self.window.unlock_all();
    }

    /// Number of chunks of a rank that can be stolen.
    #[must_use]
    pub fn available(&self, rank: Rank) -> u32 {
        self.read(rank, AVAILABLE)
    }

    /// Whether this rank's ring has room for another chunk.
    #[must_use]
    pub fn has_room(&self) -> bool {
        // Only this rank moves the tail.
        let [available, head] = self.read_two(self.rank, AVAILABLE);
        available < SLOTS && self.read(self.rank, self.slot(head + available)) == 0
    }

    /// Puts a chunk where others can get it. There must be room.
    pub fn release(&self, branches: &[Branch]) {
        self.lock(self.rank);
        let [available, head] = self.read_two(self.rank, AVAILABLE);
        self.write_slot(self.rank, self.slot(head + available), branches);
        self.replace(self.rank, AVAILABLE, available + 1);
        self.unlock(self.rank);
    }

    /// Takes the newest chunk of this rank, if there is one.
    #[must_use]
    pub fn acquire(&self) -> Option<Vec<Branch>> {
        if self.available(self.rank) == 0 {
            return None;
        }
        self.lock(self.rank);
        let [available, head] = self.read_two(self.rank, AVAILABLE);
        let chunk = (available > 0).then(|| {
            self.replace(self.rank, AVAILABLE, available - 1);
            let slot = self.slot(head + available - 1);
            let branches = self.read_slot(self.rank, slot);
            // Only this rank writes into it.
            self.replace(self.rank, slot, 0);
            branches
        });
        self.unlock(self.rank);
        chunk
    }

    /// Takes the oldest chunk of a rank, if it has one.
    #[must_use]
    pub fn steal(&self, victim: Rank) -> Option<Vec<Branch>> {
        if self.available(victim) == 0 {
            return None;
        }
        self.lock(victim);
        let [available, head] = self.read_two(victim, AVAILABLE);
        if available > 0 {
            self.window.put(victim, AVAILABLE, &[available - 1, (head + 1) % SLOTS]);
        }
        self.unlock(victim);
        (available > 0).then(|| self.empty_slot(victim, self.slot(head)))
    }

    /// Puts a chunk where a rank that has asked this one expects it.
    pub fn land(&self, thief: Rank, branches: &[Branch]) {
        self.write_slot(thief, LANDING, branches);
        self.window.flush_all();
    }

    /// Takes the chunk that has arrived at this rank.
    #[must_use]
    pub fn take_landed(&self) -> Vec<Branch> {
        self.window.flush_all();
        self.empty_slot(self.rank, LANDING)
    }

    /// A word of a rank.
    #[must_use]
    pub fn read(&self, rank: Rank, word: usize) -> u32 {
        let mut value = [0];
        self.window.get(rank, word, &mut value);
        value[0]
    }

    /// A word of a rank and the next one.
    #[must_use]
    pub fn read_two(&self, rank: Rank, word: usize) -> [u32; 2] {
        let mut values = [0; 2];
        self.window.get(rank, word, &mut values);
        values
    }

    /// Writes a word of a rank, after what this rank has written before.
    pub fn write(&self, rank: Rank, word: usize, value: u32) {
        self.window.flush_all();
        self.replace(rank, word, value);
    }

    /// Writes a word of a rank without ordering: for words that are read under a lock.
    fn replace(&self, rank: Rank, word: usize, value: u32) {
        self.window.accumulate(rank, word, &[value], SystemOperation::replace());
    }

    /// Adds 1 to a word of a rank; returns the sum.
    #[must_use]
    pub fn increment(&self, rank: Rank, word: usize) -> u32 {
        self.window.fetch_and_op(rank, word, 1, SystemOperation::sum()) + 1
    }

    /// Writes a word of a rank if it has the expected value; returns whether it had.
    #[must_use]
    pub fn swap(&self, rank: Rank, word: usize, expected: u32, value: u32) -> bool {
        self.window.flush_all();
        self.window.compare_and_swap(rank, word, expected, value) == expected
    }

    fn lock(&self, rank: Rank) {
        let mut patience = Patience::for_answer();
        // A rank's number is not negative.
        while self.window.compare_and_swap(rank, LOCK, 0, self.rank as u32 + 1) != 0 {
            patience.wait();
        }
        self.window.flush_all();
    }

    fn unlock(&self, rank: Rank) {
        self.write(rank, LOCK, 0);
    }

    fn slot(&self, number: u32) -> usize {
        let size = 1 + self.chunk * Branch::WORDS;
        LANDING + size + (number % SLOTS) as usize * size
    }

    fn write_slot(&self, rank: Rank, slot: usize, branches: &[Branch]) {
        debug_assert!(branches.len() <= self.chunk);
        let length = std::iter::once(branches.len() as u32);
        let words: Vec<u32> = length.chain(branches.iter().flat_map(|it| it.to_words())).collect();
        self.window.put(rank, slot, &words);
    }

    fn empty_slot(&self, rank: Rank, slot: usize) -> Vec<Branch> {
        let branches = self.read_slot(rank, slot);
        self.write(rank, slot, 0);
        branches
    }

    fn read_slot(&self, rank: Rank, slot: usize) -> Vec<Branch> {
        let mut words = vec![0; 1 + self.chunk * Branch::WORDS];
        self.window.get(rank, slot, &mut words);
        let words = &words[1..1 + words[0] as usize * Branch::WORDS];
        words.as_chunks().0.iter().copied().map(Branch::from_words).collect()
    }
}

/// How a rank waits for what others write: it lets the other ranks of its PE run, and eventually sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// It waits until the others of its PE have nothing to do, instead of letting each run once.
    for_idleness: bool,
    waits: u32,
}

impl Patience {
    /// Number of waits before the first sleep; each takes a fraction of a microsecond if the PE has nothing else to do.
    const AWAKE: u32 = 400;
    const SHORTEST: Duration = Duration::from_micros(20);
    /// The longest sleep is 2 to this power times the shortest.
    const DOUBLINGS: u32 = 5;

    /// For a lock that will be released soon, or an answer that will arrive soon.
    #[must_use]
    pub fn for_answer() -> Self {
        Self { for_idleness: false, waits: 0 }
    }

    /// For work.
    #[must_use]
    pub fn for_work(asks: Asks) -> Self {
        Self { for_idleness: asks == Asks::WhenIdle, waits: 0 }
    }

    /// Waits a little, longer each time.
    pub fn wait(&mut self) {
        match self.waits.checked_sub(Self::AWAKE) {
            Some(sleeps) => mpi::sleep(Self::SHORTEST * (1 << sleeps.min(Self::DOUBLINGS))),
            None if self.for_idleness => {
                if !is_idle_soon() {
                    return;
                }
            }
            None => mpi::yield_now(),
        }
        self.waits = self.waits.saturating_add(1);
    }
}

/// Waits until the PE has nothing else to do, but not for long. Returns whether it still has.
#[must_use]
pub fn is_idle_soon() -> bool {
    mpi::block_on(mpi::timeout(LONGEST, mpi::when_idle())).is_ok()
}
