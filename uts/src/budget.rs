//! A limit for a search: the number of nodes that all ranks together look at.
//!
//! Ranks add their numbers of nodes to a word of rank 0, one-sidedly, as it must not matter what rank 0 does meanwhile.
//! A rank that finds the sum at the limit abandons its open nodes, and from then on all nodes that it receives. So the
//! other ranks run out of work, or find the same; the search ends as it always does, and leaves no message behind.

use mpi::{collective::SystemOperation, topology::SimpleCommunicator, traits::*, window::Window};

/// A rank reports after at most this many nodes, so that none continues for long when the limit is reached.
const MOST_UNNOTED: u64 = 1 << 16;
/// The greatest part of the limit that all ranks together have not reported.
const UNNOTED_PART: u64 = 16;

/// The number of nodes that each of this many ranks looks at between two reports.
#[must_use]
pub fn grain(limit: u64, ranks: usize) -> u64 {
    (limit / UNNOTED_PART / ranks.max(1) as u64).clamp(1, MOST_UNNOTED)
}

/// One rank's view of the limit.
#[derive(Debug)]
pub struct Budget(Option<Limit>);

#[derive(Debug)]
struct Limit {
    nodes: u64,
    grain: u64,
    noted: u64,
    spent: bool,
    sum: Window<'static, u64>,
}

impl Budget {
    /// The rank's view of a limit, if there is one. Collective.
    #[must_use]
    pub fn new(world: &SimpleCommunicator, limit: Option<u64>) -> Self {
        Self(limit.map(|nodes| {
            let sum = world.allocate_window(vec![0_u64]);
            sum.lock_all();
            // A size is not negative.
            let grain = grain(nodes, world.size() as usize);
            Limit { nodes, grain, noted: 0, spent: false, sum }
        }))
    }

    /// Whether the limit is reached, given that this rank has looked at this many nodes.
    #[inline]
    pub fn is_spent(&mut self, nodes: u64) -> bool {
        self.0.as_mut().is_some_and(|limit| limit.is_spent(nodes))
    }

    /// No reports may follow. Collective.
    pub fn close(self) {
        if let Some(limit) = self.0 {
            limit.sum.unlock_all();
        }
    }
}

impl Limit {
    fn is_spent(&mut self, nodes: u64) -> bool {
        let more = nodes - self.noted;
        if !self.spent && more >= self.grain {
            let before = self.sum.fetch_and_op(0, 0, more, SystemOperation::sum());
            self.noted = nodes;
            self.spent = before + more >= self.nodes;
        }
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_note_often_enough_but_not_too_often() {
        assert_eq!(grain(1_000_000, 10), 6250);
        assert_eq!(grain(u64::MAX, 2), 1 << 16);
        assert_eq!((grain(1, 64), grain(0, 0)), (1, 1));
    }

    #[test]
    fn a_limit_is_reached_by_all_ranks_together_and_stays_so() {
        mpi::run_local(4, |world| {
            let mut budget = Budget::new(world, Some(1000));
            assert!(!budget.is_spent(200));
            world.barrier();
            let reached = budget.is_spent(400);
            let mut number = 0;
            let one = i32::from(reached);
            world.all_reduce_into(&one, &mut number, SystemOperation::sum());
            // 800 were noted; the first of the others brings the sum to 1000.
            assert_eq!(number, 4);
            assert!(budget.is_spent(400) && budget.is_spent(10_000));
            budget.close();
        });
    }

    #[test]
    fn without_a_limit_nothing_is_spent() {
        mpi::run_local(2, |world| {
            let mut budget = Budget::new(world, None);
            assert!(!budget.is_spent(u64::MAX));
            budget.close();
        });
    }
}
