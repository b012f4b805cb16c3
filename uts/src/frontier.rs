//! The open part of a search: nodes that are known but have not been looked at.
//!
//! Nodes are not stored one by one. A [`Branch`] is a node that has been looked at, with the range
//! of its children that have not; a leaf is never stored. So the 2000 children of a binomial root
//! are one entry, which can be divided, and the work of a step is to fill the sixteen lanes of a
//! [`Kernel`] with the next children of the topmost branches, hash them, and push those that have
//! children themselves. It is a depth-first search sixteen nodes wide: the order of nodes differs
//! from the benchmark's; their number and the tree do not.
//!
//! Work is given away from the bottom, where the oldest branches are: in a tree with a depth limit
//! these are the largest. They are *dealt* like cards, in turn to the owner and to each of the
//! others, so that every party gets branches of all depths.

use crate::{
    lanes::{Digests, GROUP, Kernel, LANES, LaneWords, Messages},
    rng::State,
    tree::Tree,
};

/// A node, and those of its children that have not been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The node's random state.
    pub state: State,
    /// The depth of its children.
    pub depth: u32,
    /// The first child that has not been looked at.
    pub next: u32,
    /// One more than the last child.
    pub end: u32,
}

impl Branch {
    /// Length of a branch in a message, in words.
    pub const WORDS: usize = 8;

    /// Encodes the branch as words.
    #[must_use]
    pub fn to_words(self) -> [u32; Self::WORDS] {
        let [a, b, c, d, e] = self.state.0;
        [a, b, c, d, e, self.depth, self.next, self.end]
    }

    /// Decodes a branch from words.
    #[must_use]
    pub fn from_words(words: [u32; Self::WORDS]) -> Self {
        let [a, b, c, d, e, depth, next, end] = words;
        Self { state: State([a, b, c, d, e]), depth, next, end }
    }

    /// Number of nodes that it represents.
    #[must_use]
    pub fn nodes(self) -> u64 {
        u64::from(self.end - self.next)
    }
}

/// The counts of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes looked at.
    pub nodes: u64,
    /// Those of them that have no children.
    pub leaves: u64,
    /// Depth of the deepest node.
    pub depth: u64,
    /// The greatest number of nodes open at the same time.
    pub most_open: u64,
    /// Open nodes that were abandoned because the search had reached its limit.
    pub left: u64,
}

/// The open nodes of one searcher, and its counts: real nodes in a [`Frontier`], or estimated ones
/// ([`crate::estimate`]).
pub trait OpenNodes {
    /// Looks at the root: the beginning of a search.
    fn start(&mut self);

    /// Looks at open nodes, their children and so on, until about `nodes` of them are done or none
    /// is left. A partially filled batch counts as a full one.
    fn explore(&mut self, nodes: u64);

    /// Number of open nodes.
    fn open(&self) -> u64;

    /// What has been counted so far.
    fn counts(&self) -> Counts;

    /// Adds branches from another searcher.
    fn add(&mut self, branches: impl IntoIterator<Item = Branch>);

    /// Deals the lower branches to this searcher and `others` more; returns the hands of the
    /// others. Hands are about equal if there are many branches, and may be empty if there are few:
    /// this searcher is served first.
    #[must_use]
    fn deal(&mut self, others: usize) -> Vec<Vec<Branch>>;

    /// Removes and returns the oldest open nodes: this many, or all if there are fewer.
    #[must_use]
    fn take_bottom(&mut self, nodes: u64) -> Vec<Branch>;

    /// Abandons all open nodes, and from now on those that are added.
    fn abandon(&mut self);
}

/// The open nodes of one searcher, and its counts.
#[derive(Clone, Debug)]
pub struct Frontier<'t> {
    tree: &'t Tree,
    kernel: Kernel,
    /// The branches from `bottom` on, topmost last. Those below were given away.
    branches: Vec<Branch>,
    bottom: usize,
    open: u64,
    counts: Counts,
    abandoned: bool,
}

/// A branch with more children per party than this is divided instead of dealt whole.
const DIVIDE_ABOVE: u64 = 16;

/// The most branches that are dealt: 256 KiB.
const MOST_DEALT: usize = 8192;

impl<'t> Frontier<'t> {
    /// A searcher of `tree` without work.
    #[must_use]
    pub fn new(tree: &'t Tree, kernel: Kernel) -> Self {
        let counts = Counts::default();
        let abandoned = false;
        Self { tree, kernel, branches: Vec::new(), bottom: 0, open: 0, counts, abandoned }
    }

    /// Fills lanes with the next children of the topmost branches; returns their number.
    #[inline]
    fn fill(&mut self, messages: &mut Messages, depths: &mut LaneWords) -> usize {
        let mut lanes = 0;
        while lanes < LANES && self.branches.len() > self.bottom {
            let Some(top) = self.branches.last_mut() else { break };
            let taken = (LANES - lanes).min((top.end - top.next) as usize);
            let least = self.tree.least(top.depth);
            // Whole groups are written; what is too much is overwritten or not used.
            for group in (lanes..lanes + taken).step_by(GROUP) {
                for (words, word) in messages.parent.iter_mut().zip(top.state.0) {
                    words[group..group + GROUP].fill(word);
                }
                depths[group..group + GROUP].fill(top.depth);
                messages.least[group..group + GROUP].fill(least);
                let first = top.next.wrapping_add((group - lanes) as u32);
                for (number, index) in messages.index[group..group + GROUP].iter_mut().enumerate() {
                    *index = first.wrapping_add(number as u32);
                }
            }
            self.counts.depth = self.counts.depth.max(top.depth.into());
            lanes += taken;
            top.next += taken as u32;
            if top.next == top.end {
                self.branches.pop();
            }
        }
        self.open -= lanes as u64;
        if self.branches.len() == self.bottom {
            self.branches.clear();
            self.bottom = 0;
        }
        lanes
    }

    /// Counts the new nodes, and pushes those that have children.
    #[inline]
    fn absorb_digests(&mut self, digests: &Digests, depths: &LaneWords, used: usize) {
        // Most nodes are leaves, and nothing is done for them one by one.
        let mut parents = u32::from(digests.parents) & ((1 << used) - 1);
        self.counts.nodes += used as u64;
        self.counts.leaves += used as u64;
        while parents != 0 {
            let lane = parents.trailing_zeros() as usize % LANES;
            parents &= parents - 1;
            let (state, depth) = (digests.state(lane), depths[lane]);
            let children = self.tree.children(depth, state.random());
            if children > 0 {
                self.counts.leaves -= 1;
                self.push(Branch { state, depth: depth + 1, next: 0, end: children });
            }
        }
        self.note_open();
    }

    #[inline]
    fn push(&mut self, branch: Branch) {
        self.open += branch.nodes();
        self.branches.push(branch);
    }

    #[inline]
    fn note_open(&mut self) {
        self.counts.most_open = self.counts.most_open.max(self.open);
    }
}

impl OpenNodes for Frontier<'_> {
    fn start(&mut self) {
        let root = State::root(self.tree.parameters().seed);
        let children = self.tree.children(0, root.random());
        self.counts.nodes += 1;
        if children == 0 {
            self.counts.leaves += 1;
        } else {
            self.push(Branch { state: root, depth: 1, next: 0, end: children });
        }
    }

    fn explore(&mut self, nodes: u64) {
        let granularity = self.tree.parameters().granularity;
        let (mut messages, mut depths) = (Messages::default(), [0; LANES + GROUP]);
        let mut digests = Digests::default();
        for _ in 0..nodes.div_ceil(LANES as u64) {
            let lanes = self.fill(&mut messages, &mut depths);
            if lanes == 0 {
                break;
            }
            self.kernel.hash(&messages, lanes, granularity, &mut digests);
            self.absorb_digests(&digests, &depths, lanes);
        }
    }

    fn open(&self) -> u64 {
        self.open
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn add(&mut self, branches: impl IntoIterator<Item = Branch>) {
        for branch in branches {
            if self.abandoned {
                self.counts.left += branch.nodes();
            } else {
                self.push(branch);
            }
        }
        self.note_open();
    }

    fn deal(&mut self, others: usize) -> Vec<Vec<Branch>> {
        let parties = others + 1;
        let mut hands = vec![Vec::new(); others];
        let mut kept = Vec::new();
        let dealt = (self.branches.len() - self.bottom).min(MOST_DEALT);
        let top = self.bottom + dealt;
        let mut turn = 0;
        for &branch in &self.branches[self.bottom..top] {
            if branch.nodes() > DIVIDE_ABOVE * parties as u64 {
                let share = branch.nodes().div_ceil(parties as u64) as u32;
                let mut next = branch.next;
                while next < branch.end {
                    let end = branch.end.min(next.saturating_add(share));
                    self.open -=
                        hand_out(&mut hands, &mut kept, turn, Branch { next, end, ..branch });
                    next = end;
                    turn = (turn + 1) % parties;
                }
            } else {
                self.open -= hand_out(&mut hands, &mut kept, turn, branch);
                turn = (turn + 1) % parties;
            }
        }
        // Never more than were dealt: each branch leaves at most one part here.
        self.bottom = top - kept.len();
        self.branches[self.bottom..top].copy_from_slice(&kept);
        hands
    }

    fn take_bottom(&mut self, nodes: u64) -> Vec<Branch> {
        let mut taken = Vec::new();
        let mut missing = nodes;
        while missing > 0 && self.bottom < self.branches.len() {
            let oldest = &mut self.branches[self.bottom];
            let all = oldest.nodes();
            if all > missing {
                // Less than a `u32`'s number of nodes.
                let middle = oldest.next + missing as u32;
                taken.push(Branch { end: middle, ..*oldest });
                oldest.next = middle;
                self.open -= missing;
                break;
            }
            taken.push(*oldest);
            self.bottom += 1;
            self.open -= all;
            missing -= all;
        }
        if self.branches.len() == self.bottom {
            self.branches.clear();
            self.bottom = 0;
        }
        taken
    }

    fn abandon(&mut self) {
        self.abandoned = true;
        self.counts.left += std::mem::take(&mut self.open);
        self.branches.clear();
        self.bottom = 0;
    }
}

/// Gives a branch to the party whose turn it is; the owner's turn is 0. Returns the number of nodes
/// that left the owner.
fn hand_out(hands: &mut [Vec<Branch>], kept: &mut Vec<Branch>, turn: usize, branch: Branch) -> u64 {
    if turn == 0 {
        kept.push(branch);
        0
    } else {
        hands[turn - 1].push(branch);
        branch.nodes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Kind, Parameters, Shape};

    fn branch(next: u32, end: u32) -> Branch {
        Branch { state: State::root(next), depth: 1, next, end }
    }

    fn tree() -> Tree {
        let (shape, depth, seed) = (Shape::Fixed, 6, 19);
        Tree::new(Parameters { shape, depth, seed, ..Parameters::default() }).expect("sound")
    }

    /// The tree's size, one node at a time.
    fn count_alone(tree: &Tree, state: State, depth: u32) -> (u64, u64, u64) {
        let children = tree.children(depth, state.random());
        let mut sum = (1, u64::from(children == 0), u64::from(depth));
        for index in 0..children {
            let (nodes, leaves, deepest) = count_alone(tree, state.child(index), depth + 1);
            sum = (sum.0 + nodes, sum.1 + leaves, sum.2.max(deepest));
        }
        sum
    }

    #[test]
    fn every_kernel_finds_what_a_plain_recursion_finds() {
        let default = Parameters::default;
        let trees = [
            Parameters { shape: Shape::Fixed, depth: 4, seed: 19, ..default() },
            Parameters { shape: Shape::Cyclic, depth: 4, branching: 3.0, seed: 502, ..default() },
            Parameters { kind: Kind::Hybrid, depth: 8, seed: 3, ..default() },
            Parameters { kind: Kind::Balanced, depth: 3, branching: 21.0, ..default() },
            Parameters { kind: Kind::Balanced, depth: 0, granularity: 3, ..default() },
        ];
        for parameters in trees {
            let tree = Tree::new(parameters).expect("a sound tree");
            let expected = count_alone(&tree, State::root(parameters.seed), 0);
            for kernel in Kernel::available() {
                let mut frontier = Frontier::new(&tree, kernel);
                frontier.start();
                while frontier.open() > 0 {
                    frontier.explore(1);
                }
                let Counts { nodes, leaves, depth, .. } = frontier.counts();
                assert_eq!((nodes, leaves, depth), expected, "{parameters:?} {}", kernel.name());
            }
        }
    }

    #[test]
    fn exploring_is_bounded() {
        let tree = tree();
        let mut frontier = Frontier::new(&tree, Kernel::PLAIN);
        frontier.start();
        frontier.explore(20);
        assert!((2..=33).contains(&frontier.counts().nodes));
        assert!(frontier.open() > 0 && frontier.counts().most_open >= frontier.open());
    }

    #[test]
    fn words_are_branches() {
        let branch = branch(3, 9);
        assert_eq!(Branch::from_words(branch.to_words()), branch);
        assert_eq!(branch.nodes(), 6);
    }

    #[test]
    fn dealing_keeps_every_node_once() {
        let tree = tree();
        let mut frontier = Frontier::new(&tree, Kernel::PLAIN);
        frontier.add([branch(0, 1000), branch(0, 8), branch(5, 6), branch(0, 7), branch(0, 9)]);
        let hands = frontier.deal(2);
        let nodes = |hand: &Vec<Branch>| hand.iter().map(|it| it.nodes()).sum::<u64>();
        assert_eq!(hands.iter().map(nodes).collect::<Vec<_>>(), [334 + 1, 332 + 7]);
        assert_eq!(frontier.open(), 334 + 8 + 9);
        let kept = [branch(0, 334), branch(0, 8), branch(0, 9)];
        let kept = kept.map(|it| (it.next, it.end));
        let rest: Vec<_> =
            frontier.branches[frontier.bottom..].iter().map(|it| (it.next, it.end)).collect();
        assert_eq!(rest, kept);
        assert_eq!((hands[0][0].next, hands[0][0].end), (334, 668));
        assert_eq!((hands[1][0].next, hands[1][0].end), (668, 1000));
    }

    #[test]
    fn a_chunk_is_taken_from_the_bottom_and_divides_a_branch() {
        let tree = tree();
        let mut frontier = Frontier::new(&tree, Kernel::PLAIN);
        frontier.add([branch(0, 8), branch(5, 6), branch(0, 1000), branch(0, 2)]);
        let ends = |taken: &[Branch]| taken.iter().map(|it| (it.next, it.end)).collect::<Vec<_>>();
        assert_eq!(ends(&frontier.take_bottom(20)), [(0, 8), (5, 6), (0, 11)]);
        assert_eq!(ends(&frontier.take_bottom(20)), [(11, 31)]);
        assert_eq!(frontier.open(), 969 + 2);
        assert_eq!(ends(&frontier.take_bottom(2000)), [(31, 1000), (0, 2)]);
        assert_eq!((frontier.open(), frontier.take_bottom(1)), (0, vec![]));
    }

    #[test]
    fn what_is_abandoned_is_counted_and_what_comes_later_too() {
        let tree = tree();
        let mut frontier = Frontier::new(&tree, Kernel::PLAIN);
        frontier.add([branch(0, 8), branch(5, 6)]);
        frontier.abandon();
        assert_eq!((frontier.open(), frontier.counts().left), (0, 9));
        frontier.add([branch(0, 20)]);
        frontier.explore(100);
        let Counts { nodes, left, .. } = frontier.counts();
        assert_eq!((frontier.open(), nodes, left), (0, 0, 29));
    }

    #[test]
    fn the_owner_is_dealt_to_first_and_the_top_is_not_dealt() {
        let tree = tree();
        let mut frontier = Frontier::new(&tree, Kernel::PLAIN);
        frontier.add([branch(0, 5)]);
        assert_eq!(frontier.deal(3), [vec![], vec![], vec![]]);
        assert_eq!(frontier.open(), 5);

        let many = MOST_DEALT as u32 + 10;
        let last_depth = tree.parameters().depth;
        frontier.add((0..many).map(|it| Branch { depth: last_depth, ..branch(it, it + 1) }));
        let hands = frontier.deal(1);
        assert_eq!(hands[0].len(), MOST_DEALT / 2);
        assert_eq!(frontier.open(), 5 + u64::from(many) - MOST_DEALT as u64 / 2);
        assert_eq!(frontier.branches.last().map(|it| it.next), Some(many - 1));
        frontier.explore(u64::MAX);
        assert_eq!(frontier.open(), 0);
    }
}
