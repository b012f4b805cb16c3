//! What each rank did, brought together on rank 0.

use crate::{frontier::Counts, named::Published, searcher::Traffic};
use mpi::{topology::SimpleCommunicator, traits::*};

/// What one rank found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankStatistics {
    /// The nodes that it looked at.
    pub counts: Counts,
    /// The work that it gave and took.
    pub traffic: Traffic,
    /// Seconds that it had work, whether or not it had a processor.
    pub working: f64,
    /// Seconds that it waited for work.
    pub waiting: f64,
}

impl RankStatistics {
    /// Numbers in the transmitted form.
    const WORDS: usize = 11;

    fn to_words(self) -> [u64; Self::WORDS] {
        let Counts { nodes, leaves, depth, most_open } = self.counts;
        let Traffic { steals, failed_steals, releases, nodes_stolen, nodes_released } =
            self.traffic;
        let [working, waiting] = [self.working, self.waiting].map(f64::to_bits);
        [
            nodes,
            leaves,
            depth,
            most_open,
            steals,
            failed_steals,
            releases,
            nodes_stolen,
            nodes_released,
            working,
            waiting,
        ]
    }

    fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [
            nodes,
            leaves,
            depth,
            most_open,
            steals,
            failed_steals,
            releases,
            nodes_stolen,
            nodes_released,
            working,
            waiting,
        ] = words;
        let [working, waiting] = [working, waiting].map(f64::from_bits);
        Self {
            counts: Counts { nodes, leaves, depth, most_open },
            traffic: Traffic { steals, failed_steals, releases, nodes_stolen, nodes_released },
            working,
            waiting,
        }
    }
}

/// Brings the statistics of all ranks to rank 0, in the order of the ranks. All must call it;
/// the others get nothing.
#[must_use]
pub fn gather(world: &SimpleCommunicator, mine: &RankStatistics) -> Option<Vec<RankStatistics>> {
    let (root, words) = (world.process_at_rank(0), mine.to_words());
    if world.rank() != 0 {
        root.gather_into(&words[..]);
        return None;
    }
    // A size is not negative.
    let mut all = vec![0; RankStatistics::WORDS * world.size() as usize];
    root.gather_into_root(&words[..], &mut all[..]);
    Some(all.as_chunks().0.iter().copied().map(RankStatistics::from_words).collect())
}

/// The whole tree, as found by all ranks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Number of nodes, with the root.
    pub nodes: u64,
    /// Depth of the deepest node; the root's is 0.
    pub depth: u64,
    /// Number of nodes without children.
    pub leaves: u64,
    /// Open nodes that were sent.
    nodes_released: u64,
    /// Open nodes that were received.
    nodes_stolen: u64,
}

impl Totals {
    /// The sums over all ranks.
    #[must_use]
    pub fn new(ranks: &[RankStatistics]) -> Self {
        let sum = |it: fn(&RankStatistics) -> u64| ranks.iter().map(it).sum();
        Self {
            nodes: sum(|it| it.counts.nodes),
            depth: ranks.iter().map(|it| it.counts.depth).max().unwrap_or(0),
            leaves: sum(|it| it.counts.leaves),
            nodes_released: sum(|it| it.traffic.nodes_released),
            nodes_stolen: sum(|it| it.traffic.nodes_stolen),
        }
    }

    /// Leaves per hundred nodes.
    #[must_use]
    pub fn leaf_percentage(&self) -> f64 {
        100.0 * self.leaves as f64 / self.nodes as f64
    }

    /// What is wrong with the tree that was found, if something is: it is not as published, or
    /// nodes were lost on the way from rank to rank.
    #[must_use]
    pub fn differs_from(&self, published: Option<Published>) -> Option<String> {
        if self.nodes_released != self.nodes_stolen {
            let (released, stolen) = (self.nodes_released, self.nodes_stolen);
            return Some(format!("{released} nodes received of as many sent, got {stolen}"));
        }
        let expected = published?;
        let mut parts = Vec::new();
        let mut compare = |name, expected: Option<u64>, found| match expected {
            Some(expected) if expected != found => parts.push(format!("{name} {expected}")),
            _ => {}
        };
        compare("nodes", Some(expected.nodes), self.nodes);
        compare("depth", expected.depth, self.depth);
        compare("leaves", expected.leaves, self.leaves);
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(nodes: u64, depth: u64) -> RankStatistics {
        RankStatistics {
            counts: Counts { nodes, leaves: 2, depth, most_open: 1 },
            traffic: Traffic { nodes_released: 5, nodes_stolen: 5, ..Traffic::default() },
            working: 0.5,
            waiting: 0.25,
        }
    }

    #[test]
    fn words_are_statistics() {
        let mut words = [0; RankStatistics::WORDS];
        for (number, word) in words.iter_mut().enumerate() {
            *word = number as u64;
        }
        assert_eq!(RankStatistics::from_words(words).to_words(), words);
        assert_eq!(RankStatistics::from_words(rank(7, 3).to_words()), rank(7, 3));
    }

    #[test]
    fn totals_are_compared_with_what_was_published() {
        let totals = Totals::new(&[rank(7, 3), rank(3, 9)]);
        assert_eq!((totals.nodes, totals.depth, totals.leaves), (10, 9, 4));
        assert_eq!(totals.leaf_percentage(), 40.0);
        let published = |depth, leaves| Some(Published { nodes: 10, depth, leaves });
        assert_eq!(totals.differs_from(published(Some(9), None)), None);
        assert_eq!(totals.differs_from(None), None);
        let difference = totals.differs_from(published(Some(8), Some(5)));
        assert_eq!(difference.as_deref(), Some("depth 8, leaves 5"));

        let lost = Traffic { nodes_stolen: 4, nodes_released: 5, ..Traffic::default() };
        let totals = Totals::new(&[RankStatistics { traffic: lost, ..rank(10, 9) }]);
        assert!(totals.differs_from(None).is_some());
    }
}
