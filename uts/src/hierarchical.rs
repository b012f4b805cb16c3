//! The two-level work stealing of R. Machado et al., "Unbalanced Tree Search on a Manycore System using
//! the GPI programming model" (2012), section 5, on windows.
//!
//! Ranks form *groups*: those of a node, or of a PE if there is only one node (according to their placement when the
//! search begins). A rank without nodes
//!
//! 1. acquires what it has released to its [`StealStack`];
//! 2. steals from a rank of its group, one-sidedly;
//! 3. looks at the other groups, beginning with the one where it last had success: it reads how much their ranks have,
//!    and sends a request to the first that has a chunk, by a compare-and-swap on a word of that rank. The victim reads
//!    this word once in every interval and gives one of three answers: work, which it writes to a place of the thief's;
//!    none, but its group has private work; none at all;
//! 4. waits at the barrier of its group.
//!
//! If a rank acquires its last chunk, or gets one from elsewhere, and no other rank of its group has a chunk, it
//! already sends its request to the neighbouring group (*prefetch*), and looks for the answer when it has run out of
//! work.
//!
//! # Termination
//!
//! The barrier of a group is that of [`crate::shared_2006`], but the last rank that arrives *closes* it, so that no
//! rank leaves, and becomes the group's agent. Only the agent continues to look at other groups. If it gets work, it
//! opens the barrier and leaves it; if it finds none, it adds its group to the count of a second barrier, of groups. A
//! rank waits at a barrier only with no nodes, no chunks and no unanswered request. So when all groups are counted,
//! there is no work and no request. An agent that sees work while it waits first removes its group from the count, by a
//! compare-and-swap that fails if all groups were counted. (In the paper it does not look: a group that was once
//! without work stays so. This is the program's only deviation in the second level.)

use crate::{
    budget::Budget,
    frontier::{Branch, Frontier, OpenNodes},
    lanes::Kernel,
    machine::Traffic,
    parallel::Progress,
    plan::{Asks, Sharing},
    statistics::{Clock, RankStatistics, State},
    steal_stack::{FREE, Patience, StealStack, is_idle_soon},
    tree::Tree,
};
use mpi::{
    topology::{Rank, SimpleCommunicator},
    traits::*,
};

/// Word of the first rank of a group: how many of its ranks wait, or that and [`CLOSED`].
const COUNT: usize = FREE;
/// The barrier is closed.
const CLOSED: u32 = 1 << 31;
/// Word of the first rank of a group: 1 if a waiting rank may leave.
const CANCELLED: usize = FREE + 1;
/// Word of the first rank of a group: 1 when the search has ended.
const DONE: usize = FREE + 2;
/// Word of rank 0: how many groups have no work.
const GROUPS: usize = FREE + 3;
/// Word of rank 0: 1 when the search has ended.
const ALL_DONE: usize = FREE + 4;
/// Word of a victim: one more than the rank that asks it, or 0.
const REQUEST: usize = FREE + 5;
/// Word of a thief: the answer, or 0.
const REPLY: usize = FREE + 6;
/// Word of the first rank of a group: how many of its ranks have nodes.
const BUSY: usize = FREE + 7;

/// Answers.
const WORK: u32 = 1;
const ONLY_PRIVATE: u32 = 2;
const NOTHING: u32 = 3;

/// A rank with nodes checks for requests at the latest after this many nodes, because the asking
/// rank waits.
pub(crate) const ANSWER_INTERVAL: u64 = 256;

/// The rank that owns the words of the second barrier.
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
    let mut thief = Thief::new(world, sharing);
    let mut frontier = Frontier::new(tree, kernel);
    if thief.rank == ROOT {
        frontier.start();
    }
    if frontier.open() > 0 {
        thief.set_busy(true);
    }
    world.barrier();
    let mut clock = Clock::start(State::Working);
    loop {
        while frontier.open() > 0 {
            clock.enter(State::Working);
            let mut left = sharing.interval.first();
            while left > 0 && frontier.open() > 0 {
                let nodes = left.min(ANSWER_INTERVAL);
                frontier.explore(nodes);
                thief.answer();
                left -= nodes;
            }
            progress(Progress { counts: frontier.counts(), traffic: thief.traffic });
            if budget.is_spent(frontier.counts().nodes) {
                frontier.abandon();
            }
            if frontier.open() > 2 * sharing.chunk && thief.stack.has_room() {
                clock.enter(State::Overhead);
                let chunk = frontier.take_bottom(sharing.chunk);
                thief.release(&chunk);
            }
            mpi::yield_now();
        }
        clock.enter(State::Searching);
        let Some(chunk) = thief.next_chunk(&mut clock) else { break };
        frontier.add(chunk);
        thief.set_busy(true);
    }
    clock.enter(State::Idle);
    world.barrier();
    budget.close();
    thief.stack.close();
    RankStatistics { counts: frontier.counts(), traffic: thief.traffic, times: clock.stop() }
}

/// One rank's part without its frontier.
struct Thief {
    rank: Rank,
    stack: StealStack,
    traffic: Traffic,
    groups: Vec<Vec<Rank>>,
    /// The rank of each group that last had chunks.
    seen: Vec<usize>,
    /// The number of its group, and the group where it last had success.
    own: usize,
    last: usize,
    /// A prefetch is under way.
    prefetching: bool,
    /// It is counted among the ranks of its group that have nodes.
    busy: bool,
    asks: Asks,
}

impl Thief {
    fn new(world: &SimpleCommunicator, sharing: Sharing) -> Self {
        let groups = groups(world);
        let rank = world.rank();
        let own = groups.iter().position(|it| it.contains(&rank)).unwrap_or_default();
        Self {
            rank,
            // The plan was checked: a chunk fits.
            stack: StealStack::new(world, sharing.chunk as usize),
            traffic: Traffic::default(),
            last: (own + 1) % groups.len(),
            own,
            seen: vec![0; groups.len()],
            groups,
            prefetching: false,
            busy: false,
            asks: sharing.asks,
        }
    }

    fn release(&mut self, chunk: &[Branch]) {
        self.traffic.note_put(chunk);
        self.stack.release(chunk);
        let leader = self.leader();
        if self.stack.read(leader, CANCELLED) == 0 {
            self.stack.write(leader, CANCELLED, 1);
        }
    }

    /// Tells the others whether this rank has nodes.
    fn set_busy(&mut self, busy: bool) {
        if std::mem::replace(&mut self.busy, busy) == busy {
            return;
        }
        let leader = self.leader();
        if busy {
            let _ = self.stack.increment(leader, BUSY);
        } else {
            self.leave(leader, BUSY, |_| false);
        }
    }

    /// The rank that owns the words of this group's barrier.
    fn leader(&self) -> Rank {
        self.groups[self.own][0]
    }

    /// Gets a chunk from wherever there is one; `None` if the search has ended.
    fn next_chunk(&mut self, clock: &mut Clock) -> Option<Vec<Branch>> {
        loop {
            if let Some(chunk) = self.stack.acquire() {
                self.traffic.note_acquired(&chunk);
                self.prefetch();
                return Some(chunk);
            }
            self.set_busy(false);
            self.wait_for_idleness();
            let answered = self.prefetching && self.stack.read(self.rank, REPLY) != 0;
            if let Some(chunk) = answered.then(|| self.finish_prefetch()).flatten() {
                self.prefetch();
                return Some(chunk);
            }
            if let Some(chunk) = self.steal_in_group() {
                return Some(chunk);
            }
            if let Some(chunk) = self.prefetching.then(|| self.finish_prefetch()).flatten() {
                self.prefetch();
                return Some(chunk);
            }
            if let Some(chunk) = self.steal_elsewhere() {
                self.prefetch();
                return Some(chunk);
            }
            clock.enter(State::Idle);
            match self.wait_at_barrier() {
                Awaited::End => return None,
                Awaited::Chunk(chunk) => return Some(chunk),
                Awaited::Cancellation => clock.enter(State::Searching),
            }
        }
    }

    /// Waits until the PE has nothing else to do, and answers others meanwhile.
    fn wait_for_idleness(&mut self) {
        while self.asks == Asks::WhenIdle && !is_idle_soon() {
            self.answer();
        }
    }

    fn steal_in_group(&mut self) -> Option<Vec<Branch>> {
        let group = &self.groups[self.own];
        let place = group.iter().position(|&it| it == self.rank).unwrap_or_default();
        for &victim in group[place..].iter().chain(&group[..place]).skip(1) {
            match self.stack.steal(victim) {
                None => self.traffic.failed_steals += 1,
                Some(chunk) => {
                    self.traffic.note_got(&chunk);
                    return Some(chunk);
                }
            }
        }
        None
    }

    /// Asks the ranks of the other groups that have chunks.
    fn steal_elsewhere(&mut self) -> Option<Vec<Branch>> {
        for step in 0..self.groups.len() {
            let group = (self.last + step) % self.groups.len();
            let Some(victim) = self.rank_with_chunks(group) else { continue };
            if self.ask(victim) {
                if let Some(chunk) = self.wait_for_reply() {
                    self.last = group;
                    return Some(chunk);
                }
            } else {
                self.traffic.failed_steals += 1;
            }
        }
        None
    }

    /// A rank with a chunk in a group other than this rank's. Begins with the one that last had some.
    fn rank_with_chunks(&mut self, group: usize) -> Option<Rank> {
        if group == self.own {
            return None;
        }
        let ranks = &self.groups[group];
        let mut all = (self.seen[group]..ranks.len()).chain(0..self.seen[group]);
        let seen = all.find(|&it| self.stack.available(ranks[it]) > 0)?;
        self.seen[group] = seen;
        Some(ranks[seen])
    }

    /// Asks a rank for a chunk, if no other rank is asking it. This rank must have no other
    /// request.
    fn ask(&mut self, victim: Rank) -> bool {
        self.stack.write(self.rank, REPLY, 0);
        // A rank's number is not negative.
        self.stack.swap(victim, REQUEST, 0, self.rank as u32 + 1)
    }

    /// Waits for the answer to a request, and answers others meanwhile.
    fn wait_for_reply(&mut self) -> Option<Vec<Branch>> {
        let mut patience = Patience::for_answer();
        let reply = loop {
            match self.stack.read(self.rank, REPLY) {
                0 => {}
                reply => break reply,
            }
            self.answer();
            patience.wait();
        };
        self.stack.write(self.rank, REPLY, 0);
        if reply != WORK {
            self.traffic.failed_steals += 1;
            return None;
        }
        let chunk = self.stack.take_landed();
        self.traffic.note_got(&chunk);
        Some(chunk)
    }

    /// Sends a request to the neighbouring group if this rank and its group will have no work soon.
    fn prefetch(&mut self) {
        let neighbour = (self.own + 1) % self.groups.len();
        let group = &self.groups[self.own];
        let has_others = match self.asks {
            Asks::AtOnce => group.iter().any(|&it| self.stack.available(it) > 0),
            // While another rank of the PE has nodes it is not idle.
            Asks::WhenIdle => {
                self.stack.available(self.rank) > 0 || self.stack.read(self.leader(), BUSY) > 1
            }
        };
        if self.prefetching || has_others {
            return;
        }
        if let Some(victim) = self.rank_with_chunks(neighbour) {
            self.prefetching = self.ask(victim);
            self.traffic.prefetches += u64::from(self.prefetching);
        }
    }

    fn finish_prefetch(&mut self) -> Option<Vec<Branch>> {
        let chunk = self.wait_for_reply();
        self.prefetching = false;
        self.traffic.prefetched += u64::from(chunk.is_some());
        chunk
    }

    /// Answers a rank that asks for work, if there is one.
    fn answer(&mut self) {
        let thief = match self.stack.read(self.rank, REQUEST) {
            0 => return,
            number => number as Rank - 1,
        };
        self.stack.write(self.rank, REQUEST, 0);
        let reply = match self.stack.steal(self.rank) {
            Some(chunk) => {
                self.stack.land(thief, &chunk);
                WORK
            }
            None => {
                if self.stack.read(self.leader(), BUSY) > 0 {
                    ONLY_PRIVATE
                } else {
                    NOTHING
                }
            }
        };
        self.stack.write(thief, REPLY, reply);
    }

    fn wait_at_barrier(&mut self) -> Awaited {
        let (leader, size) = (self.leader(), self.groups[self.own].len() as u32);
        if self.stack.increment(leader, COUNT) == size
            && self.stack.swap(leader, COUNT, size, size | CLOSED)
        {
            return self.act_for_group(leader, size);
        }
        let mut patience = Patience::for_work(self.asks);
        loop {
            self.answer();
            let [cancelled, done] = self.stack.read_two(leader, CANCELLED);
            if done == 1 {
                return Awaited::End;
            }
            if cancelled == 1
                && self.stack.swap(leader, CANCELLED, 1, 0)
                && self.leave(leader, COUNT, |count| count & CLOSED != 0)
            {
                return Awaited::Cancellation;
            }
            patience.wait();
        }
    }

    /// Subtracts 1 from a count unless its value forbids that; returns whether it did.
    fn leave(&self, rank: Rank, word: usize, stays: impl Fn(u32) -> bool) -> bool {
        loop {
            let count = self.stack.read(rank, word);
            if stays(count) {
                return false;
            }
            if self.stack.swap(rank, word, count, count - 1) {
                return true;
            }
        }
    }

    /// The agent's part: all ranks of the group wait, and the barrier is closed.
    fn act_for_group(&mut self, leader: Rank, size: u32) -> Awaited {
        let groups = self.groups.len() as u32;
        loop {
            if let Some(chunk) = self.steal_elsewhere() {
                self.stack.write(leader, COUNT, size - 1);
                return Awaited::Chunk(chunk);
            }
            if self.stack.increment(ROOT, GROUPS) == groups {
                self.stack.write(ROOT, ALL_DONE, 1);
            }
            let mut patience = Patience::for_work(self.asks);
            loop {
                self.answer();
                if self.stack.read(ROOT, ALL_DONE) == 1 {
                    self.stack.write(leader, DONE, 1);
                    return Awaited::End;
                }
                let seen = (0..self.groups.len()).any(|it| self.rank_with_chunks(it).is_some());
                if seen && self.leave(ROOT, GROUPS, |count| count == groups) {
                    break;
                }
                patience.wait();
            }
        }
    }
}

/// How a wait at the barrier of a group ends.
enum Awaited {
    /// The search has ended.
    End,
    /// A rank of the group has released a chunk.
    Cancellation,
    /// This rank, as the agent, has got work from elsewhere.
    Chunk(Vec<Branch>),
}

/// The ranks of each node, or of each PE if all are on one node.
fn groups(world: &SimpleCommunicator) -> Vec<Vec<Rank>> {
    let node = world.split_shared(world.rank());
    // The rank that is the first on its node stands for it.
    let mut first = world.rank();
    node.process_at_rank(0).broadcast_into(&mut first);
    let mine = [first, mpi::statistics().pe as i32];
    // A size is not negative.
    let mut all = vec![0; 2 * world.size() as usize];
    world.all_gather_into(&mine[..], &mut all[..]);
    let places: Vec<[i32; 2]> = all.as_chunks().0.to_vec();
    let one_node = places.iter().all(|it| it[0] == places[0][0]);
    let key = |place: &[i32; 2]| if one_node { place[1] } else { place[0] };
    let mut keys: Vec<i32> = places.iter().map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let members = |group: i32| -> Vec<Rank> {
        (0..world.size()).filter(|&it| key(&places[it as usize]) == group).collect()
    };
    keys.into_iter().map(members).collect()
}
