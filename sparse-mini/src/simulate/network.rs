//! Messages between processes, by the LogGP model: an event when each leaves, and one when it arrives.
//!
//! A process is busy for o when it sends and for o when it receives, and sends and receives at most
//! once in g. A message of b bytes is in flight for L + (b - 1) G and occupies the link of the
//! sender's node, and later the receiver's, for b G. So a message of 10 bytes between idle
//! processes takes L + 2o + 9G. Times are in microseconds.
//!
//! Invariant: events are taken in the order of their times, and a process's clock only advances.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::machines::Machine;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Data,
    /// Data whose sender waits until it is received.
    Synchronous,
    /// The receive of a synchronous message has begun.
    Acknowledgement,
    /// Increments a counter of a process, which takes no part.
    Count,
    /// Step of a collective operation.
    Step(u8),
}

/// A message that leaves or arrives. Ordered by time, as the bits of a non-negative number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: u64,
    number: u32,
    to: u32,
    from: u32,
    bytes: u32,
    kind: Kind,
    /// It enters its link now; otherwise it arrives.
    leaves: bool,
}

/// A message that has been received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) to: usize,
    pub(super) from: usize,
    pub(super) kind: Kind,
    /// When it arrived.
    pub(super) time: f64,
}

/// Processes, links, and messages in flight.
#[derive(Debug)]
pub(super) struct Network<'a> {
    machine: &'a Machine,
    /// The time until which each process is busy.
    clocks: Vec<f64>,
    /// When each process may send, and receive, again.
    may_send: Vec<f64>,
    may_receive: Vec<f64>,
    /// The time until which each link is occupied.
    out: Vec<f64>,
    into: Vec<f64>,
    events: BinaryHeap<Reverse<Event>>,
    sent: u64,
    number: u32,
}

impl<'a> Network<'a> {
    pub(super) fn new(machine: &'a Machine, processes: usize) -> Network<'a> {
        let links = processes.div_ceil(machine.processes_per_link.max(1));
        Network {
            machine,
            clocks: vec![0.0; processes],
            may_send: vec![0.0; processes],
            may_receive: vec![0.0; processes],
            out: vec![0.0; links],
            into: vec![0.0; links],
            events: BinaryHeap::with_capacity(2 * processes),
            sent: 0,
            number: 0,
        }
    }

    pub(super) fn processes(&self) -> usize {
        self.clocks.len()
    }

    /// Messages sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The time until which a process is busy.
    pub(super) fn clock(&self, process: usize) -> f64 {
        self.clocks[process]
    }

    /// Makes a process idle until a time.
    pub(super) fn wait_until(&mut self, process: usize, time: f64) {
        self.clocks[process] = self.clocks[process].max(time);
    }

    fn link(&self, process: usize) -> usize {
        process / self.machine.processes_per_link.max(1)
    }

    /// A process sends a message as soon as it can.
    pub(super) fn send(&mut self, from: usize, to: usize, bytes: usize, kind: Kind) {
        let parameters = self.machine.parameters;
        let begin = (self.clocks[from] + parameters.overhead).max(self.may_send[from]);
        self.clocks[from] = begin;
        self.may_send[from] = begin + parameters.gap;
        self.sent += 1;
        self.push(from, to, bytes, kind, true, begin);
    }

    /// The network tells the sender of a synchronous message that its receive has begun. The cost
    /// is included in the table of synchronous sends; the processes do nothing more.
    pub(super) fn acknowledge(&mut self, from: usize, to: usize) {
        let comes = self.clocks[from] + self.machine.parameters.latency;
        self.push(from, to, 0, Kind::Acknowledgement, false, comes);
    }

    /// A process works on this many entries of a table.
    pub(super) fn work(&mut self, process: usize, entries: usize) {
        self.clocks[process] += entries as f64 * self.machine.entry;
    }

    fn push(&mut self, from: usize, to: usize, bytes: usize, kind: Kind, leaves: bool, time: f64) {
        self.number = self.number.wrapping_add(1);
        self.events.push(Reverse(Event {
            time: time.to_bits(),
            number: self.number,
            to: to as u32,
            from: from as u32,
            bytes: bytes.min(u32::MAX as usize) as u32,
            kind,
            leaves,
        }));
    }

    /// Delivers the next message.
    pub(super) fn next(&mut self) -> Option<Received> {
        loop {
            let Reverse(event) = self.events.pop()?;
            if event.leaves {
                self.leave(event);
            } else {
                return Some(self.come(event));
            }
        }
    }

    /// A message enters its link, after those that left before.
    fn leave(&mut self, event: Event) {
        let Event { to, from, bytes, kind, time, .. } = event;
        let parameters = self.machine.parameters;
        let link = self.link(from as usize);
        let begin = f64::from_bits(time).max(self.out[link]);
        self.out[link] = begin + f64::from(bytes) * parameters.gap_per_byte;
        let latency = match kind {
            Kind::Synchronous => parameters.synchronous_latency,
            _ => parameters.latency,
        };
        let comes = begin + latency + f64::from(bytes.max(1) - 1) * parameters.gap_per_byte;
        self.push(from as usize, to as usize, bytes as usize, kind, false, comes);
    }

    /// A message arrives and is received.
    fn come(&mut self, event: Event) -> Received {
        let parameters = self.machine.parameters;
        let (to, from, kind) = (event.to as usize, event.from as usize, event.kind);
        let came = f64::from_bits(event.time);
        let received = Received { to, from, kind, time: came };
        if kind == Kind::Acknowledgement {
            self.wait_until(to, came);
            return received;
        }
        let link = self.link(to);
        let came = came.max(self.into[link] + f64::from(event.bytes) * parameters.gap_per_byte);
        self.into[link] = came;
        if kind == Kind::Count {
            return Received { time: came, ..received };
        }
        let begin = came.max(self.clocks[to]).max(self.may_receive[to]);
        self.may_receive[to] = begin + parameters.gap;
        self.clocks[to] = begin + parameters.overhead;
        received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::machines::machines;

    #[test]
    fn a_message_takes_what_the_model_says() {
        for machine in machines() {
            let mut network = Network::new(&machine, 8);
            network.send(0, 7, 10, Kind::Data);
            network.next().unwrap();
            let expected = machine.parameters.message(10);
            assert!((network.clock(7) - expected).abs() < 1e-9, "{}", machine.name);
        }
    }

    #[test]
    fn processes_of_a_node_share_its_link() {
        let [_, jaguar, _] = machines();
        let mut network = Network::new(&jaguar, 8);
        let bytes = 1_000_000;
        (0..4).for_each(|p| network.send(p, 4 + p, bytes, Kind::Data));
        while network.next().is_some() {}
        let times: Vec<f64> = (4..8).map(|p| network.clock(p)).collect();
        for (before, after) in times.iter().zip(&times[1..]) {
            let g = jaguar.parameters.gap_per_byte * bytes as f64;
            assert!((after - before - g).abs() < 1e-6, "{times:?}");
        }
    }
}
