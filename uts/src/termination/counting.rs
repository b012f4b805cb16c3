//! Mattern's four counters ("Algorithms for distributed termination detection", Distributed Computing
//! 2, 1987).
//!
//! A *wave* visits all ranks, each while it is passive, and sums how many chunks they have sent and received. If two
//! consecutive waves find the same sums, and as many received as sent, there was no work between them: a chunk in
//! flight at the end of the first wave would be missing among those received, and a rank that received one after it was
//! visited would have made the second sum larger. The numbers only grow, so nothing cancels out.
//!
//! A wave goes down and up a tree of messages, or is an all-reduce of the runtime, whose result all ranks have at once.
//! It waits at each rank until that rank is passive; so the number of waves is bounded by how often ranks get work, and
//! idle thieves send nothing.

use super::{Outbox, Verdict};
use crate::machine::{Message, above, below};

/// One rank's part.
#[derive(Clone, Debug)]
pub struct Counting {
    rank: usize,
    ranks: usize,
    /// Whether the runtime computes the sums.
    collective: bool,
    sent: u64,
    received: u64,
    /// A wave has arrived, and this rank has not passed it up.
    visited: bool,
    /// Tallies that are missing from below, and the sums of those that arrived.
    missing: usize,
    sums: [u64; 2],
    /// The sums of the last wave.
    last: Option<[u64; 2]>,
    /// An all-reduce is under way.
    summing: bool,
    /// The rank is passive, and may take part in an all-reduce.
    ready: bool,
    over: bool,
}

impl Counting {
    pub(super) fn new(rank: usize, ranks: usize, collective: bool) -> Self {
        Self {
            rank,
            ranks,
            collective,
            sent: 0,
            received: 0,
            visited: false,
            missing: 0,
            sums: [0; 2],
            last: None,
            summing: false,
            ready: false,
            over: false,
        }
    }

    pub(super) fn gave(&mut self) {
        self.sent += 1;
    }

    pub(super) fn got(&mut self) {
        self.received += 1;
        self.ready = false;
    }

    pub(super) fn receive_ask(&mut self, out: &mut Outbox) {
        self.visited = true;
        self.sums = [0; 2];
        self.missing = below(self.rank, self.ranks).count();
        out.extend(below(self.rank, self.ranks).map(|it| (it, Message::Ask)));
    }

    pub(super) fn receive_tally(&mut self, sent: u64, received: u64) {
        self.missing -= 1;
        self.sums[0] += sent;
        self.sums[1] += received;
    }

    pub(super) fn passive(&mut self, out: &mut Outbox) -> Verdict {
        if self.collective {
            self.ready = !self.over;
            return if self.over { Verdict::NoWork } else { Verdict::Unknown };
        }
        if self.over {
            return Verdict::NoWork;
        }
        loop {
            if !self.visited {
                if self.rank > 0 {
                    return Verdict::Unknown;
                }
                self.receive_ask(out);
            }
            if self.missing > 0 {
                return Verdict::Unknown;
            }
            self.visited = false;
            let [sent, received] = [self.sums[0] + self.sent, self.sums[1] + self.received];
            if self.rank > 0 {
                out.push_back((above(self.rank), Message::Tally { sent, received }));
                return Verdict::Unknown;
            }
            self.over = self.found([sent, received]);
            if self.over {
                return Verdict::NoWork;
            }
        }
    }

    /// Whether two waves agree.
    fn found(&mut self, sums: [u64; 2]) -> bool {
        sums[0] == sums[1] && self.last.replace(sums) == Some(sums)
    }

    /// What this rank adds to the next all-reduce, if it may take part.
    pub fn contribution(&mut self) -> Option<[u64; 2]> {
        if !self.ready || self.summing || self.over {
            return None;
        }
        self.summing = true;
        Some([self.sent, self.received])
    }

    /// Processes the result of an all-reduce.
    pub fn receive_sums(&mut self, sums: [u64; 2]) {
        self.summing = false;
        self.over = self.found(sums);
    }
}
