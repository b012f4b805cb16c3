//! Work sharing with a manager (J. Dinan et al., IPDPS 2007, section 3.1), as a [`Machine`].
//!
//! The last rank is the manager and searches nothing: it holds the common queue of chunks. A worker that has more than
//! two chunks releases its oldest one, at most one in each release interval; a worker without work asks for a chunk and
//! waits until it gets one. When all workers wait and the queue is empty, the search has ended.
//!
//! A request can overtake the preceding release, and the manager would detect the end too early. So a worker numbers
//! its messages and a request contains its number; the manager counts the messages received from each worker, and
//! notices missing ones.

use crate::{
    frontier::{Branch, Counts, OpenNodes},
    machine::{Machine, Message, Traffic},
    plan::Sharing,
    termination::Outbox,
};

/// One rank's part of a search.
#[derive(Debug)]
pub struct Sharer<N> {
    sharing: Sharing,
    frontier: N,
    traffic: Traffic,
    role: Role,
    ended: bool,
    outbox: Outbox,
}

#[derive(Debug)]
enum Role {
    Worker {
        manager: usize,
        /// Number of messages that it has sent to the manager.
        sent: u64,
        waiting: bool,
        /// It has searched since it last released a chunk.
        may_release: bool,
    },
    Manager {
        /// Chunks, the newest last, which is given first.
        queue: Vec<Vec<Branch>>,
        workers: Vec<Worker>,
    },
}

/// The manager's state of a worker.
#[derive(Clone, Copy, Debug, Default)]
struct Worker {
    /// Number of messages received.
    received: u64,
    /// The number of its request, if it waits.
    waits: Option<u64>,
}

impl<N: OpenNodes> Sharer<N> {
    /// The part of `rank`, which has no nodes yet, in a search by `ranks` ranks, at least 2. Rank 0
    /// looks at the root.
    #[must_use]
    pub fn new(mut frontier: N, rank: usize, ranks: usize, sharing: Sharing) -> Self {
        if rank == 0 {
            frontier.start();
        }
        let manager = ranks - 1;
        let role = if rank == manager {
            Role::Manager { queue: Vec::new(), workers: vec![Worker::default(); manager] }
        } else {
            Role::Worker { manager, sent: 0, waiting: false, may_release: false }
        };
        let traffic = Traffic::default();
        Self { sharing, frontier, traffic, role, ended: false, outbox: Outbox::new() }
    }
}

impl<N: OpenNodes> Machine for Sharer<N> {
    fn has_work(&self) -> bool {
        self.frontier.open() > 0
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn is_asking(&self) -> bool {
        matches!(self.role, Role::Worker { waiting: true, .. })
    }

    fn awaits_all(&self) -> bool {
        matches!(self.role, Role::Manager { .. })
    }

    fn explore(&mut self) {
        self.frontier.explore(self.sharing.interval.first());
        if let Role::Worker { may_release, .. } = &mut self.role {
            *may_release = true;
        }
    }

    fn abandon(&mut self) {
        self.frontier.abandon();
    }

    fn receive(&mut self, from: usize, message: Message) {
        match (&mut self.role, message) {
            (Role::Worker { waiting, .. }, Message::Work(branches)) => {
                *waiting = false;
                self.traffic.note_got(&branches);
                self.frontier.add(branches);
            }
            (Role::Worker { .. }, Message::End) => self.ended = true,
            (Role::Manager { queue, workers }, Message::Gift(branches)) => {
                workers[from].received += 1;
                queue.push(branches);
            }
            (Role::Manager { workers, .. }, Message::Request(number)) => {
                workers[from].received += 1;
                workers[from].waits = Some(number);
            }
            (_, other) => unreachable!("{other:?} from rank {from}: not a message of this search"),
        }
    }

    fn would_ask(&self) -> bool {
        let asks = matches!(self.role, Role::Worker { waiting: false, .. });
        asks && !self.has_work() && !self.ended
    }

    fn respond(&mut self, may_ask: bool) {
        if self.ended {
            return;
        }
        let open = self.frontier.open();
        match &mut self.role {
            Role::Worker { manager, sent, waiting, .. } if open == 0 => {
                if !*waiting && may_ask {
                    *waiting = true;
                    *sent += 1;
                    self.outbox.push_back((*manager, Message::Request(*sent)));
                }
            }
            Role::Worker { manager, sent, may_release, .. } => {
                if *may_release && open > 2 * self.sharing.chunk {
                    *may_release = false;
                    *sent += 1;
                    let chunk = self.frontier.take_bottom(self.sharing.chunk);
                    self.traffic.note_put(&chunk);
                    self.outbox.push_back((*manager, Message::Gift(chunk)));
                }
            }
            Role::Manager { queue, workers } => {
                for (rank, worker) in workers.iter_mut().enumerate() {
                    if worker.waits.is_none() {
                        continue;
                    }
                    let Some(chunk) = queue.pop() else { break };
                    worker.waits = None;
                    self.outbox.push_back((rank, Message::Work(chunk)));
                }
                // A worker's messages are all here if its request has the number of the last one.
                if queue.is_empty() && workers.iter().all(|it| it.waits == Some(it.received)) {
                    self.ended = true;
                    self.outbox.extend((0..workers.len()).map(|it| (it, Message::End)));
                }
            }
        }
    }

    fn next_outgoing(&mut self) -> Option<(usize, Message)> {
        self.outbox.pop_front()
    }

    fn counts(&self) -> Counts {
        self.frontier.counts()
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }
}
