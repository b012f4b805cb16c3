//! What ranks have used while they were on a PE.

use crate::pe::rank_state::{Owned, RankState};

/// What ranks have used while they were on a PE.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// The largest heap of a rank that has ended here, and the rank.
    pub(super) heap: (usize, u32),
    /// The most that unexpected messages of a rank were seen to take; looked at as they grow, so it
    /// may have been up to twice as much.
    pub(super) unexpected: (usize, u32),
    pub made: Owned,
    /// What ranks had not dropped when they ended here.
    pub(super) left: Owned,
}

impl Usage {
    pub(super) fn rank_ends(&mut self, rank: u32, heap: usize, state: &RankState) {
        self.heap = self.heap.max((heap, rank));
        self.left.communicators += state.owned.communicators;
        self.left.windows += state.owned.windows;
    }
}
