//! Writes what each rank did as a CSV table, for other programs.

use serde::{Deserialize, Serialize};
use uts::statistics::RankStatistics;

/// A rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Its number.
    pub rank: usize,
    /// Nodes that it looked at.
    pub nodes: u64,
    /// Those of them without children.
    pub leaves: u64,
    /// Depth of the deepest node.
    pub depth: u64,
    /// Open nodes that it abandoned at the limit.
    pub left: u64,
    /// Chunks that it released.
    pub released: u64,
    /// Chunks that it acquired again.
    pub acquired: u64,
    /// Chunks that it got from other ranks.
    pub stolen: u64,
    /// Attempts without success.
    pub failed: u64,
    /// Requests made ahead.
    pub prefetches: u64,
    /// Prefetches that brought work.
    pub prefetched: u64,
    /// Seconds in work.
    pub working: f64,
    /// Seconds in overhead.
    pub overhead: f64,
    /// Seconds in search.
    pub searching: f64,
    /// Seconds idle.
    pub idle: f64,
    /// Seconds from the first node of the tree to the last.
    pub seconds: f64,
}

/// The table for all ranks.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn table(ranks: &[RankStatistics], seconds: f64) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (rank, RankStatistics { counts, traffic, times }) in ranks.iter().enumerate() {
        let [working, overhead, searching, idle] = times.seconds;
        writer.serialize(Row {
            rank,
            nodes: counts.nodes,
            leaves: counts.leaves,
            depth: counts.depth,
            left: counts.left,
            released: traffic.releases,
            acquired: traffic.acquired,
            stolen: traffic.steals,
            failed: traffic.failed_steals,
            prefetches: traffic.prefetches,
            prefetched: traffic.prefetched,
            working,
            overhead,
            searching,
            idle,
            seconds,
        })?;
    }
    writer.into_inner().map_err(|it| it.into_error().into())
}
