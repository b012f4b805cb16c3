//! What each rank did, collected on rank 0.

use crate::{frontier::Counts, machine::Traffic, named::Published};
use mpi::{topology::SimpleCommunicator, traits::*};

/// The state of a rank: the categories of the benchmark's paper of 2006.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It looks at nodes.
    Working,
    /// It has work, and gives some to others or answers their requests.
    Overhead,
    /// It has no work, and is about to get some or waits for the answer to a request.
    Searching,
    /// It has no work, and does nothing until it is given some or the search has ended.
    Idle,
}

/// Seconds in each state, whether or not the rank had a processor, and how often it entered the
/// state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Seconds: in [`State::Working`] and the others in their order.
    pub seconds: [f64; 4],
    /// Times that it entered the state.
    pub sessions: [u64; 4],
}

/// Measures a rank's [`Times`].
#[derive(Clone, Debug)]
pub struct Clock {
    times: Times,
    state: State,
    since: f64,
}

impl Clock {
    /// Starts in this state.
    #[must_use]
    pub fn start(state: State) -> Self {
        let mut times = Times::default();
        times.sessions[state as usize] = 1;
        Self { times, state, since: mpi::time() }
    }

    /// Enters this state; costs nothing if it is the current one.
    #[inline]
    pub fn enter(&mut self, state: State) {
        if state != self.state {
            self.change(state);
        }
    }

    fn change(&mut self, state: State) {
        let before = std::mem::replace(&mut self.since, mpi::time());
        self.times.seconds[self.state as usize] += self.since - before;
        self.times.sessions[state as usize] += 1;
        self.state = state;
    }

    /// The times until now.
    #[must_use]
    pub fn stop(mut self) -> Times {
        self.change(self.state);
        self.times.sessions[self.state as usize] -= 1;
        self.times
    }
}

/// What one rank found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankStatistics {
    /// The nodes that it looked at.
    pub counts: Counts,
    /// The work that it gave and took.
    pub traffic: Traffic,
    /// Where its time went.
    pub times: Times,
}

impl RankStatistics {
    /// Number of words in a message.
    pub const WORDS: usize = 23;

    /// Encodes the statistics as numbers.
    #[must_use]
    pub fn to_words(self) -> [u64; Self::WORDS] {
        let Counts { nodes, leaves, depth, most_open, left } = self.counts;
        let it = self.traffic;
        let [a, b, c, d] = self.times.seconds.map(f64::to_bits);
        let [e, f, g, h] = self.times.sessions;
        [
            nodes,
            leaves,
            depth,
            most_open,
            left,
            it.steals,
            it.acquired,
            it.failed_steals,
            it.releases,
            it.nodes_stolen,
            it.nodes_released,
            it.put,
            it.got,
            it.prefetches,
            it.prefetched,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ]
    }

    /// Decodes statistics from numbers.
    #[must_use]
    pub fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [
            nodes,
            leaves,
            depth,
            most_open,
            left,
            steals,
            acquired,
            failed_steals,
            releases,
            nodes_stolen,
            nodes_released,
            put,
            got,
            prefetches,
            prefetched,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ] = words;
        Self {
            counts: Counts { nodes, leaves, depth, most_open, left },
            traffic: Traffic {
                steals,
                acquired,
                failed_steals,
                releases,
                nodes_stolen,
                nodes_released,
                put,
                got,
                prefetches,
                prefetched,
            },
            times: Times { seconds: [a, b, c, d].map(f64::from_bits), sessions: [e, f, g, h] },
        }
    }
}

/// Collects the statistics of all ranks on rank 0, in rank order. All ranks must call it; the
/// others get `None`.
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
    /// Number of nodes, including the root.
    pub nodes: u64,
    /// Depth of the deepest node; the root's is 0.
    pub depth: u64,
    /// Number of nodes without children.
    pub leaves: u64,
    /// Open nodes that were abandoned at the limit: if there are some, the tree is incomplete.
    pub left: u64,
    /// For the released chunks: their number, their open nodes, the sum of their identities.
    put: [u64; 3],
    /// The same for the received chunks.
    got: [u64; 3],
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
            left: sum(|it| it.counts.left),
            put: ranks.iter().fold([0; 3], |[chunks, nodes, identities], it| {
                let it = it.traffic;
                let identities = identities.wrapping_add(it.put);
                [chunks + it.releases, nodes + it.nodes_released, identities]
            }),
            got: ranks.iter().fold([0; 3], |[chunks, nodes, identities], it| {
                let it = it.traffic;
                let identities = identities.wrapping_add(it.got);
                [chunks + it.steals + it.acquired, nodes + it.nodes_stolen, identities]
            }),
        }
    }

    /// Leaves per hundred nodes.
    #[must_use]
    pub fn leaf_percentage(&self) -> f64 {
        100.0 * self.leaves as f64 / self.nodes as f64
    }

    /// What is wrong with the tree that was found, if anything: it differs from the published one,
    /// or nodes were lost between ranks.
    #[must_use]
    pub fn differs_from(&self, published: Option<Published>) -> Option<String> {
        let ([chunks, nodes, _], [got_chunks, got_nodes, _]) = (self.put, self.got);
        if (chunks, nodes) != (got_chunks, got_nodes) {
            return Some(format!(
                "that chunks are got as often as put: {chunks} with {nodes} nodes were put, \
                 {got_chunks} with {got_nodes} got"
            ));
        }
        if self.put != self.got {
            return Some(format!("that every chunk put is got once: of {chunks} some were not"));
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
    use crate::{frontier::Branch, rng};
    use rng::State;

    fn rank(nodes: u64, depth: u64) -> RankStatistics {
        RankStatistics {
            counts: Counts { nodes, leaves: 2, depth, most_open: 1, left: 0 },
            traffic: Traffic { nodes_released: 5, nodes_stolen: 5, ..Traffic::default() },
            times: Times { seconds: [0.5, 0.0, 0.25, 1.0], sessions: [1, 2, 3, 4] },
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

        // One chunk lost, another of the same size got twice.
        let branch = |next| Branch { state: State::root(next), depth: 1, next, end: next + 4 };
        let (mut giver, mut thief) = (Traffic::default(), Traffic::default());
        [1, 2].into_iter().for_each(|it| giver.note_put(&[branch(it)]));
        [1, 1].into_iter().for_each(|it| thief.note_got(&[branch(it)]));
        let ranks = [giver, thief].map(|traffic| RankStatistics { traffic, ..rank(10, 9) });
        let wrong = Totals::new(&ranks).differs_from(None).expect("must be noticed");
        assert_eq!(wrong, "that every chunk put is got once: of 2 some were not");
    }
}
