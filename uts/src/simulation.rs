//! A search on processes that there are not: the same [`Machine`]s, on a simulated clock and network.
//!
//! The search itself is real: nodes are hashed, and counts are exact. Time is not: events are taken in
//! the order of a clock that each process moves on by what it does ([`Costs`]), after the LogGP model
//! (A. Alexandrov et al., "LogGP: incorporating long messages into the LogP model", SPAA 1995).
//! A process does one thing at a time, as [`crate::parallel`] does it: takes in what has arrived,
//! answers, and looks at the nodes of an interval; what arrives meanwhile waits until it looks. An
//! all-reduce takes twice the levels of a binary tree.
//!
//! A batch of sixteen nodes costs the same however many of its lanes are used; here an interval costs
//! its nodes, and at least one batch. So with many processes that have few nodes each, real
//! searches are somewhat slower.

use crate::{
    fixed::Fixed,
    frontier::Branch,
    lanes::{Kernel, LANES},
    machine::{Machine, Message},
    plan::{Algorithm, Plan},
    searcher::Searcher,
    sharing::Sharer,
    statistics::{RankStatistics, Times},
    termination::Token,
    tree::Tree,
};
use std::{cmp::Reverse, collections::BinaryHeap};
use thiserror::Error;

/// What things cost, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A node.
    pub node: f64,
    /// A look for messages that finds none.
    pub look: f64,
    /// L: from when a message has left until it is there.
    pub latency: f64,
    /// o: what sender and receiver are kept busy by a message.
    pub overhead: f64,
    /// G: each byte of a message, on its way.
    pub byte: f64,
}

/// A search that was simulated.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What each process found and did. Its times are the simulated seconds in work and without.
    pub processes: Vec<RankStatistics>,
    /// Simulated seconds until the last process knew the end.
    pub seconds: f64,
    /// Events that were simulated.
    pub events: u64,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// The algorithm does not consist of messages.
    #[error(
        "algorithm {0} cannot be simulated: its ranks look into each other's memory, and what that \
         costs is not modelled; allowed are steal, steal-2007, share, static"
    )]
    OneSided(&'static str),
    /// It takes too long.
    #[error("not over after {0} events; processes without work may ask for it without end")]
    TooMany(u64),
}

/// Simulates a search by so many processes, 1 or more.
///
/// # Errors
///
/// If the algorithm cannot be simulated, or is not done after `most` events.
///
/// # Panics
///
/// If the plan makes no search on so many processes ([`Plan::check`]).
pub fn simulate(
    tree: &Tree,
    kernel: Kernel,
    plan: Plan,
    processes: usize,
    costs: Costs,
    most: u64,
) -> Result<Simulated, SimulationError> {
    if let Err(error) = plan.check(processes) {
        panic!("simulate: {error}");
    }
    let Plan { algorithm, termination, sharing } = plan;
    let all = 0..processes;
    match algorithm {
        Algorithm::Steal | Algorithm::Steal2007 => {
            let new = |it| Searcher::new(tree, kernel, it, processes, sharing, termination);
            World::new(all.map(new).collect(), costs).run(most)
        }
        Algorithm::Share => {
            let new = |it| Sharer::new(tree, kernel, it, processes, sharing);
            World::new(all.map(new).collect(), costs).run(most)
        }
        Algorithm::Static => {
            let new = |it| Fixed::new(tree, kernel, it, processes, sharing);
            World::new(all.map(new).collect(), costs).run(most)
        }
        Algorithm::Hierarchical | Algorithm::Shared2006 => {
            Err(SimulationError::OneSided(algorithm.name()))
        }
    }
}

struct World<M> {
    processes: Vec<Process<M>>,
    costs: Costs,
    /// Times in nanoseconds, the number of the event, and what happens.
    queue: BinaryHeap<Reverse<Event>>,
    events: u64,
    /// Contributions to a sum over all processes, and the time of the last one.
    added: usize,
    sums: [u64; 2],
}

struct Process<M> {
    machine: M,
    arrived: Vec<(usize, Message)>,
    /// Until when it is busy.
    busy: f64,
    worked: f64,
    /// It will look by itself; else it waits for a message.
    awake: bool,
}

struct Event {
    at: f64,
    number: u64,
    process: usize,
    what: What,
}

enum What {
    Look,
    Arrival(usize, Message),
    Sums([u64; 2]),
}

impl Event {
    fn key(&self) -> (f64, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let ((at, number), (other_at, other_number)) = (self.key(), other.key());
        at.total_cmp(&other_at).then(number.cmp(&other_number))
    }
}

impl<M: Machine> World<M> {
    fn new(machines: Vec<M>, costs: Costs) -> Self {
        let process =
            |machine| Process { machine, arrived: vec![], busy: 0.0, worked: 0.0, awake: true };
        let processes: Vec<_> = machines.into_iter().map(process).collect();
        let queue = BinaryHeap::with_capacity(processes.len());
        let mut world = Self { processes, costs, queue, events: 0, added: 0, sums: [0; 2] };
        (0..world.processes.len()).for_each(|it| world.push(0.0, it, What::Look));
        world
    }

    fn push(&mut self, at: f64, process: usize, what: What) {
        self.events += 1;
        self.queue.push(Reverse(Event { at, number: self.events, process, what }));
    }

    fn run(mut self, most: u64) -> Result<Simulated, SimulationError> {
        let mut last: f64 = 0.0;
        while let Some(Reverse(Event { at, process, what, .. })) = self.queue.pop() {
            if self.events > most {
                return Err(SimulationError::TooMany(most));
            }
            match what {
                What::Look => last = last.max(self.look(process, at)),
                What::Arrival(from, message) => {
                    self.processes[process].arrived.push((from, message));
                    self.wake(process, at);
                }
                What::Sums(sums) => {
                    self.processes[process].machine.receive_sums(sums);
                    self.wake(process, at);
                }
            }
        }
        let seconds = last * 1e-9;
        let statistics = |it: &Process<M>| {
            let working = it.worked * 1e-9;
            RankStatistics {
                counts: it.machine.counts(),
                traffic: it.machine.traffic(),
                times: Times { seconds: [working, 0.0, 0.0, seconds - working], sessions: [0; 4] },
            }
        };
        let processes = self.processes.iter().map(statistics).collect();
        Ok(Simulated { processes, seconds, events: self.events })
    }

    /// Lets a process look when it can, if it does not anyway.
    fn wake(&mut self, process: usize, at: f64) {
        let it = &mut self.processes[process];
        if !it.awake {
            it.awake = true;
            let at = at.max(it.busy);
            self.push(at, process, What::Look);
        }
    }

    /// A turn of a process; gives when it was over.
    fn look(&mut self, process: usize, at: f64) -> f64 {
        let costs = self.costs;
        let it = &mut self.processes[process];
        let mut now = at + costs.look;
        for (from, message) in std::mem::take(&mut it.arrived) {
            now += costs.overhead;
            it.machine.receive(from, message);
        }
        it.machine.respond();
        while let Some((to, message)) = self.processes[process].machine.next_outgoing() {
            now += costs.overhead;
            let arrival = now + costs.latency + costs.byte * bytes(&message);
            self.push(arrival, to, What::Arrival(process, message));
        }
        let it = &mut self.processes[process];
        it.awake = false;
        if !it.machine.has_ended() {
            if it.machine.has_work() {
                let before = it.machine.counts().nodes;
                it.machine.explore();
                let nodes = (it.machine.counts().nodes - before).max(LANES as u64);
                let cost = nodes as f64 * costs.node;
                (it.worked, it.awake) = (it.worked + cost, true);
                self.push(now + cost, process, What::Look);
            } else if let Some(mine) = it.machine.contribution() {
                self.add(mine, now);
            }
        }
        self.processes[process].busy = now;
        now
    }

    /// Adds to the sum over all processes.
    fn add(&mut self, mine: [u64; 2], now: f64) {
        self.added += 1;
        self.sums = [self.sums[0] + mine[0], self.sums[1] + mine[1]];
        let all = self.processes.len();
        if self.added == all {
            let sums = std::mem::take(&mut self.sums);
            self.added = 0;
            let hop = self.costs.latency + 2.0 * self.costs.overhead;
            let result = now + 2.0 * f64::from(all.ilog2() + 1) * hop;
            (0..all).for_each(|it| self.push(result, it, What::Sums(sums)));
        }
    }
}

/// Length of a message as it is sent.
fn bytes(message: &Message) -> f64 {
    let words = match message {
        Message::Work(branches) | Message::Gift(branches) => branches.len() * Branch::WORDS,
        Message::Token(_) => Token::WORDS,
        Message::Request(_) => 2,
        Message::Tally { .. } => 4,
        _ => 0,
    };
    (4 * words) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        named::Published,
        plan::Interval,
        statistics::Totals,
        tree::{Parameters, Shape},
    };

    const COSTS: Costs =
        Costs { node: 10.0, look: 5.0, latency: 1000.0, overhead: 100.0, byte: 0.1 };

    fn tree() -> Tree {
        let (shape, depth, seed) = (Shape::Fixed, 6, 19);
        Tree::new(Parameters { shape, depth, seed, ..Parameters::default() }).expect("sound")
    }

    fn plan(algorithm: Algorithm) -> Plan {
        let plan = Plan::of(algorithm);
        let (chunk, interval) = (4, Interval::Fixed(64));
        Plan { sharing: crate::plan::Sharing { chunk, interval, ..plan.sharing }, ..plan }
    }

    fn run(plan: Plan, processes: usize) -> Simulated {
        let most = 10_000_000;
        simulate(&tree(), Kernel::fastest(), plan, processes, COSTS, most).expect("it ends")
    }

    #[test]
    fn every_tree_is_whole_with_every_algorithm_that_can_be_simulated() {
        let published = Published { nodes: 16_000, depth: Some(6), leaves: Some(12_839) };
        use Algorithm::{Share, Static, Steal, Steal2007};
        for algorithm in [Steal, Steal2007, Share, Static] {
            for &termination in algorithm.terminations() {
                for processes in [1, 2, 7, 300] {
                    let plan = Plan { termination, ..plan(algorithm) };
                    if plan.check(processes).is_err() {
                        continue;
                    }
                    let totals = Totals::new(&run(plan, processes).processes);
                    assert_eq!(totals.differs_from(Some(published)), None, "{plan:?} {processes}");
                }
            }
        }
    }

    #[test]
    fn time_is_that_of_the_nodes_and_shrinks_with_processes_but_not_to_nothing() {
        let alone = run(plan(Algorithm::Steal), 1).seconds;
        assert!((1.6e-4..1.8e-4).contains(&alone), "{alone}");
        let [two, many] = [2, 64].map(|it| run(plan(Algorithm::Steal), it).seconds);
        assert!(two < 0.7 * alone && many < two, "{alone} {two} {many}");
        assert!(many > 3e-6, "the end has to be told: {many}");
        // One process is the manager.
        assert!(run(plan(Algorithm::Share), 2).seconds > alone);
    }

    #[test]
    fn the_same_simulation_gives_the_same_times() {
        let [first, second] = [(); 2].map(|()| run(plan(Algorithm::Steal2007), 33));
        assert_eq!((first.seconds, first.events), (second.seconds, second.events));
    }

    #[test]
    fn what_cannot_be_simulated_says_why() {
        let result = |algorithm, most| {
            simulate(&tree(), Kernel::PLAIN, plan(algorithm), 4, COSTS, most).map(|it| it.events)
        };
        let text = result(Algorithm::Hierarchical, 9).expect_err("refused").to_string();
        assert!(text.starts_with("algorithm hierarchical cannot be simulated"), "{text}");
        assert_eq!(result(Algorithm::Steal, 9), Err(SimulationError::TooMany(9)));
    }
}
