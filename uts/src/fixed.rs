//! The top of the tree is distributed over the ranks once, and nothing is sent: shows what moving
//! ranks can do for an unbalanced tree, and what it cannot.
//!
//! Every rank computes the top of the tree for itself, breadth first, until each rank gets about
//! [`NODES_PER_RANK`] open nodes; open node `k` belongs to rank `k mod ranks`. Rank 0 counts the
//! top. With several ranks per PE and `--lb`, the runtime moves ranks that still have work.

use crate::{
    frontier::{Branch, Counts, Frontier, OpenNodes},
    lanes::Kernel,
    machine::{Machine, Message, Traffic},
    plan::Sharing,
    rng::State,
    tree::Tree,
};
use std::collections::VecDeque;

/// Open nodes per rank, if the tree's top has as many.
pub const NODES_PER_RANK: u64 = 32;

/// The greatest size of the top, however narrow the tree is there.
const MOST_NODES: u64 = 100_000;

/// One rank's part of a search.
#[derive(Debug)]
pub struct Fixed<'t> {
    frontier: Frontier<'t>,
    /// Rank 0's counts for the top.
    top: Counts,
    interval: u64,
}

impl<'t> Fixed<'t> {
    /// The part of `rank` in a search by `ranks` ranks.
    #[must_use]
    pub fn new(
        tree: &'t Tree,
        kernel: Kernel,
        rank: usize,
        ranks: usize,
        sharing: Sharing,
    ) -> Self {
        let (open, counted) = top(tree, NODES_PER_RANK * ranks as u64);
        let mut frontier = Frontier::new(tree, kernel);
        let nodes = open.iter().flat_map(|branch| {
            (branch.next..branch.end).map(|next| Branch { next, end: next + 1, ..*branch })
        });
        frontier.add(nodes.skip(rank).step_by(ranks));
        let top = if rank == 0 { counted } else { Counts::default() };
        Self { frontier, top, interval: sharing.interval.first() }
    }
}

/// The open nodes below the top of the tree, and the counts for the top.
fn top(tree: &Tree, wanted: u64) -> (VecDeque<Branch>, Counts) {
    let mut open = VecDeque::new();
    let (mut counts, mut nodes) = (Counts::default(), 0);
    let mut look = |state: State, depth: u32, open: &mut VecDeque<Branch>| {
        let children = tree.children(depth, state.random());
        counts.nodes += 1;
        counts.leaves += u64::from(children == 0);
        counts.depth = counts.depth.max(depth.into());
        if children > 0 {
            open.push_back(Branch { state, depth: depth + 1, next: 0, end: children });
        }
        (u64::from(children), counts.nodes)
    };
    let (mut unseen, _) = look(State::root(tree.parameters().seed), 0, &mut open);
    while unseen < wanted && nodes < MOST_NODES {
        let Some(branch) = open.pop_front() else { break };
        for index in branch.next..branch.end {
            let (children, looked_at) = look(branch.state.child(index), branch.depth, &mut open);
            unseen = unseen + children - 1;
            nodes = looked_at;
        }
    }
    (open, counts)
}

impl Machine for Fixed<'_> {
    fn has_work(&self) -> bool {
        self.frontier.open() > 0
    }

    fn has_ended(&self) -> bool {
        !self.has_work()
    }

    fn is_asking(&self) -> bool {
        false
    }

    fn explore(&mut self) {
        self.frontier.explore(self.interval);
    }

    fn abandon(&mut self) {
        self.frontier.abandon();
    }

    fn receive(&mut self, from: usize, message: Message) {
        unreachable!("{message:?} from rank {from}: nothing is sent in this search");
    }

    fn respond(&mut self, _may_ask: bool) {}

    fn would_ask(&self) -> bool {
        false
    }

    fn next_outgoing(&mut self) -> Option<(usize, Message)> {
        None
    }

    fn counts(&self) -> Counts {
        let (top, below) = (self.top, self.frontier.counts());
        Counts {
            nodes: top.nodes + below.nodes,
            leaves: top.leaves + below.leaves,
            depth: top.depth.max(below.depth),
            most_open: top.most_open.max(below.most_open),
            left: below.left,
        }
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}
