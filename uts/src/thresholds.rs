//! The geometric distribution without a logarithm per node.
//!
//! The benchmark's formula for a node with random number `h` is `floor(ln(1 - h / 2^31) / ln(1 -
//! p))`, where `p = 1 / (1 + mean)`, capped at [`MAX_CHILDREN`]. It is a non-decreasing step
//! function of `h`, so a table of the `h` at which it steps is equivalent. [`Thresholds`] finds
//! these with the formula itself, in the same floating-point arithmetic, and therefore agrees with
//! it for every `h`.

use crate::rng::RANDOM_VALUES;

/// No node has more children, except the root of a binomial tree and the nodes of a balanced one.
pub const MAX_CHILDREN: u32 = 100;

/// Numbers of children by random number, for one mean: `starts[k]` is the first random number
/// that means more than `k` children.
#[derive(Clone, Debug)]
pub struct Thresholds {
    starts: Vec<u32>,
}

impl Thresholds {
    /// The table for geometrically distributed numbers of children with this mean.
    #[must_use]
    pub fn new(mean: f64) -> Self {
        Self { starts: steps(mean) }
    }

    /// The first random number of a node with children, if there is one.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.starts.first().copied()
    }

    /// Children of a node with this random number.
    #[must_use]
    pub fn children(&self, random: u32) -> u32 {
        // At most `MAX_CHILDREN`.
        self.starts.partition_point(|&start| start <= random) as u32
    }
}

const BUCKETS: usize = 1024;
const BUCKET_SHIFT: u32 = RANDOM_VALUES.trailing_zeros() - BUCKETS.trailing_zeros();

/// In a [`Summary`]: the upper bits do not determine it.
const UNKNOWN: u8 = u8::MAX;

/// What the upper ten bits of a random number determine about the number of children.
#[derive(Clone, Debug)]
pub struct Summary([u8; BUCKETS]);

impl Summary {
    /// Determines nothing.
    pub const NOTHING: Self = Self([UNKNOWN; BUCKETS]);

    /// The summary of `children`, a monotonic function of the random number.
    #[must_use]
    pub fn new(children: impl Fn(u32) -> u32) -> Self {
        let mut this = Self::NOTHING;
        for (number, bucket) in this.0.iter_mut().enumerate() {
            let first = (number as u32) << BUCKET_SHIFT;
            let number = children(first);
            if number == children(first + ((1 << BUCKET_SHIFT) - 1)) {
                *bucket = u8::try_from(number).unwrap_or(UNKNOWN);
            }
        }
        this
    }

    /// The number of children, if the upper bits of the random number (below 2^31) determine it.
    #[inline]
    #[must_use]
    pub fn children(&self, random: u32) -> Option<u32> {
        let bucket = self.0[(random >> BUCKET_SHIFT) as usize % BUCKETS];
        (bucket != UNKNOWN).then_some(bucket.into())
    }
}

/// The benchmark's formula, without the cap.
#[must_use]
pub fn children_by_formula(mean: f64, random: u32) -> u32 {
    let p = 1.0 / (1.0 + mean);
    let u = f64::from(random) / f64::from(RANDOM_VALUES);
    ((1.0 - u).ln() / (1.0 - p).ln()).floor() as u32
}

/// For each `k` below the cap, the first random number that means more than `k` children.
fn steps(mean: f64) -> Vec<u32> {
    let mut starts = Vec::new();
    for k in 1..=MAX_CHILDREN {
        let more = |random| children_by_formula(mean, random) >= k;
        // Where the step is in exact arithmetic; rounding moves it by little.
        let above = 1.0 - (mean / (1.0 + mean)).powf(k.into());
        let mut start = ((above * f64::from(RANDOM_VALUES)) as u32).min(RANDOM_VALUES - 1);
        while start > 0 && more(start - 1) {
            start -= 1;
        }
        while start < RANDOM_VALUES && !more(start) {
            start += 1;
        }
        if start == RANDOM_VALUES {
            break;
        }
        starts.push(start);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::NAMED;

    /// Random numbers spread over the whole range, and those at which the result may change.
    fn probes(table: &Thresholds) -> Vec<u32> {
        let spread = (0..20_000).map(|i: u32| i.wrapping_mul(2_654_435_761) % RANDOM_VALUES);
        let edges = table.starts.iter().flat_map(|&start| [start.saturating_sub(1), start]);
        let ends = [0, 1, RANDOM_VALUES - 2, RANDOM_VALUES - 1];
        spread.chain(edges).chain(ends).collect()
    }

    #[test]
    fn tables_agree_with_the_formula() {
        let mut means = vec![0.0, 1e-300, 1e-17, 1e-9, 0.01, 0.5, 1.0, 3.9, 4.0, 99.0, 1e6, 2e9];
        for tree in NAMED {
            means.extend((0..=tree.parameters.depth).map(|it| tree.parameters.mean_children(it)));
        }
        for mean in means {
            let table = Thresholds::new(mean);
            let summary = Summary::new(|random| table.children(random));
            for random in probes(&table) {
                let expected = children_by_formula(mean, random).min(MAX_CHILDREN);
                assert_eq!(table.children(random), expected, "mean {mean}, random {random}");
                let told = summary.children(random).unwrap_or(expected);
                assert_eq!(told, expected, "mean {mean}, random {random}");
            }
        }
    }

    #[test]
    fn no_mean_no_children() {
        assert!(Thresholds::new(0.0).starts.is_empty());
        assert_eq!(children_by_formula(0.0, RANDOM_VALUES - 1), 0);
    }

    #[test]
    fn summaries_leave_open_what_they_cannot_hold() {
        let large = Summary::new(|_| 255);
        assert!((0..RANDOM_VALUES).step_by(9_999_991).all(|it| large.children(it).is_none()));
        let step = Summary::new(|random| if random < 5 { 7 } else { 0 });
        assert_eq!([0, 5, 1 << BUCKET_SHIFT].map(|it| step.children(it)), [None, None, Some(0)]);
    }

    #[test]
    fn mean_four_has_at_most_96_children() {
        assert_eq!(Thresholds::new(4.0).starts.len(), 96);
        assert_eq!(Thresholds::new(7.0).starts.len(), MAX_CHILDREN as usize);
    }
}
