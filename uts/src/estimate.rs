//! Open nodes of trees that are too large to be searched here: estimates their number by the tree's law.
//!
//! A simulation of a search needs to know how many nodes a process has, not which. The random numbers that replace
//! digests here follow the law of the tree:
//!
//! * **Binomial trees.** All nodes below the root are equivalent, so a process is described by its number of open
//!   nodes. The whole tree is a random walk of the number of all open nodes: it begins with the root's children,
//!   changes by m - 1 or by -1 with each node that is looked at, and reaches 0 for the first time after as many nodes
//!   as the tree has. Of `left` nodes, `open` of which are open now, `(left - open) / m` will have children; by the
//!   ballot theorem the next node has some with probability `(open + m - 1) / open * parents / (left - 1)`. So exactly
//!   the published nodes are found, in an order with the law of such a tree.
//! * **Geometric trees of fixed shape.** The upper levels are the real ones, by digests; below them nodes have children
//!   by the same law; a node [`LEVELS`] above the last level, or more in a very deep tree, stands for the whole subtree
//!   below it, with a size that was measured by searching many such subtrees. Nodes are taken sixteen at a time, as in
//!   a [`Frontier`]: so the number of open nodes is the same as there, and chunks can be given away. (Open nodes inside
//!   the subtrees are counted by their mean, and cannot be given away.)

use crate::{
    frontier::{Branch, Counts, Frontier, OpenNodes},
    lanes::{Kernel, LANES},
    machine::mix,
    named::Named,
    rng::{RANDOM_VALUES, State},
    tree::{Kind, Parameters, Shape, Tree},
};
use std::cell::Cell;
use thiserror::Error;

/// The least number of levels of the subtrees that are not simulated.
pub const LEVELS: u32 = 3;
/// The greatest number of levels above them: a tree has several hundred million nodes there.
const MOST_LEVELS_ABOVE: u32 = 13;
/// Levels of a tree that are computed by digests.
const OWN_LEVELS: u32 = 10;
/// Number of subtrees that are searched to determine their sizes.
const SAMPLES: u32 = 8192;

/// The law of a tree, and the part of it that the searching processes have left.
#[derive(Clone, Debug)]
pub struct Law {
    tree: Tree,
    kind: LawKind,
    seed: u64,
    random: Cell<u64>,
}

#[derive(Clone, Debug)]
enum LawKind {
    Walk {
        /// Nodes of the tree except the root.
        nodes: u64,
        /// Nodes that have not been looked at.
        left: Cell<u64>,
        /// The open ones among them.
        open: Cell<u64>,
    },
    Subtrees {
        /// Nodes at this depth stand for their subtrees.
        cut: u32,
        /// Nodes and leaves of subtrees that were searched.
        sizes: Vec<(u64, u64)>,
        /// Mean number of open nodes in the subtrees of sixteen nodes.
        open: u64,
    },
}

/// Why a tree has no law.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "tree {0} cannot be estimated: allowed are binomial trees, and geometric ones of fixed shape that \
     are deeper than {LEVELS}"
)]
pub struct NoLaw(&'static str);

impl Law {
    /// The law of a tree. Searches several million nodes.
    ///
    /// # Errors
    ///
    /// If no law is known for the tree.
    pub fn of(named: &Named, kernel: Kernel) -> Result<Self, NoLaw> {
        let no_law = NoLaw(named.name);
        let parameters = named.parameters;
        let tree = Tree::new(parameters).map_err(|_| no_law.clone())?;
        let kind = match (parameters.kind, parameters.shape) {
            (Kind::Binomial, _) => {
                let nodes = named.published.nodes - 1;
                LawKind::Walk { nodes, left: Cell::new(nodes), open: Cell::new(0) }
            }
            (Kind::Geometric, Shape::Fixed) if parameters.depth > LEVELS => {
                let cut = (parameters.depth - LEVELS).min(MOST_LEVELS_ABOVE);
                let depth = parameters.depth - cut;
                let below = Parameters { depth, ..parameters };
                let (sizes, open) = sample(below, kernel).map_err(|()| no_law)?;
                LawKind::Subtrees { cut, sizes, open }
            }
            _ => return Err(no_law),
        };
        Ok(Self { tree, kind, seed: 1, random: Cell::new(1) })
    }

    /// The same law, with random numbers from another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: mix(seed), ..self }
    }

    /// Prepares for another search.
    pub fn restart(&self) {
        self.random.set(self.seed);
        if let LawKind::Walk { nodes, left, open } = &self.kind {
            left.set(*nodes);
            open.set(0);
        }
    }

    fn draw(&self) -> u64 {
        let state = self.random.get();
        self.random.set(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        mix(state)
    }

    /// Uniform in [0, 1).
    fn uniform(&self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Looks at this many nodes of a binomial tree with this many open nodes; returns how many of them have children.
    fn walk(&self, nodes: u64, left: &Cell<u64>, open: &Cell<u64>) -> u64 {
        let m = u64::from(self.tree.parameters().children);
        let (all, now_open) = (left.get(), open.get());
        let parents = (all - now_open) / m;
        let (up, down) = ((now_open + m - 1) as f64, now_open as f64);
        let probability = match all {
            0 | 1 => 0.0,
            _ => (up / down * parents as f64 / (all - 1) as f64).min(1.0),
        };
        let drawn = self.binomial(nodes, probability).min(parents).min(nodes);
        // The walk ends with the tree, not before.
        let ends_early = now_open == nodes && drawn == 0 && parents > 0;
        let drawn = drawn + u64::from(ends_early);
        left.set(all - nodes);
        open.set(now_open - nodes + m * drawn);
        drawn
    }

    /// How many of this many trials succeed.
    fn binomial(&self, trials: u64, probability: f64) -> u64 {
        if trials > 64 {
            // By the normal distribution (G. Box, M. Muller 1958).
            let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
            let normal = radius * (std::f64::consts::TAU * self.uniform()).cos();
            let mean = trials as f64 * probability;
            let drawn = mean + normal * (mean * (1.0 - probability)).sqrt();
            return (drawn.round().max(0.0) as u64).min(trials);
        }
        if (probability - 0.5).abs() < 1e-3 {
            // Fair coins, and a few more or less so that the mean is right.
            let coins = self.draw() & (u64::MAX >> (64 - trials));
            let heads = u64::from(coins.count_ones());
            let excess = (probability - 0.5) * trials as f64;
            let corrected = self.uniform() < excess.abs();
            return match excess > 0.0 {
                true => (heads + u64::from(corrected)).min(trials),
                false => heads.saturating_sub(corrected.into()),
            };
        }
        (0..trials).map(|_| u64::from(self.uniform() < probability)).sum()
    }
}

/// Nodes and leaves of such trees, and the number of open nodes when sixteen of them are searched at once.
fn sample(parameters: Parameters, kernel: Kernel) -> Result<(Vec<(u64, u64)>, u64), ()> {
    let tree = Tree::new(parameters).map_err(|_| ())?;
    let below = |seed| {
        let state = State::root(seed);
        Branch { state, depth: 1, next: 0, end: tree.children(0, state.random()) }
    };
    // What was counted, and how many nodes were open at each look.
    let search = |branches: Vec<Branch>| {
        let mut frontier = Frontier::new(&tree, kernel);
        frontier.add(branches);
        let (mut open, mut looks) = (0, 0);
        while frontier.open() > 0 {
            frontier.explore(1);
            open += frontier.open();
            looks += 1;
        }
        (frontier.counts(), open, looks)
    };
    let seeds: Vec<u32> = (0..SAMPLES).collect();
    let size = |seed: &u32| {
        let branch = below(*seed);
        let (Counts { nodes, leaves, .. }, ..) = search(vec![branch]);
        (nodes + 1, leaves + u64::from(branch.nodes() == 0))
    };
    let sizes = seeds.iter().map(size).collect();
    let (mut open, mut looks) = (0, 0);
    for seeds in seeds.chunks(LANES) {
        let (_, these, number) = search(seeds.iter().map(|it| below(*it)).collect());
        open += these;
        looks += number;
    }
    Ok((sizes, open / looks.max(1)))
}

/// The open nodes of one process of a simulation.
#[derive(Clone, Debug)]
pub struct Estimated<'l> {
    law: &'l Law,
    /// Oldest first. (At most one for a binomial tree.)
    branches: Vec<Branch>,
    open: u64,
    /// Remaining nodes of a subtree that is being looked at.
    rest: u64,
    counts: Counts,
    abandoned: bool,
}

impl<'l> Estimated<'l> {
    /// A process without work.
    #[must_use]
    pub fn new(law: &'l Law) -> Self {
        let counts = Counts::default();
        Self { law, branches: Vec::new(), open: 0, rest: 0, counts, abandoned: false }
    }

    fn push(&mut self, branch: Branch) {
        self.open += branch.nodes();
        match (&self.law.kind, self.branches.last_mut()) {
            (LawKind::Walk { .. }, Some(all)) => all.end += branch.end - branch.next,
            _ if branch.nodes() > 0 => self.branches.push(branch),
            _ => {}
        }
    }

    /// A branch that no other process has: its state is its number.
    fn branch(&self, depth: u32, nodes: u64) -> Branch {
        let bits = self.law.draw();
        // The halves of a number.
        let state = State([bits as u32, (bits >> 32) as u32, 0, 0, 0]);
        Branch { state, depth, next: 0, end: nodes as u32 }
    }

    fn explore_walk(&mut self, mut nodes: u64, left: &Cell<u64>, open: &Cell<u64>) {
        let children = u64::from(self.law.tree.parameters().children);
        while nodes > 0 && self.open > 0 {
            // So many can be looked at together: none of them is a child of another.
            let together = nodes.min(self.open);
            let parents = self.law.walk(together, left, open);
            self.open = self.open - together + children * parents;
            self.counts.nodes += together;
            self.counts.leaves += together - parents;
            nodes -= together;
        }
        self.branches.clear();
        let open = std::mem::take(&mut self.open);
        if open > 0 {
            let all = self.branch(1, open);
            self.push(all);
        }
    }

    fn explore_subtrees(&mut self, mut nodes: u64, cut: u32, sizes: &[(u64, u64)]) {
        while nodes > 0 {
            let taken = nodes.min(self.rest);
            self.rest -= taken;
            self.counts.nodes += taken;
            nodes -= taken;
            if nodes == 0 {
                return;
            }
            let (mut batch, mut number) = ([(0, State([0; 5]), 0); LANES], 0);
            while let (true, Some(top)) = (number < LANES, self.branches.last_mut()) {
                batch[number] = (top.depth, top.state, top.next);
                number += 1;
                top.next += 1;
                if top.next == top.end {
                    self.branches.pop();
                }
            }
            if number == 0 {
                return;
            }
            self.open -= number as u64;
            for &(depth, parent, index) in &batch[..number] {
                if depth >= cut {
                    // The remainder of a division by a length.
                    let (size, leaves) = sizes[(self.law.draw() % sizes.len() as u64) as usize];
                    self.rest += size;
                    self.counts.leaves += leaves;
                    continue;
                }
                nodes = nodes.saturating_sub(1);
                self.counts.nodes += 1;
                self.look_at(depth, parent, index);
            }
        }
    }

    /// Looks at a node with random or with real digests.
    fn look_at(&mut self, depth: u32, parent: State, index: u32) {
        let own = (depth <= OWN_LEVELS).then(|| parent.child(index));
        let random = match own {
            Some(state) => state.random(),
            None => (self.law.draw() % u64::from(RANDOM_VALUES)) as u32,
        };
        let children = self.law.tree.children(depth, random);
        self.counts.leaves += u64::from(children == 0);
        let mut branch = self.branch(depth + 1, children.into());
        branch.state = own.unwrap_or(branch.state);
        self.push(branch);
    }
}

impl OpenNodes for Estimated<'_> {
    fn start(&mut self) {
        let parameters = self.law.tree.parameters();
        let root = State::root(parameters.seed);
        let children = self.law.tree.children(0, root.random());
        self.counts.nodes += 1;
        if let LawKind::Walk { open, .. } = &self.law.kind {
            open.set(children.into());
        }
        self.push(Branch { state: root, depth: 1, next: 0, end: children });
    }

    fn explore(&mut self, nodes: u64) {
        let law = self.law;
        match &law.kind {
            LawKind::Walk { left, open, .. } => self.explore_walk(nodes, left, open),
            LawKind::Subtrees { cut, sizes, .. } => self.explore_subtrees(nodes, *cut, sizes),
        }
        self.counts.most_open = self.counts.most_open.max(self.open());
    }

    fn open(&self) -> u64 {
        match &self.law.kind {
            LawKind::Subtrees { open, .. } if self.rest > 0 => self.open + (*open).min(self.rest),
            _ => self.open,
        }
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
    }

    fn abandon(&mut self) {
        self.abandoned = true;
        self.counts.left += self.open();
        (self.open, self.rest) = (0, 0);
        self.branches.clear();
    }

    fn deal(&mut self, others: usize) -> Vec<Vec<Branch>> {
        let mut hands = vec![Vec::new(); others];
        let mut kept = Vec::new();
        let mut turn = 0;
        for mut branch in std::mem::take(&mut self.branches) {
            while branch.nodes() > 0 {
                // Fits: it is not more than there are.
                let share = branch.nodes().div_ceil(others as u64 + 1) as u32;
                let end = branch.end.min(branch.next + share);
                let mut part = Branch { end, ..branch };
                branch.next = end;
                if matches!(self.law.kind, LawKind::Walk { .. }) {
                    part = self.branch(1, part.nodes());
                }
                if turn == 0 {
                    kept.push(part);
                } else {
                    self.open -= part.nodes();
                    hands[turn - 1].push(part);
                }
                turn = (turn + 1) % (others + 1);
            }
        }
        self.branches = kept;
        hands
    }

    fn take_bottom(&mut self, nodes: u64) -> Vec<Branch> {
        let (mut taken, mut missing) = (Vec::new(), nodes);
        let mut whole = 0;
        for branch in &mut self.branches {
            if missing == 0 {
                break;
            }
            // Fits: it is not more than there are.
            let part = branch.nodes().min(missing);
            let end = branch.next + part as u32;
            taken.push(Branch { end, ..*branch });
            branch.next = end;
            missing -= part;
            if branch.nodes() > 0 {
                break;
            }
            whole += 1;
        }
        self.branches.drain(..whole);
        self.open -= nodes - missing;
        if matches!(self.law.kind, LawKind::Walk { .. }) {
            for part in &mut taken {
                *part = self.branch(1, part.nodes());
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named;

    fn law(name: &str) -> Law {
        let named = named::find(name).expect("a named tree");
        Law::of(named, Kernel::fastest()).expect("a law")
    }

    fn alone(law: &Law) -> Counts {
        law.restart();
        let mut process = Estimated::new(law);
        process.start();
        while process.open() > 0 {
            process.explore(1000);
        }
        process.counts()
    }

    #[test]
    fn binomial_trees_have_their_published_nodes_and_leaves() {
        for name in ["T3", "T3L", "T3XXL"] {
            let published = named::find(name).expect("a named tree").published;
            let found = alone(&law(name));
            assert_eq!(found.nodes, published.nodes, "{name}");
            assert!(published.leaves.is_none_or(|it| it == found.leaves), "{name}");
        }
    }

    #[test]
    #[ignore = "takes long: scripts/test --all"]
    fn geometric_trees_have_about_their_nodes() {
        for name in ["T1L", "T1XL"] {
            let published = named::find(name).expect("a named tree").published;
            let found = alone(&law(name));
            let ratio = found.nodes as f64 / published.nodes as f64;
            assert!((0.98..1.02).contains(&ratio), "{name}: {ratio}");
            let leaves = found.leaves as f64 / found.nodes as f64;
            assert!((0.79..0.81).contains(&leaves), "{name}: {leaves}");
        }
    }

    #[test]
    fn walks_end_where_they_have_to_whoever_has_the_nodes() {
        let law = law("T3");
        let mut processes = vec![Estimated::new(&law); 3];
        processes[0].start();
        let mut turn = 0;
        while processes.iter().any(|it| it.open() > 0) {
            turn += 1;
            let at = turn % 3;
            processes[at].explore(37);
            let given = match turn % 2 {
                0 => processes[at].deal(1).remove(0),
                _ => processes[at].take_bottom(5),
            };
            let before = processes[(turn + 1) % 3].open();
            let nodes: u64 = given.iter().map(|it| it.nodes()).sum();
            processes[(turn + 1) % 3].add(given);
            assert_eq!(processes[(turn + 1) % 3].open(), before + nodes);
        }
        let nodes: u64 = processes.iter().map(|it| it.counts().nodes).sum();
        assert_eq!(nodes, 4_112_897);
        assert!(processes.iter().all(|it| it.counts().nodes > 0));
    }

    #[test]
    fn other_trees_are_refused() {
        let named = named::find("T2").expect("a named tree");
        let error = Law::of(named, Kernel::PLAIN).expect_err("nothing is known of it");
        assert!(error.to_string().starts_with("tree T2 cannot be estimated: allowed are"));
    }
}
