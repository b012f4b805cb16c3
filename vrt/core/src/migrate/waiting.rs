//! Ranks of a PE that want to be moved, or may be.

use std::time::Duration;

/// Pending requests of a PE's ranks about moving.
#[derive(Debug, Default)]
pub struct AtSyncRanks {
    /// Ranks that want to move, each with the PE to which.
    pub(super) pending_moves: Vec<(u32, u32)>,
    /// The ranks that wait in `migrate`, each with the number of that call.
    pub waiting: Vec<(u32, u32)>,
    /// Bytes of states that have moved at their ranks' own request, and the time that took.
    pub gone: (u64, Duration),
    /// Something happened after which all ranks may be waiting in `migrate`.
    pub(super) changed: bool,
    /// Ranks known to be here that have not ended: the last count, minus those that have left or ended since.
    known: usize,
}

impl AtSyncRanks {
    /// Whether, since this was last asked, something happened after which all ranks may be waiting.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether all ranks of the PE may be waiting in `migrate`. Counting them touches a cache line of each, which must
    /// not happen for each rank that begins to wait.
    pub fn may_be_all(&self) -> bool {
        self.waiting.len() >= self.known
    }

    /// This many ranks of the PE that have not ended have been counted.
    pub fn counted(&mut self, ranks: usize) {
        self.known = ranks;
    }

    /// A rank has ended here, or has left.
    pub fn one_less(&mut self) {
        self.known = self.known.saturating_sub(1);
    }

    /// Records work for a rank that moves at its own request.
    pub fn went_by_itself(&mut self, bytes: u64, taken: Duration) {
        self.gone.0 += bytes;
        self.gone.1 += taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks were counted for each one that came to wait in `migrate`, so that a step among 16,384 of a PE took a second.
    #[test]
    fn ranks_are_counted_when_all_may_wait() {
        let mut ranks = AtSyncRanks::default();
        // How many there are is not known yet.
        assert!(ranks.may_be_all());
        ranks.counted(3);
        for rank in 0..2 {
            ranks.waiting.push((rank, 1));
            assert!(!ranks.may_be_all());
        }
        ranks.waiting.push((2, 1));
        assert!(ranks.may_be_all());
    }

    #[test]
    fn a_rank_that_goes_is_not_waited_for() {
        let mut ranks = AtSyncRanks::default();
        ranks.counted(2);
        ranks.waiting.push((0, 1));
        assert!(!ranks.may_be_all());
        ranks.one_less();
        assert!(ranks.may_be_all());
        (0..3).for_each(|_| ranks.one_less());
        assert!(ranks.may_be_all());
    }
}
