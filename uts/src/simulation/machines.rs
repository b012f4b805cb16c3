//! [`Machine`]s on a simulated clock and network.
//!
//! A process does one thing at a time, like [`crate::parallel`]: it receives what has arrived,
//! answers, and looks at the nodes of an interval; what arrives meanwhile waits until it polls. An
//! all-reduce takes twice the levels of a binary tree.

use super::{
    Costs, Simulated, SimulationError,
    events::{Event, Events},
};
use crate::{
    frontier::Branch,
    lanes::LANES,
    machine::{Machine, Message},
    statistics::{RankStatistics, Times},
    termination::Token,
};

/// All processes.
pub(super) struct World<M> {
    processes: Vec<Process<M>>,
    costs: Costs,
    events: Events<What>,
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
    /// It will poll by itself; otherwise it waits for a message.
    awake: bool,
}

enum What {
    Look,
    Arrival(usize, Message),
    Sums([u64; 2]),
}

impl<M: Machine> World<M> {
    /// Processes at the beginning of a search.
    pub(super) fn new(machines: Vec<M>, costs: Costs) -> Self {
        let process =
            |machine| Process { machine, arrived: vec![], busy: 0.0, worked: 0.0, awake: true };
        let processes: Vec<_> = machines.into_iter().map(process).collect();
        let mut events = Events::with_capacity(processes.len());
        (0..processes.len()).for_each(|it| events.push(0.0, it, What::Look));
        Self { processes, costs, events, added: 0, sums: [0; 2] }
    }

    /// Simulates the search.
    pub(super) fn run(mut self, most: u64) -> Result<Simulated, SimulationError> {
        let mut last: f64 = 0.0;
        while let Some(Event { at, process, what, .. }) = self.events.pop() {
            if self.events.told() > most {
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
        Ok(Simulated { processes, seconds, events: self.events.told() })
    }

    /// Makes a process poll when it can, unless it will anyway.
    fn wake(&mut self, process: usize, at: f64) {
        let it = &mut self.processes[process];
        if !it.awake {
            it.awake = true;
            let at = at.max(it.busy);
            self.events.push(at, process, What::Look);
        }
    }

    /// One turn of a process; returns when it ends.
    fn look(&mut self, process: usize, at: f64) -> f64 {
        let costs = self.costs;
        let all = self.processes.len() as f64;
        let it = &mut self.processes[process];
        let scan = if it.machine.awaits_all() { costs.scan * all } else { 0.0 };
        let mut now = at + costs.look;
        for (from, message) in std::mem::take(&mut it.arrived) {
            now += scan + costs.overhead + costs.branch * branches(&message);
            it.machine.receive(from, message);
        }
        it.machine.respond(true);
        while let Some((to, message)) = self.processes[process].machine.next_outgoing() {
            now += costs.overhead + costs.branch * branches(&message);
            let arrival = now + costs.latency + costs.byte * bytes(&message);
            self.events.push(arrival, to, What::Arrival(process, message));
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
                self.events.push(now + cost, process, What::Look);
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
            (0..all).for_each(|it| self.events.push(result, it, What::Sums(sums)));
        }
    }
}

fn branches(message: &Message) -> f64 {
    message.branches().map_or(0.0, |branches| branches.len() as f64)
}

/// Length of an encoded message.
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
