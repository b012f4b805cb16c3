//! Defines a tree: its parameters, and the number of children of each node.
//!
//! | kind | children of a node |
//! |---|---|
//! | binomial | the root: `b0`; any other: `m` with probability `q`, otherwise none |
//! | geometric | geometrically distributed; the mean `b` depends on the depth: see [`Shape`] |
//! | hybrid | geometric above depth `f d`, binomial below |
//! | balanced | `b0` above depth `d`, none below |
//!
//! The rules and their rounding are those of the UTS benchmark 2.1, so that trees are the same node
//! for node. [`Tree`] turns them into a table per depth when it is made; afterwards a node costs a
//! comparison or a look-up, and no logarithm.

use crate::{
    lanes::REVERSED,
    rng::RANDOM_VALUES,
    thresholds::{MAX_CHILDREN, Summary, Thresholds, children_by_formula},
};
use std::fmt;
use thiserror::Error;

/// How the number of children of a node is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `m` children with probability `q`, otherwise none.
    Binomial,
    /// A geometric distribution whose mean follows the [`Shape`].
    Geometric,
    /// Geometric at the top, binomial at the bottom.
    Hybrid,
    /// The same number everywhere.
    Balanced,
}

/// How the mean number of children `b` of a geometric tree depends on the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `b = b0 (1 - depth / d)`.
    Linear,
    /// `b = b0 depth^(-ln b0 / ln d)`: 1 at depth `d`, and the tree does not end there.
    ExponentialDecrease,
    /// `b = b0^sin(2 pi depth / d)` down to depth `5 d`, then 0.
    Cyclic,
    /// `b = b0` above depth `d`, then 0.
    Fixed,
}

/// The parameters of a tree. The benchmark's letters are given in parentheses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Kind of tree (`t`).
    pub kind: Kind,
    /// Children of the root, or mean of them (`b`).
    pub branching: f64,
    /// Seed of the root, below 2^31 (`r`).
    pub seed: u32,
    /// Shape, for geometric and hybrid trees (`a`).
    pub shape: Shape,
    /// Depth at which a geometric, hybrid or balanced tree ends or changes (`d`).
    pub depth: u32,
    /// Probability that a node of a binomial or hybrid tree has children (`q`).
    pub probability: f64,
    /// The number of children of such a node (`m`).
    pub children: u32,
    /// Part of the depth `d` of a hybrid tree that is geometric (`f`).
    pub shift: f64,
    /// How often each node is recomputed, to make it more expensive; the tree does not change (`g`).
    pub granularity: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Parameters {
    /// The benchmark's own defaults.
    pub const DEFAULT: Self = Self {
        kind: Kind::Geometric,
        branching: 4.0,
        seed: 0,
        shape: Shape::Linear,
        depth: 6,
        probability: 15.0 / 64.0,
        children: 4,
        shift: 0.5,
        granularity: 1,
    };

    /// Mean number of children that the shape gives nodes at `depth`.
    #[must_use]
    pub fn mean_children(&self, depth: u32) -> f64 {
        let (b0, i, d) = (self.branching, f64::from(depth), f64::from(self.depth));
        if depth == 0 {
            return b0;
        }
        match self.shape {
            Shape::Linear => b0 * (1.0 - i / d),
            Shape::ExponentialDecrease => b0 * i.powf(-b0.ln() / d.ln()),
            Shape::Cyclic if u64::from(depth) > 5 * u64::from(self.depth) => 0.0,
            // The benchmark's own digits of pi, and its order of operations.
            #[expect(clippy::approx_constant, reason = "trees depend on the last bit")]
            Shape::Cyclic => b0.powf((2.0 * 3.141_592_653_589_793 * i / d).sin()),
            Shape::Fixed => {
                if depth < self.depth {
                    b0
                } else {
                    0.0
                }
            }
        }
    }

    /// First depth from which on all depths have the same rule, if there is one.
    fn last_change(&self) -> Option<u64> {
        let depth = u64::from(self.depth);
        match (self.kind, self.shape) {
            (Kind::Binomial, _) => Some(1),
            (Kind::Hybrid, _) => Some(1.max(self.binomial_start())),
            (Kind::Balanced, _) | (Kind::Geometric, Shape::Linear | Shape::Fixed) => Some(depth),
            (Kind::Geometric, Shape::Cyclic) => Some(5 * depth + 1),
            (Kind::Geometric, Shape::ExponentialDecrease) => None,
        }
    }

    /// First depth at which nodes of a hybrid tree follow the binomial rule: `depth < f d`, with
    /// the product in floating point, holds above it.
    fn binomial_start(&self) -> u64 {
        (self.shift * f64::from(self.depth)).ceil() as u64
    }

    fn rule(&self, depth: u32) -> Rule {
        let geometric = Rule::Geometric(self.mean_children(depth));
        let binomial = Rule::Below {
            below: (self.probability * f64::from(RANDOM_VALUES)).ceil() as u32,
            children: self.children.min(MAX_CHILDREN),
        };
        match self.kind {
            Kind::Binomial if depth == 0 => Rule::Always(self.branching as u32),
            Kind::Binomial => binomial,
            Kind::Geometric => geometric,
            Kind::Hybrid if u64::from(depth) < self.binomial_start() => geometric,
            Kind::Hybrid if depth == 0 => Rule::Always((self.branching as u32).min(MAX_CHILDREN)),
            Kind::Hybrid => binomial,
            Kind::Balanced if depth < self.depth => Rule::Always(self.branching as u32),
            Kind::Balanced => Rule::Always(0),
        }
    }

    /// Whether the tree may be infinite: its nodes have one child or more on average, however deep they are. Some of
    /// the named trees are of this kind, and end by luck.
    #[must_use]
    pub fn may_be_endless(&self) -> bool {
        let children = self.children.min(MAX_CHILDREN);
        matches!(self.kind, Kind::Binomial | Kind::Hybrid)
            && self.probability * f64::from(children) >= 1.0
    }

    fn check(&self) -> Result<(), ParameterError> {
        let refuse = |name, value: f64, allowed| Err(ParameterError { name, value, allowed });
        let geometric = matches!(self.kind, Kind::Geometric | Kind::Hybrid);
        let b0 = self.branching;
        if !(0.0..=f64::from(i32::MAX)).contains(&b0) {
            return refuse("root branching factor", b0, "0 to 2147483647");
        }
        if self.seed >= RANDOM_VALUES {
            return refuse("seed", self.seed.into(), "0 to 2147483647");
        }
        if self.depth > i32::MAX as u32 {
            return refuse("depth", self.depth.into(), "at most 2147483647");
        }
        if self.granularity == 0 {
            return refuse("granularity", 0.0, "1 or more");
        }
        if geometric && b0 == 0.0 {
            return refuse("root branching factor", b0, "above 0 in a geometric tree");
        }
        if geometric && self.depth == 0 {
            return refuse("depth", 0.0, "1 or more in a geometric tree");
        }
        if geometric && self.shape == Shape::ExponentialDecrease {
            if b0 < 1.0 {
                return refuse("root branching factor", b0, "1 or more with exponential decrease");
            }
            if self.depth < 2 {
                return refuse("depth", self.depth.into(), "2 or more with exponential decrease");
            }
        }
        if !(0.0..=1.0).contains(&self.probability) {
            return refuse("probability", self.probability, "0 to 1");
        }
        if !(self.shift.is_finite() && self.shift >= 0.0) {
            return refuse("shift", self.shift, "0 or more");
        }
        Ok(())
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, branching, seed, shape, depth, probability, children, .. } = *self;
        let shape = match shape {
            Shape::Linear => "linear",
            Shape::ExponentialDecrease => "exponential decrease",
            Shape::Cyclic => "cyclic",
            Shape::Fixed => "fixed",
        };
        match kind {
            Kind::Binomial => write!(f, "binomial, b0 {branching}, q {probability}, m {children}")?,
            Kind::Geometric => write!(f, "geometric, {shape}, b0 {branching}, d {depth}")?,
            Kind::Hybrid => {
                write!(f, "hybrid, {shape}, b0 {branching}, d {depth}, q {probability}")?;
                write!(f, ", m {children}, f {}", self.shift)?;
            }
            Kind::Balanced => write!(f, "balanced, b0 {branching}, d {depth}")?,
        }
        write!(f, ", seed {seed}")?;
        if self.granularity > 1 {
            write!(f, ", granularity {}", self.granularity)?;
        }
        Ok(())
    }
}

/// A parameter has an invalid value.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{name} {value}: allowed is {allowed}")]
pub struct ParameterError {
    name: &'static str,
    value: f64,
    allowed: &'static str,
}

/// How the number of children at one depth follows from a node's random number.
#[derive(Clone, Debug)]
enum Rule {
    /// Always this many.
    Always(u32),
    /// `children` if the random number is below `below`, otherwise none.
    Below { below: u32, children: u32 },
    /// A geometric distribution with this mean, computed.
    Geometric(f64),
    /// A geometric distribution, tabulated.
    Table(Thresholds),
}

impl Rule {
    fn children(&self, random: u32) -> u32 {
        match self {
            Self::Always(children) => *children,
            Self::Below { below, children } if random < *below => *children,
            Self::Below { .. } => 0,
            Self::Geometric(mean) => children_by_formula(*mean, random).min(MAX_CHILDREN),
            Self::Table(table) => table.children(random),
        }
    }

    fn tabulated(self) -> Self {
        match self {
            Self::Geometric(mean) => Self::Table(Thresholds::new(mean)),
            other => other,
        }
    }

    /// The random numbers of nodes with children, as in [`Messages::least`](crate::lanes::Messages::least).
    fn least(&self) -> u32 {
        match self {
            Self::Always(0) => NEVER,
            Self::Always(_) | Self::Geometric(_) | Self::Below { below: RANDOM_VALUES.., .. } => 0,
            Self::Below { below: 0, .. } | Self::Below { children: 0, .. } => NEVER,
            Self::Below { below, .. } => REVERSED | (RANDOM_VALUES - below),
            Self::Table(table) => table.first().unwrap_or(NEVER),
        }
    }

    fn summary(&self) -> Summary {
        Summary::new(|random| self.children(random))
    }
}

/// As a least random number for children: no node has any. (Only the largest number passes; then [`Tree::children`]
/// decides.)
const NEVER: u32 = RANDOM_VALUES - 1;

/// The most depths whose rules are stored. For deeper ones, rules are computed for each node.
const MAX_RULES: u64 = 1024;

/// A tree: its parameters, prepared for searching.
///
/// It is immutable, so that all ranks of a process share one.
#[derive(Clone, Debug)]
pub struct Tree {
    parameters: Parameters,
    /// The rules of depths 0, 1, 2, ... If `repeats`, the last one applies to all greater depths as well.
    rules: Vec<Rule>,
    repeats: bool,
    /// For each of `rules`, and one for the depths without a rule, what the upper bits of the random number determine.
    /// This suffices for most nodes.
    summaries: Vec<Summary>,
    /// The same for [`Messages::least`](crate::lanes::Messages::least); without a rule, any node may have children.
    least: Vec<u32>,
}

impl Tree {
    /// Checks the parameters and builds the tables.
    ///
    /// # Errors
    ///
    /// If the parameters are invalid.
    pub fn new(parameters: Parameters) -> Result<Self, ParameterError> {
        parameters.check()?;
        let last = parameters.last_change().unwrap_or(u64::MAX);
        let repeats = last < MAX_RULES;
        // `MAX_RULES` fits.
        let depths = if repeats { last as u32 + 1 } else { MAX_RULES as u32 };
        let rules: Vec<Rule> = (0..depths).map(|it| parameters.rule(it).tabulated()).collect();
        let mut summaries: Vec<Summary> = rules.iter().map(Rule::summary).collect();
        let mut least: Vec<u32> = rules.iter().map(Rule::least).collect();
        if !repeats {
            summaries.push(Summary::NOTHING);
            least.push(0);
        }
        Ok(Self { parameters, rules, repeats, summaries, least })
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Which nodes of a depth may have children, as [`Messages::least`](crate::lanes::Messages::least).
    #[inline]
    #[must_use]
    pub fn least(&self, depth: u32) -> u32 {
        self.least[(depth as usize).min(self.least.len() - 1)]
    }

    /// Number of children of a node.
    #[inline]
    #[must_use]
    pub fn children(&self, depth: u32, random: u32) -> u32 {
        let depth = depth as usize;
        let summary = &self.summaries[depth.min(self.summaries.len() - 1)];
        summary.children(random).unwrap_or_else(|| self.children_in_full(depth, random))
    }

    #[cold]
    #[inline(never)]
    fn children_in_full(&self, depth: usize, random: u32) -> u32 {
        let last = self.rules.len() - 1;
        match self.rules.get(if self.repeats { depth.min(last) } else { depth }) {
            Some(rule) => rule.children(random),
            // Depths are `u32`s.
            None => self.parameters.rule(depth as u32).children(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::NAMED;

    fn refusal(parameters: Parameters) -> String {
        Tree::new(parameters).expect_err("must be refused").to_string()
    }

    #[test]
    fn refuses_what_makes_no_tree() {
        let default = Parameters::default;
        let cases = [
            (Parameters { seed: 1 << 31, ..default() }, "seed 2147483648: allowed is 0 to"),
            (Parameters { depth: 0, ..default() }, "depth 0: allowed is 1 or more"),
            (Parameters { branching: 0.0, ..default() }, "root branching factor 0: allowed is"),
            (Parameters { branching: f64::NAN, ..default() }, "root branching factor NaN"),
            (Parameters { branching: -1.0, ..default() }, "root branching factor -1"),
            (Parameters { granularity: 0, ..default() }, "granularity 0: allowed is 1 or more"),
            (Parameters { probability: 1.5, ..default() }, "probability 1.5: allowed is 0 to 1"),
            (Parameters { shift: f64::INFINITY, ..default() }, "shift inf: allowed is 0 or more"),
            (
                Parameters { shape: Shape::ExponentialDecrease, depth: 1, ..default() },
                "depth 1: allowed is 2 or more",
            ),
            (
                Parameters { shape: Shape::ExponentialDecrease, branching: 0.5, ..default() },
                "root branching factor 0.5: allowed is 1 or more",
            ),
        ];
        for (parameters, expected) in cases {
            let text = refusal(parameters);
            assert!(text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn every_kind_has_its_rules_at_every_depth() {
        let most = RANDOM_VALUES - 1;
        let tree = |parameters| Tree::new(parameters).expect("a sound tree");
        let default = Parameters::default;

        let binomial = tree(Parameters { kind: Kind::Binomial, branching: 7.9, ..default() });
        assert_eq!(binomial.children(0, most), 7);
        let below = (15_u64 << 31) / 64;
        assert_eq!([below - 1, below].map(|it| binomial.children(1, it as u32)), [4, 0]);
        assert_eq!(binomial.children(1_000_000, 0), 4);

        let fixed = tree(Parameters { shape: Shape::Fixed, depth: 3000, ..default() });
        for depth in [0, 1, 1023, 1024, 2999] {
            assert_eq!(fixed.children(depth, most), 96, "depth {depth}");
        }
        assert_eq!(fixed.children(3000, most), 0);

        let balanced = tree(Parameters { kind: Kind::Balanced, branching: 200.5, ..default() });
        assert_eq!([0, 5, 6, 7].map(|depth| balanced.children(depth, 0)), [200, 200, 0, 0]);

        let hybrid = tree(Parameters { kind: Kind::Hybrid, depth: 5, ..default() });
        assert!(hybrid.children(2, most) > 4);
        assert_eq!([3, 4, 9].map(|depth| hybrid.children(depth, 0)), [4; 3]);
        let hybrid = Parameters { kind: Kind::Hybrid, shift: 0.0, branching: 2000.0, ..default() };
        assert_eq!(tree(hybrid).children(0, 0), MAX_CHILDREN);
    }

    #[test]
    fn who_has_children_is_told_without_their_number() {
        let extremes = [0.0, 1.0, 1e-12].map(|probability| Parameters {
            kind: Kind::Binomial,
            probability,
            ..Parameters::default()
        });
        let deep = Parameters { shape: Shape::Fixed, depth: 3000, ..Parameters::default() };
        let trees = NAMED.iter().map(|it| it.parameters).chain(extremes).chain([deep]);
        for tree in trees.map(|it| Tree::new(it).expect("sound")) {
            for depth in (0..40).chain([1023, 1024, 2999, 3000, 100_000]) {
                let least = tree.least(depth);
                let edge = match least & REVERSED {
                    0 => least,
                    _ => RANDOM_VALUES - 1 - (least - REVERSED),
                };
                let near = (edge.saturating_sub(2)..edge + 3).map(|it| it.min(RANDOM_VALUES - 1));
                let spread = (0..1000_u32).map(|it| it.wrapping_mul(2_654_435_761) % RANDOM_VALUES);
                for random in near.chain(spread).chain([0, RANDOM_VALUES - 1]) {
                    let may_have = match least & REVERSED {
                        0 => random >= least,
                        _ => RANDOM_VALUES - 1 - random >= least - REVERSED,
                    };
                    let children = tree.children(depth, random);
                    assert!(may_have || children == 0, "depth {depth}, random number {random}");
                    let known = depth < 1024 && least != NEVER;
                    assert!(!known || !may_have || children > 0, "depth {depth}, {random}");
                }
            }
        }
    }

    #[test]
    fn binomial_trees_may_be_endless() {
        let binomial = |probability, children| {
            let kind = Kind::Binomial;
            Parameters { kind, probability, children, ..Parameters::default() }.may_be_endless()
        };
        assert!(binomial(0.200_014, 5) && binomial(0.01, 200));
        assert!(!binomial(0.124_875, 8) && !binomial(0.009, 200));
        assert!(!Parameters { probability: 1.0, ..Parameters::default() }.may_be_endless());
    }

    #[test]
    fn cyclic_trees_end_one_level_after_five_cycles() {
        let parameters = Parameters { shape: Shape::Cyclic, depth: 4, ..Parameters::default() };
        let tree = Tree::new(parameters).expect("a sound tree");
        assert!(tree.children(20, RANDOM_VALUES - 1) > 0);
        assert_eq!(tree.children(21, RANDOM_VALUES - 1), 0);
    }
}
