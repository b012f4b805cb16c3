//! The search by one thread, without ranks: the reference for parallel searches.

use crate::{
    frontier::{Counts, Frontier, OpenNodes},
    lanes::Kernel,
    tree::Tree,
};
use std::ops::ControlFlow;

/// Searches the tree; calls `progress` after about every `interval` nodes, and stops when that requests it: then open
/// nodes are abandoned ([`Counts::left`]).
pub fn search(
    tree: &Tree,
    kernel: Kernel,
    interval: u64,
    mut progress: impl FnMut(Counts) -> ControlFlow<()>,
) -> Counts {
    let mut frontier = Frontier::new(tree, kernel);
    frontier.start();
    while frontier.open() > 0 {
        frontier.explore(interval.max(1));
        if progress(frontier.counts()).is_break() {
            frontier.abandon();
        }
    }
    frontier.counts()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Kind, Parameters, Shape};

    /// Small trees on whose sizes two other programs agree: nodes, depth, leaves.
    #[test]
    fn small_trees_have_their_known_sizes() {
        let default = Parameters::default;
        let geometric = |shape, depth, branching, seed| {
            let kind = Kind::Geometric;
            Parameters { kind, shape, depth, branching, seed, ..default() }
        };
        let binomial = Parameters {
            kind: Kind::Binomial,
            branching: 100.0,
            probability: 0.124_875,
            children: 8,
            seed: 42,
            ..default()
        };
        let balanced = Parameters { kind: Kind::Balanced, ..default() };
        let cases = [
            (geometric(Shape::Fixed, 4, 4.0, 19), (944, 4, 744)),
            (geometric(Shape::Fixed, 6, 4.0, 19), (16_000, 6, 12_839)),
            (geometric(Shape::Linear, 10, 4.0, 34), (5577, 10, 3111)),
            (geometric(Shape::Cyclic, 4, 3.0, 502), (121, 11, 67)),
            (binomial, (6797, 67, 5959)),
            (default(), (1732, 6, 1050)),
            (geometric(Shape::ExponentialDecrease, 10, 4.0, 1), (8383, 31, 4279)),
            (balanced, (5461, 6, 4096)),
            (Parameters { granularity: 3, ..default() }, (1732, 6, 1050)),
        ];
        for (parameters, expected) in cases {
            let tree = Tree::new(parameters).expect("a sound tree");
            for kernel in Kernel::available() {
                let Counts { nodes, depth, leaves, .. } =
                    search(&tree, kernel, 100, |_| ControlFlow::Continue(()));
                assert_eq!((nodes, depth, leaves), expected, "{parameters}, {}", kernel.name());
            }
        }
    }

    #[test]
    fn a_search_stops_when_it_is_told_to_and_counts_what_is_left() {
        let tree = Tree::new(Parameters::default()).expect("a sound tree");
        let stop = |counts: Counts| match counts.nodes {
            0..500 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let counts = search(&tree, Kernel::PLAIN, 32, stop);
        assert!((500..600).contains(&counts.nodes) && counts.left > 0, "{counts:?}");
    }
}
