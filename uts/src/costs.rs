//! Measures the cost of the parts of a search on this machine: a node, an empty poll, messages, refused and granted
//! steals, and one-sided operations on chunks.
//!
//! Rank 0 measures, rank 1 is its partner; they may be on one PE, on two, or on two nodes. Each figure is the best of
//! several batches. The exception is the cost of a node: it is the mean over as long a time as a run takes, while all
//! ranks look at nodes, because two busy cores may be slower than one, and other programs may use them as well. Steals
//! are those of the program: by messages, sent by [`crate::parallel`] between two [`Machine`]s, one of which asks and
//! the other refuses or gives.

use crate::{
    budget::Budget,
    frontier::{Branch, Counts, Frontier, OpenNodes},
    lanes::Kernel,
    machine::{Machine, Message, Traffic},
    named, parallel,
    plan::Asks,
    rng::State,
    steal_stack::{FREE, StealStack},
    tree::{Parameters, Tree},
};
use mpi::{topology::SimpleCommunicator, traits::*};
use serde::{Deserialize, Serialize};

/// Number of batches, the best of which counts.
const BATCHES: usize = 12;
/// Nodes in a chunk, as in the papers.
const CHUNK: u64 = 20;
/// Bytes of a long message.
const LONG: usize = 1 << 16;

/// Nanoseconds of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// A node, while all ranks look at nodes: the mean.
    pub node: f64,
    /// A node, while no other rank looks at nodes: one busy core may be faster than two.
    pub node_alone: f64,
    /// A poll that finds no message, by the blocking API.
    pub poll: f64,
    /// A message of 8 bytes, from `send` to the end of `receive`.
    pub message: f64,
    /// The time that a small message occupies its sender.
    pub send: f64,
    /// A byte of a long message.
    pub byte: f64,
    /// From a thief's request to its refusal.
    pub refused: f64,
    /// From a thief's request to the arrival of a chunk of twenty branches.
    pub granted: f64,
    /// A turn of a rank whose chunks others take: it lets other ranks run, and reads one of its own words.
    pub turn: f64,
    /// A word of the other rank, read one-sidedly.
    pub access: f64,
    /// To release a chunk.
    pub release: f64,
    /// To acquire it again.
    pub acquire: f64,
    /// To steal a chunk of the other rank, one-sidedly.
    pub steal: f64,
}

impl Measured {
    /// Each value with its description.
    #[must_use]
    pub fn lines(&self) -> [(&'static str, f64); 13] {
        [
            ("node, while all ranks look at nodes", self.node),
            ("node, while no other rank does", self.node_alone),
            ("empty poll", self.poll),
            ("message of 8 bytes, one way", self.message),
            ("sending it", self.send),
            ("byte of a long message", self.byte),
            ("refused steal", self.refused),
            ("granted steal, 20 branches", self.granted),
            ("turn of a rank, one-sided", self.turn),
            ("word of the other rank", self.access),
            ("chunk released", self.release),
            ("chunk taken back", self.acquire),
            ("chunk taken of the other rank", self.steal),
        ]
    }

    /// The cost of each branch of a chunk for its sender, and for its receiver: half of the difference between a
    /// granted and a refused steal, without the transfer of the bytes.
    #[must_use]
    pub fn branch(&self) -> f64 {
        let bytes = (CHUNK as usize * 4 * Branch::WORDS) as f64;
        ((self.granted - self.refused - bytes * self.byte) / (2 * CHUNK) as f64).max(0.0)
    }

    /// The smaller of each pair of values.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            node: self.node.min(other.node),
            node_alone: self.node_alone.min(other.node_alone),
            poll: self.poll.min(other.poll),
            message: self.message.min(other.message),
            send: self.send.min(other.send),
            byte: self.byte.min(other.byte),
            refused: self.refused.min(other.refused),
            granted: self.granted.min(other.granted),
            turn: self.turn.min(other.turn),
            access: self.access.min(other.access),
            release: self.release.min(other.release),
            acquire: self.acquire.min(other.acquire),
            steal: self.steal.min(other.steal),
        }
    }
}

/// Measures on rank 0 of two or more, all of which must call this; the other ranks get `None`.
///
/// # Panics
///
/// If there is only one rank.
#[must_use]
pub fn measure(world: &SimpleCommunicator, kernel: Kernel) -> Option<Measured> {
    measure_with(world, kernel, named::find("T1").map(|it| it.parameters).unwrap_or_default())
}

/// The same, with the nodes of this tree.
fn measure_with(world: &SimpleCommunicator, kernel: Kernel, tree: Parameters) -> Option<Measured> {
    assert!(world.size() >= 2, "costs are measured between two ranks");
    let everybody = node(world, kernel, tree, |_| true);
    let alone = node(world, kernel, tree, |rank| rank == 0);
    let mut all = Measured { node: everybody, node_alone: alone, ..Measured::default() };
    (all.message, all.send) = messages(world);
    let long = long_messages(world);
    all.byte = (long - all.message).max(0.0) / LONG as f64;
    (all.refused, all.granted) = (steals(world, false), steals(world, true));
    all.poll = polls(world);
    one_sided(world, &mut all);
    (world.rank() == 0).then_some(all)
}

/// The best of several batches: nanoseconds for each of `times` operations.
fn best(times: usize, mut batch: impl FnMut()) -> f64 {
    let batches = (0..BATCHES).map(|_| {
        let began = mpi::time();
        batch();
        (mpi::time() - began) * 1e9 / times as f64
    });
    batches.fold(f64::INFINITY, f64::min)
}

/// A node, while these ranks look at nodes: rank 0 and possibly more.
fn node(
    world: &SimpleCommunicator,
    kernel: Kernel,
    tree: Parameters,
    searches: impl Fn(i32) -> bool,
) -> f64 {
    let Ok(tree) = Tree::new(tree) else { return 0.0 };
    let (mut seconds, mut nodes) = (0.0, 0);
    for _ in 0..BATCHES {
        let mut frontier = Frontier::new(&tree, kernel);
        if searches(world.rank()) {
            frontier.start();
        }
        world.barrier();
        let began = mpi::time();
        while frontier.open() > 0 {
            frontier.explore(1024);
        }
        seconds += mpi::time() - began;
        nodes += frontier.counts().nodes;
    }
    world.barrier();
    seconds * 1e9 / nodes.max(1) as f64
}

fn polls(world: &SimpleCommunicator) -> f64 {
    const POLLS: usize = 50_000;
    world.barrier();
    let poll = match world.rank() {
        0 => best(POLLS, || {
            for _ in 0..POLLS {
                std::hint::black_box(world.any_process().immediate_probe());
            }
        }),
        _ => 0.0,
    };
    world.barrier();
    poll
}

/// The time of a message one way, and the time for which it occupies its sender.
fn messages(world: &SimpleCommunicator) -> (f64, f64) {
    const ROUNDS: usize = 1000;
    const BURST: usize = 32;
    let mut word = [0_u64];
    world.barrier();
    let message = match world.rank() {
        0 => best(2 * ROUNDS, || {
            let other = world.process_at_rank(1);
            for _ in 0..ROUNDS {
                other.send(&word[..]);
                other.receive_into(&mut word[..]);
            }
        }),
        1 => {
            let other = world.process_at_rank(0);
            for _ in 0..BATCHES * ROUNDS {
                other.receive_into(&mut word[..]);
                other.send(&word[..]);
            }
            0.0
        }
        _ => 0.0,
    };
    let mut send = f64::INFINITY;
    for _ in 0..BATCHES * 10 {
        match world.rank() {
            0 => {
                let other = world.process_at_rank(1);
                let began = mpi::time();
                (0..BURST).for_each(|_| other.send(&word[..]));
                send = send.min((mpi::time() - began) * 1e9 / BURST as f64);
                other.receive_into(&mut word[..]);
            }
            1 => {
                let other = world.process_at_rank(0);
                (0..BURST).for_each(|_| {
                    other.receive_into(&mut word[..]);
                });
                other.send(&word[..]);
            }
            _ => {}
        }
    }
    (message, send)
}

fn long_messages(world: &SimpleCommunicator) -> f64 {
    const ROUNDS: usize = 50;
    let mut bytes = vec![0_u8; LONG];
    world.barrier();
    match world.rank() {
        0 => best(2 * ROUNDS, || {
            let other = world.process_at_rank(1);
            for _ in 0..ROUNDS {
                other.send(&bytes[..]);
                other.receive_into(&mut bytes[..]);
            }
        }),
        1 => {
            let other = world.process_at_rank(0);
            for _ in 0..BATCHES * ROUNDS {
                other.receive_into(&mut bytes[..]);
                other.send(&bytes[..]);
            }
            0.0
        }
        _ => 0.0,
    }
}

/// A steal by messages, from the request to the answer.
fn steals(world: &SimpleCommunicator, granted: bool) -> f64 {
    const STEALS: usize = 1000;
    let mut least = f64::INFINITY;
    for _ in 0..BATCHES {
        world.barrier();
        let machine = Stealing::new(world, granted, STEALS);
        let began = mpi::time();
        parallel::run(world, machine, Budget::new(world, None), Asks::AtOnce, |_| {});
        least = least.min((mpi::time() - began) * 1e9 / STEALS as f64);
    }
    least
}

/// Rank 0 asks rank 1 this many times, which refuses or gives; then rank 0 announces the end.
struct Stealing {
    rank: usize,
    ranks: usize,
    granted: bool,
    left: usize,
    waits: bool,
    asked: bool,
    ended: bool,
    chunk: Vec<Branch>,
}

impl Stealing {
    fn new(world: &SimpleCommunicator, granted: bool, steals: usize) -> Self {
        let branch = |number| Branch { state: State::root(number), depth: 1, next: 0, end: 1 };
        Self {
            // A rank's number and a size are not negative.
            rank: world.rank() as usize,
            ranks: world.size() as usize,
            granted,
            left: steals,
            waits: false,
            asked: false,
            ended: false,
            chunk: (0..CHUNK as u32).map(branch).collect(),
        }
    }
}

impl Machine for Stealing {
    fn has_work(&self) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn is_asking(&self) -> bool {
        self.waits
    }

    fn explore(&mut self) {}

    fn abandon(&mut self) {}

    fn receive(&mut self, _from: usize, message: Message) {
        match message {
            Message::Try => self.asked = true,
            Message::End => self.ended = true,
            _ => self.waits = false,
        }
    }

    fn respond(&mut self, _may_ask: bool) {}

    fn would_ask(&self) -> bool {
        false
    }

    fn next_outgoing(&mut self) -> Option<(usize, Message)> {
        if std::mem::take(&mut self.asked) {
            let chunk = self.granted.then(|| self.chunk.clone());
            return Some((0, chunk.map_or(Message::Refusal, Message::Work)));
        }
        if self.rank != 0 || self.waits {
            return None;
        }
        if self.left > 0 {
            (self.left, self.waits) = (self.left - 1, true);
            return Some((1, Message::Try));
        }
        self.ended = true;
        self.ranks -= 1;
        (self.ranks > 0).then_some((self.ranks, Message::End))
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

fn one_sided(world: &SimpleCommunicator, all: &mut Measured) {
    const ACCESSES: usize = 5000;
    const CHUNKS: usize = 48;
    let stack = StealStack::new(world, CHUNK as usize);
    let rank = world.rank();
    let branch = |number| Branch { state: State::root(number), depth: 1, next: 0, end: 1 };
    let chunk: Vec<Branch> = (0..CHUNK as u32).map(branch).collect();
    world.barrier();
    if rank == 0 {
        all.access = best(ACCESSES, || {
            for _ in 0..ACCESSES {
                std::hint::black_box(stack.read(1, FREE));
            }
        });
        all.turn = best(ACCESSES, || {
            for _ in 0..ACCESSES {
                std::hint::black_box(stack.read(0, FREE));
                mpi::yield_now();
            }
        });
        (all.release, all.acquire) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..BATCHES {
            let began = mpi::time();
            (0..CHUNKS).for_each(|_| stack.release(&chunk));
            let released = mpi::time();
            while std::hint::black_box(stack.acquire()).is_some() {}
            let per_chunk = |time: f64| time * 1e9 / CHUNKS as f64;
            all.release = all.release.min(per_chunk(released - began));
            all.acquire = all.acquire.min(per_chunk(mpi::time() - released));
        }
    }
    all.steal = f64::INFINITY;
    for _ in 0..BATCHES {
        if rank == 1 {
            (0..CHUNKS).for_each(|_| stack.release(&chunk));
        }
        world.barrier();
        if rank == 0 {
            let began = mpi::time();
            while std::hint::black_box(stack.steal(1)).is_some() {}
            all.steal = all.steal.min((mpi::time() - began) * 1e9 / CHUNKS as f64);
        }
        world.barrier();
    }
    stack.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "takes long: scripts/test --all"]
    fn everything_costs_something() {
        let tree = Parameters { depth: 6, seed: 19, ..Parameters::default() };
        mpi::run_local(3, move |world| {
            let measured = measure_with(world, Kernel::fastest(), tree);
            assert_eq!(measured.is_some(), world.rank() == 0);
            if let Some(measured) = measured {
                for (what, time) in measured.lines() {
                    let free = what.starts_with("byte");
                    assert!(time.is_finite() && (time > 0.0 || free), "{what}: {time}");
                }
                assert_eq!(measured.least(measured), measured);
            }
        });
    }
}
