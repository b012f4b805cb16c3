//! Thieves that look at one process after another: models of the algorithms that are not [`Machine`]s, and of
//! `steal-2007` on very many processes.
//!
//! In `shared-2006` and `hierarchical`, thieves read words of others; in `steal-2007` they send requests. All of them
//! try one process after another, nearly always in vain if there are many processes. A failed try is not an event of
//! its own: a thief looks at least [`BLOCK`] processes ahead for one that has something *now*, and gets there after as
//! many accesses as there are processes in between. So a million thieves can be simulated. The rest is as in
//! [`crate::shared_2006`], [`crate::hierarchical`] and [`crate::searcher`]: chunks, rings, requests that are answered
//! once in an interval, cancellable barriers, the group's agent, prefetching.
//!
//! | | looks at | costs | then |
//! |---|---|---|---|
//! | `shared-2006` | all others from a random one on | an access each | takes the chunk |
//! | `hierarchical` | its group | an access each | takes the chunk |
//! | | other groups, from that of its last success on | a far access each | asks, waits |
//! | `steal-2007` | all others in turn | a request and its answer each | asks, waits |
//!
//! The end of `steal-2007` is computed: when there is no work, the token is somewhere on its round, and goes round as
//! white, pink and red; other terminations pass up and down trees.
//!
//! [`Machine`]: crate::machine::Machine

mod barriers;

use super::{Costs, Simulated, SimulationError, bits::Bits, events::Events};
use crate::{
    frontier::{Branch, OpenNodes},
    hierarchical::ANSWER_INTERVAL,
    lanes::LANES,
    machine::{Traffic, mix},
    plan::{Algorithm, Plan, Sharing},
    statistics::{RankStatistics, Times},
    termination::Termination,
};
use barriers::Group;
use std::collections::VecDeque;

/// The most processes that a thief passes in one event: this many, or a part of all of them.
const BLOCK: usize = 1024;
const BLOCKS: usize = 64;
/// Chunks in a ring, as in [`crate::steal_stack`].
const SLOTS: usize = 64;

/// Simulates a search. The plan must be one for this many processes.
pub(super) fn run<N: OpenNodes>(
    new: impl Fn() -> N,
    plan: Plan,
    processes: usize,
    costs: Costs,
    most: u64,
) -> Result<Simulated, SimulationError> {
    let mut world = World::new(new, plan, processes, costs);
    while let Some(event) = world.events.pop() {
        if world.events.told() > most {
            return Err(SimulationError::TooMany(most));
        }
        world.happen(event.process, event.at, event.what);
        if world.ended.is_some() {
            break;
        }
    }
    let Some(end) = world.ended else {
        unreachable!("nobody does anything, and it is not the end");
    };
    let seconds = end * 1e-9;
    let statistics = |it: &Process<N>| {
        let working = it.worked * 1e-9;
        let times = Times { seconds: [working, 0.0, 0.0, seconds - working], sessions: [0; 4] };
        RankStatistics { counts: it.nodes.counts(), traffic: it.traffic, times }
    };
    let events = world.events.told();
    Ok(Simulated { processes: world.processes.iter().map(statistics).collect(), seconds, events })
}

struct World<N> {
    algorithm: Algorithm,
    termination: Termination,
    sharing: Sharing,
    costs: Costs,
    processes: Vec<Process<N>>,
    /// Processes with chunks in their rings; for `steal-2007`, with open nodes.
    victims: Bits,
    groups: Vec<Group>,
    /// Processes in a group. (In `shared-2006` all have one barrier, that of the first group.)
    group: usize,
    /// Number of groups that are counted as without work.
    done: usize,
    /// For `steal-2007`: processes with open nodes, and answers with chunks in flight.
    busy: usize,
    events: Events<What>,
    ended: Option<f64>,
}

struct Process<N> {
    nodes: N,
    ring: VecDeque<Vec<Branch>>,
    traffic: Traffic,
    worked: f64,
    /// The cost of answers given during an interval.
    owed: f64,
    /// It looks at nodes, and answers only between two intervals.
    works: bool,
    /// The processes that ask it.
    requests: VecDeque<usize>,
    prefetch: Prefetch,
    /// Since when it waits for an answer, where it continues if the answer contains no chunk, and where it begins the
    /// next time if it does.
    asked: f64,
    passed: usize,
    asks: usize,
    /// The process that it looks at next; for `hierarchical`, the first of the group where it had success.
    last: usize,
    /// Until when its ring is locked.
    locked: f64,
    /// It acts for its group.
    agent: bool,
}

#[derive(Debug)]
enum Prefetch {
    None,
    /// Asked, not answered.
    Asked,
    /// Asked, and the process waits for the answer now.
    Awaited,
    Answered(Option<Vec<Branch>>),
}

/// Where a thief looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// In its group, or, if there are no groups, everywhere.
    Near,
    /// In other groups.
    Elsewhere,
}

#[derive(Debug)]
enum What {
    /// It looks at nodes, or takes its next step to find some.
    Turn,
    /// It has passed this many of the processes that it can look at.
    Scan(Where, usize),
    /// It reaches the process after that many.
    Attempt(Where, usize),
    /// A request arrives.
    Request(usize),
    /// The answer to a request.
    Reply(Option<Vec<Branch>>),
    /// The answer to a prefetch.
    Prefetched(Option<Vec<Branch>>),
    /// An agent looks for work anywhere.
    Poll,
}

impl<N: OpenNodes> World<N> {
    fn new(new: impl Fn() -> N, plan: Plan, processes: usize, costs: Costs) -> Self {
        let Plan { algorithm, termination, sharing, .. } = plan;
        let group = match algorithm {
            Algorithm::Hierarchical => costs.group.min(processes),
            _ => processes,
        };
        let groups = vec![Group::default(); processes.div_ceil(group)];
        let process = |rank: usize| Process {
            nodes: new(),
            ring: VecDeque::new(),
            traffic: Traffic::default(),
            worked: 0.0,
            owed: 0.0,
            works: false,
            requests: VecDeque::new(),
            prefetch: Prefetch::None,
            asked: 0.0,
            passed: 0,
            asks: 0,
            last: match algorithm {
                Algorithm::Hierarchical => (rank / group + 1) % groups.len() * group,
                _ => (rank + 1) % processes,
            },
            locked: 0.0,
            agent: false,
        };
        let mut world = Self {
            algorithm,
            termination,
            sharing,
            costs,
            processes: (0..processes).map(process).collect(),
            victims: Bits::new(processes),
            groups,
            group,
            done: 0,
            busy: 1,
            events: Events::with_capacity(processes),
            ended: None,
        };
        world.processes[0].nodes.start();
        if world.asks() {
            world.victims.set(0, true);
        }
        (0..processes).for_each(|it| world.events.push(0.0, it, What::Turn));
        world
    }

    /// Whether thieves send requests.
    fn asks(&self) -> bool {
        self.algorithm == Algorithm::Steal2007
    }

    fn happen(&mut self, rank: usize, at: f64, what: What) {
        match what {
            What::Turn => self.turn(rank, at),
            What::Scan(place, passed) => self.scan(rank, at, place, passed),
            What::Attempt(place, passed) => self.attempt(rank, at, place, passed),
            What::Request(thief) => {
                self.processes[rank].requests.push_back(thief);
                // One without work looks all the time, one of `hierarchical` several times in an interval.
                if !self.processes[rank].works {
                    self.answer(rank, at);
                } else if !self.asks() {
                    let looks = at + 0.5 * ANSWER_INTERVAL as f64 * self.costs.node;
                    let answered = self.answer(rank, looks);
                    self.processes[rank].owed += answered - looks;
                }
            }
            What::Reply(chunk) => self.receive_reply(rank, at, chunk),
            What::Prefetched(chunk) => match self.processes[rank].prefetch {
                Prefetch::Awaited => {
                    let at = at + self.patience(at - self.processes[rank].asked);
                    self.finish_prefetch(rank, at, chunk);
                }
                _ => self.processes[rank].prefetch = Prefetch::Answered(chunk),
            },
            What::Poll => self.poll(rank, at),
        }
    }

    fn turn(&mut self, rank: usize, at: f64) {
        if self.processes[rank].nodes.open() > 0 {
            self.explore(rank, at);
        } else {
            self.look_for_work(rank, at);
        }
    }

    fn explore(&mut self, rank: usize, at: f64) {
        let interval = self.sharing.interval.first();
        let (costs, asks) = (self.costs, self.asks());
        let it = &mut self.processes[rank];
        it.works = true;
        let before = it.nodes.counts().nodes;
        it.nodes.explore(interval);
        let nodes = (it.nodes.counts().nodes - before).max(LANES as u64);
        let cost = nodes as f64 * costs.node;
        it.worked += cost;
        let mut now = at + cost + std::mem::take(&mut it.owed);
        now += if asks { costs.look } else { costs.turn };
        let spare = it.nodes.open() > 2 * self.sharing.chunk && it.ring.len() < SLOTS;
        if spare && !asks {
            let chunk = it.nodes.take_bottom(self.sharing.chunk);
            it.traffic.note_put(&chunk);
            it.ring.push_back(chunk);
            self.victims.set(rank, true);
            now = now.max(self.processes[rank].locked) + costs.release;
            self.cancel(rank / self.group, now);
        }
        if asks && self.processes[rank].nodes.open() == 0 {
            self.victims.set(rank, false);
            self.busy -= 1;
            if self.busy == 0 {
                self.ended = Some(now + self.end());
                return;
            }
        }
        now = self.answer(rank, now);
        self.events.push(now, rank, What::Turn);
    }

    fn look_for_work(&mut self, rank: usize, at: f64) {
        self.processes[rank].works = false;
        // What came during its last interval.
        let at = self.answer(rank, at);
        if self.asks() {
            return self.events.push(at, rank, What::Scan(Where::Near, 0));
        }
        let it = &mut self.processes[rank];
        if let Some(chunk) = it.ring.pop_back() {
            it.traffic.note_acquired(&chunk);
            it.nodes.add(chunk);
            let none_left = it.ring.is_empty();
            if none_left {
                self.victims.set(rank, false);
            }
            let mut now = at.max(self.processes[rank].locked) + self.costs.acquire;
            if none_left && self.algorithm == Algorithm::Hierarchical {
                now = self.prefetch(rank, now);
            }
            return self.events.push(now, rank, What::Turn);
        }
        if let Prefetch::Answered(chunk) = &mut it.prefetch {
            if let Some(chunk) = chunk.take() {
                return self.finish_prefetch(rank, at, Some(chunk));
            }
            it.prefetch = Prefetch::None;
            it.traffic.failed_steals += 1;
        }
        if self.algorithm == Algorithm::Shared2006 {
            let all = self.processes.len() as u64;
            let it = &mut self.processes[rank];
            // The remainder of a division by a number of processes.
            it.last = (mix((rank as u64) ^ at.to_bits()) % all) as usize;
        }
        self.events.push(at, rank, What::Scan(Where::Near, 0));
    }

    /// The process that a thief looks at after this many others; and the one after the last of the part of the ring in
    /// which numbers grow one by one.
    fn place(&self, rank: usize, place: Where, passed: usize) -> Option<(usize, usize)> {
        let (first, size, start) = match (place, self.algorithm) {
            (Where::Near, Algorithm::Hierarchical) => {
                let first = rank / self.group * self.group;
                let size = self.group.min(self.processes.len() - first);
                (first, size, rank - first + 1)
            }
            _ => (0, self.processes.len(), self.processes[rank].last),
        };
        if passed >= size {
            return None;
        }
        let at = (start + passed) % size;
        Some((first + at, first + size.min(at + size - passed)))
    }

    fn own_group(&self, rank: usize) -> std::ops::Range<usize> {
        let first = rank / self.group * self.group;
        first..(first + self.group).min(self.processes.len())
    }

    /// The cost of passing one process in vain.
    fn pass(&self, place: Where, rank: usize, victim: usize) -> f64 {
        match (self.asks(), self.is_far(place, rank, victim)) {
            (true, _) => 2.0 * (self.costs.latency + 2.0 * self.costs.overhead),
            (false, true) => self.far(),
            (false, false) => self.costs.access,
        }
    }

    fn is_far(&self, place: Where, rank: usize, victim: usize) -> bool {
        place == Where::Elsewhere || rank / self.costs.group != victim / self.costs.group
    }

    /// An access to another node's memory: there and back.
    fn far(&self) -> f64 {
        2.0 * self.costs.latency + self.costs.overhead
    }

    fn scan(&mut self, rank: usize, at: f64, place: Where, passed: usize) {
        let Some((from, until)) = self.place(rank, place, passed) else {
            return self.found_nothing(rank, at, place);
        };
        let own = match place {
            Where::Elsewhere => self.own_group(rank),
            Where::Near => rank..rank + 1,
        };
        let until = until.min(from + BLOCK.max(self.processes.len() / BLOCKS));
        if own.contains(&from) {
            let passed = passed + (own.end.min(until) - from).max(1);
            return self.scan(rank, at, place, passed);
        }
        let until = if from < own.start { until.min(own.start) } else { until };
        let cost = self.pass(place, rank, from);
        let found = self.victims.first(from, until);
        let in_vain = found.unwrap_or(until) - from;
        let now = at + cost * in_vain as f64;
        if self.algorithm != Algorithm::Hierarchical || place == Where::Near {
            self.processes[rank].traffic.failed_steals += in_vain as u64;
        }
        let passed = passed + in_vain;
        let next = match found {
            Some(_) => What::Attempt(place, passed),
            None => What::Scan(place, passed),
        };
        self.events.push(now, rank, next);
    }

    fn attempt(&mut self, rank: usize, at: f64, place: Where, passed: usize) {
        let Some((victim, _)) = self.place(rank, place, passed) else {
            return self.found_nothing(rank, at, place);
        };
        let costs = self.costs;
        if self.asks() {
            let there = at + costs.latency + 2.0 * costs.overhead;
            let all = self.processes.len();
            let it = &mut self.processes[rank];
            it.last = (victim + 1) % all;
            (it.asked, it.passed, it.asks) = (at, 0, it.last);
            return self.events.push(there, victim, What::Request(rank));
        }
        if self.processes[victim].ring.is_empty() {
            let now = at + self.pass(place, rank, victim);
            return self.events.push(now, rank, What::Scan(place, passed + 1));
        }
        if place == Where::Elsewhere {
            let now = at + self.far();
            // The rest of the group is not looked at.
            let beyond = self.group - victim % self.group;
            let passed = passed + beyond.min(self.processes.len() - victim);
            if !self.processes[victim].requests.is_empty() {
                self.processes[rank].traffic.failed_steals += 1;
                return self.events.push(now + self.far(), rank, What::Scan(place, passed));
            }
            let first = victim / self.group * self.group;
            let it = &mut self.processes[rank];
            (it.asked, it.passed, it.asks) = (now, passed, first);
            return self.events.push(now, victim, What::Request(rank));
        }
        let begin = (at + costs.access).max(self.processes[victim].locked);
        let cost = if self.is_far(place, rank, victim) { 6.0 * self.far() } else { costs.steal };
        self.processes[victim].locked = begin + cost;
        let Some(chunk) = self.take_oldest(victim) else { return };
        let it = &mut self.processes[rank];
        it.traffic.note_got(&chunk);
        it.nodes.add(chunk);
        self.events.push(begin + cost, rank, What::Turn);
    }

    fn take_oldest(&mut self, victim: usize) -> Option<Vec<Branch>> {
        let chunk = self.processes[victim].ring.pop_front();
        if self.processes[victim].ring.is_empty() {
            self.victims.set(victim, false);
        }
        chunk
    }

    /// A process answers those that ask it; returns when it has.
    fn answer(&mut self, rank: usize, at: f64) -> f64 {
        let costs = self.costs;
        let mut now = at;
        while let Some(thief) = self.processes[rank].requests.pop_front() {
            let chunk = if self.asks() {
                now += 2.0 * costs.overhead;
                let it = &mut self.processes[rank];
                let spare = it.nodes.open() > 2 * self.sharing.chunk;
                spare.then(|| it.nodes.take_bottom(self.sharing.chunk)).inspect(|chunk| {
                    it.traffic.note_put(chunk);
                    self.busy += 1;
                })
            } else {
                now += 2.0 * costs.overhead + costs.steal;
                self.take_oldest(rank)
            };
            let bytes = chunk.as_ref().map_or(0, |it| 4 * Branch::WORDS * it.len());
            let there = now + costs.latency + costs.overhead + costs.byte * bytes as f64;
            let what = match self.processes[thief].prefetch {
                Prefetch::Asked | Prefetch::Awaited => What::Prefetched(chunk),
                _ => What::Reply(chunk),
            };
            self.events.push(there, thief, what);
            // One with work serves one at a look.
            if self.asks() && self.processes[rank].works && self.processes[rank].nodes.open() > 0 {
                break;
            }
        }
        now
    }

    fn receive_reply(&mut self, rank: usize, at: f64, chunk: Option<Vec<Branch>>) {
        let waited = at - self.processes[rank].asked;
        let asks = self.asks();
        let now = if asks { at } else { at + self.patience(waited) };
        let it = &mut self.processes[rank];
        let Some(chunk) = chunk else {
            it.traffic.failed_steals += 1;
            let next = What::Scan(if asks { Where::Near } else { Where::Elsewhere }, it.passed);
            return self.events.push(now, rank, next);
        };
        it.last = it.asks;
        it.traffic.note_got(&chunk);
        it.nodes.add(chunk);
        if asks {
            // The chunk on its way was counted, and is this process now.
            self.victims.set(rank, true);
        }
        self.open_barrier(rank);
        let now = if asks { now } else { self.prefetch(rank, now) };
        self.events.push(now, rank, What::Turn);
    }

    fn prefetch(&mut self, rank: usize, at: f64) -> f64 {
        let own = self.own_group(rank);
        let near = self.costs.access * own.len() as f64;
        let idle = matches!(self.processes[rank].prefetch, Prefetch::None);
        if !idle || self.groups.len() < 2 || self.victims.first(own.start, own.end).is_some() {
            return at + near;
        }
        let first = (rank / self.group + 1) % self.groups.len() * self.group;
        let end = (first + self.group).min(self.processes.len());
        let found = self.victims.first(first, end);
        let now = at + near + self.far() * (found.unwrap_or(end) - first) as f64;
        let Some(victim) = found else { return now };
        if self.processes[victim].requests.is_empty() {
            let it = &mut self.processes[rank];
            it.traffic.prefetches += 1;
            it.prefetch = Prefetch::Asked;
            self.events.push(now + self.far(), victim, What::Request(rank));
        }
        now + self.far()
    }

    fn finish_prefetch(&mut self, rank: usize, at: f64, chunk: Option<Vec<Branch>>) {
        let it = &mut self.processes[rank];
        it.prefetch = Prefetch::None;
        let Some(chunk) = chunk else {
            it.traffic.failed_steals += 1;
            return self.events.push(at, rank, What::Scan(Where::Elsewhere, 0));
        };
        it.traffic.prefetched += 1;
        it.traffic.note_got(&chunk);
        it.nodes.add(chunk);
        let now = self.prefetch(rank, at);
        self.events.push(now, rank, What::Turn);
    }

    /// A thief has looked everywhere that it can.
    fn found_nothing(&mut self, rank: usize, at: f64, place: Where) {
        if self.asks() {
            return self.events.push(at, rank, What::Scan(place, 0));
        }
        if place == Where::Near && self.algorithm == Algorithm::Hierarchical {
            match &mut self.processes[rank].prefetch {
                Prefetch::Answered(chunk) => {
                    let chunk = chunk.take();
                    return self.finish_prefetch(rank, at, chunk);
                }
                Prefetch::Asked => {
                    self.processes[rank].prefetch = Prefetch::Awaited;
                    self.processes[rank].asked = at;
                    return;
                }
                Prefetch::None | Prefetch::Awaited => {}
            }
            return self.events.push(at, rank, What::Scan(Where::Elsewhere, 0));
        }
        self.wait_at_barrier(rank, at);
    }
}
