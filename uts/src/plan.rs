//! The plan of a search: its algorithm, how it detects the end, and when ranks share work.

use crate::termination::Termination;
use thiserror::Error;

/// A parallel algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Work stealing, with parameters ([`crate::searcher`]).
    Steal,
    /// Work sharing with a manager ([`crate::sharing`]).
    Share,
    /// Work stealing as in the paper of 2007 ([`crate::searcher`]).
    Steal2007,
    /// Two levels, one-sided, as in the paper of 2012 ([`crate::hierarchical`]).
    Hierarchical,
    /// Steal stacks in shared memory, as in the paper of 2006 ([`crate::shared_2006`]).
    Shared2006,
    /// The tree's top is distributed once; nothing is sent ([`crate::fixed`]).
    Static,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 6] = [
        Self::Steal,
        Self::Share,
        Self::Steal2007,
        Self::Hierarchical,
        Self::Shared2006,
        Self::Static,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Steal => "steal",
            Self::Share => "share",
            Self::Steal2007 => "steal-2007",
            Self::Hierarchical => "hierarchical",
            Self::Shared2006 => "shared-2006",
            Self::Static => "static",
        }
    }

    /// How it can detect its end, the default first.
    #[must_use]
    pub fn terminations(self) -> &'static [Termination] {
        use Termination::{Counting, DijkstraScholten, Quiescence, Token};
        match self {
            Self::Steal => &[DijkstraScholten, Token, Counting, Quiescence],
            Self::Steal2007 => &[Token, DijkstraScholten, Counting, Quiescence],
            Self::Share | Self::Hierarchical | Self::Shared2006 => &[Counting],
            Self::Static => &[Quiescence],
        }
    }

    /// Why it cannot detect its end otherwise.
    fn why_not(self) -> &'static str {
        match self {
            Self::Steal | Self::Steal2007 => "it can",
            Self::Share => "its manager sees every chunk and counts who waits",
            Self::Hierarchical => {
                "its ranks send no messages that could be receipted; they count at two barriers"
            }
            Self::Shared2006 => {
                "its ranks send no messages that could be receipted; they count at a barrier"
            }
            Self::Static => "its ranks give no work away; it ends with a barrier of the runtime",
        }
    }

    /// Its default parameters.
    #[must_use]
    pub fn defaults(self) -> Sharing {
        let lifelines = Sharing::default();
        let paper = Sharing {
            chunk: 20,
            interval: Interval::Fixed(512),
            victims: Victims::RoundRobin,
            amount: Amount::Chunk,
            ..lifelines
        };
        match self {
            Self::Steal | Self::Static => lifelines,
            Self::Steal2007 => Sharing { one_at_a_look: true, ..paper },
            Self::Share => Sharing { interval: Interval::Fixed(2048), ..paper },
            Self::Shared2006 => Sharing { interval: Interval::Fixed(1024), ..paper },
            // Its paper names none.
            Self::Hierarchical => Sharing { chunk: 24, interval: Interval::Fixed(1024), ..paper },
        }
    }
}

/// Which ranks a rank without work asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Victims {
    /// One after another.
    RoundRobin,
    /// Random ones.
    Random,
    /// The one that gave work last, then one after another.
    Last,
    /// A few random ones; then it waits for neighbours that get work.
    Lifelines,
}

impl Victims {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Lifelines, Self::RoundRobin, Self::Random, Self::Last];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
            Self::Last => "last",
            Self::Lifelines => "lifelines",
        }
    }
}

/// How much is given to a rank that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// The oldest chunk, if there are more than two.
    Chunk,
    /// If there are two chunks, as much as is kept: the work is dealt among all ranks that ask.
    Half,
}

impl Amount {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Half, Self::Chunk];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Half => "half",
        }
    }
}

/// Nodes that a rank looks at between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interval {
    /// A fixed number, at least 1. Nodes are looked at sixteen at a time.
    Fixed(u64),
    /// Few after a message, more after each poll that found none. The growth and the limit are those of the authors'
    /// program, times the sixteen nodes that are looked at together here.
    Adaptive,
}

impl Interval {
    const LEAST: u64 = 16;
    const GROWTH: u64 = 4 * Self::LEAST;
    const MOST: u64 = 1024 * Self::LEAST;

    /// The interval at the start and after a message.
    #[must_use]
    pub fn first(self) -> u64 {
        match self {
            Self::Fixed(nodes) => nodes,
            Self::Adaptive => Self::LEAST,
        }
    }

    /// The interval, limited to this many nodes.
    #[must_use]
    pub fn at_most(self, nodes: u64) -> Self {
        match self {
            Self::Fixed(interval) => Self::Fixed(interval.min(nodes)),
            Self::Adaptive if nodes < Self::MOST => Self::Fixed(nodes),
            Self::Adaptive => self,
        }
    }

    /// The interval after one without messages.
    #[must_use]
    pub fn next(self, last: u64) -> u64 {
        match self {
            Self::Fixed(nodes) => nodes,
            Self::Adaptive => (last + Self::GROWTH).min(Self::MOST),
        }
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(nodes) => write!(f, "{nodes}"),
            Self::Adaptive => f.write_str("adaptive"),
        }
    }
}

/// When a rank without work looks for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asks {
    /// At once, like a process that has a processor for itself.
    AtOnce,
    /// When its PE has nothing else to do. Few ranks have work then, so a rank that asks all the others one after
    /// another begins with the one that gave work last.
    WhenIdle,
}

impl Asks {
    /// All values.
    pub const ALL: [Self; 2] = [Self::WhenIdle, Self::AtOnce];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::WhenIdle => "when-idle",
        }
    }
}

/// When and how ranks share work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Nodes in a chunk: the least number that a rank keeps and gives; at least 1.
    pub chunk: u64,
    /// Nodes between two polls, or between two releases.
    pub interval: Interval,
    /// Number of random ranks that a rank without work asks before it waits.
    pub tries: u32,
    /// Which ranks a rank without work asks.
    pub victims: Victims,
    /// How much it gets.
    pub amount: Amount,
    /// A rank with work answers only one request per poll.
    pub one_at_a_look: bool,
    /// When a rank without work looks for some.
    pub asks: Asks,
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            chunk: 32,
            interval: Interval::Fixed(2048),
            tries: 2,
            victims: Victims::Lifelines,
            amount: Amount::Half,
            one_at_a_look: false,
            asks: Asks::AtOnce,
        }
    }
}

/// Everything that ranks must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How it detects the end.
    pub termination: Termination,
    /// When ranks share work.
    pub sharing: Sharing,
    /// All ranks stop after they have looked at about this many nodes together: not at fewer, if the tree has as many,
    /// and possibly a few intervals of each rank later. (Simulations continue.)
    pub limit: Option<u64>,
}

impl Default for Plan {
    fn default() -> Self {
        Self::of(Algorithm::Steal)
    }
}

/// Why a plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The algorithm cannot detect its end this way.
    #[error(
        "algorithm {algorithm} with termination {termination}: {why}; with {algorithm} there \
         {} {allowed}", if allowed.contains(',') { "are" } else { "is" }
    )]
    Termination {
        /// The algorithm.
        algorithm: &'static str,
        /// The requested termination.
        termination: &'static str,
        /// The reason.
        why: &'static str,
        /// The allowed terminations.
        allowed: String,
    },
    /// There are too few ranks.
    #[error("algorithm share on 1 rank: allowed are 2 or more, one of which is the manager")]
    ManagerAlone,
    /// A chunk does not fit.
    #[error(
        "chunk {0} with algorithm {1}: allowed is 1 to {MOST_IN_WINDOW}, so that windows hold it"
    )]
    Chunk(u64, &'static str),
}

/// The most nodes in a chunk for algorithms whose chunks are in windows.
pub const MOST_IN_WINDOW: u64 = 1024;

impl Plan {
    /// The algorithm with its defaults.
    #[must_use]
    pub fn of(algorithm: Algorithm) -> Self {
        let termination = algorithm.terminations()[0];
        Self { algorithm, termination, sharing: algorithm.defaults(), limit: None }
    }

    /// Checks that the plan is valid for this many ranks.
    ///
    /// # Errors
    ///
    /// If it is invalid, with the reason.
    pub fn check(&self, ranks: usize) -> Result<(), PlanError> {
        let Self { algorithm, termination, sharing, .. } = *self;
        let allowed = algorithm.terminations();
        if !allowed.contains(&termination) {
            let names: Vec<&str> = allowed.iter().map(|it| it.name()).collect();
            return Err(PlanError::Termination {
                algorithm: algorithm.name(),
                termination: termination.name(),
                why: algorithm.why_not(),
                allowed: names.join(", "),
            });
        }
        if algorithm == Algorithm::Share && ranks < 2 {
            return Err(PlanError::ManagerAlone);
        }
        let windows = matches!(algorithm, Algorithm::Hierarchical | Algorithm::Shared2006);
        if windows && !(1..=MOST_IN_WINDOW).contains(&sharing.chunk) {
            return Err(PlanError::Chunk(sharing.chunk, algorithm.name()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_with_its_defaults_is_a_search() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Plan::of(algorithm).check(2), Ok(()), "{}", algorithm.name());
        }
    }

    #[test]
    fn what_makes_no_search_is_refused_with_a_reason() {
        let token = Plan { termination: Termination::Token, ..Plan::of(Algorithm::Share) };
        let text = token.check(4).expect_err("refused").to_string();
        let expected = "algorithm share with termination token: its manager sees every chunk and \
                        counts who waits; with share there is counting";
        assert_eq!(text, expected);
        assert_eq!(Plan::of(Algorithm::Share).check(1), Err(PlanError::ManagerAlone));
        let shared = Plan::of(Algorithm::Shared2006);
        let sharing = Sharing { chunk: 5000, ..shared.sharing };
        let text = Plan { sharing, ..shared }.check(1).expect_err("refused").to_string();
        assert!(text.starts_with("chunk 5000 with algorithm shared-2006: allowed is 1 to 1024"));
    }

    #[test]
    fn adaptive_intervals_grow_until_a_message_comes() {
        let adaptive = Interval::Adaptive;
        let mut interval = adaptive.first();
        assert_eq!(adaptive.next(interval), 80);
        for _ in 0..1000 {
            interval = adaptive.next(interval);
        }
        assert_eq!(interval, 16_384);
        assert_eq!(Interval::Fixed(7).next(7), 7);
    }

    #[test]
    fn intervals_can_be_bounded() {
        assert_eq!(Interval::Fixed(512).at_most(100), Interval::Fixed(100));
        assert_eq!(Interval::Fixed(512).at_most(1000), Interval::Fixed(512));
        assert_eq!(Interval::Adaptive.at_most(100), Interval::Fixed(100));
        assert_eq!(Interval::Adaptive.at_most(1 << 16), Interval::Adaptive);
    }
}
