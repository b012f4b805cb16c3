//! What each rank did as a table for other programs, in CSV.

use serde::{Deserialize, Serialize};
use uts::statistics::RankStatistics;

/// A rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its number.
    pub rank: usize,
    /// Nodes that it looked at.
    pub nodes: u64,
    /// Those of them without children.
    pub leaves: u64,
    /// Depth of the deepest.
    pub depth: u64,
    /// Open nodes that it gave up at the limit.
    pub left: u64,
    /// Chunks that it released.
    pub released: u64,
    /// Chunks that it took back.
    pub acquired: u64,
    /// Chunks that it got from others.
    pub stolen: u64,
    /// Attempts that brought nothing.
    pub failed: u64,
    /// Requests made ahead.
    pub prefetches: u64,
    /// Those that brought work.
    pub prefetched: u64,
    /// Seconds in work, and so on.
    pub working: f64,
    /// Seconds.
    pub overhead: f64,
    /// Seconds.
    pub searching: f64,
    /// Seconds.
    pub idle: f64,
    /// Seconds from the first node of the tree to the last.
    pub seconds: f64,
}

/// The table of all ranks.
///
/// # Errors
///
/// If it cannot be written.
pub fn table(ranks: &[RankStatistics], seconds: f64) -> Result<Vec<u8>, csv::Error> {
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
