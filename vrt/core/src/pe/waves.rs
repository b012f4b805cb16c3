//! What PEs of different nodes tell each other of the job, and what a PE keeps of it; see `termination`.

use serde::{Deserialize, Serialize};

/// What PEs of different nodes tell each other of the job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum ControlMessage {
    /// A rank has ended.
    RankEnded,
    /// A rank ends with this status, which is not 0, and the job goes on.
    Failed(i32),
    /// The last one has ended; with the job's status.
    Over(i32),
    Ask {
        wave: u32,
    },
    Answer {
        wave: u32,
        snapshot: Snapshot,
    },
    Deadlock,
}

/// How an idle PE stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    /// Its ranks wait for messages, and nothing of it is in progress.
    pub(super) waits: bool,
    /// Packets sent and received since the job began.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Signals sent to other PEs of its node. Their effect on these PEs shows in the next wave: a signalled PE does not
    /// wait before it has taken the signal.
    pub(super) signals: u64,
}

/// A PE's part in it; PE 0's has the answers.
#[derive(Debug, Default)]
pub(crate) struct Termination {
    /// News sent and received, which are not counted.
    pub(super) told: u64,
    pub(super) heard: u64,
    /// The wave that waits for this PE's state.
    pub(super) asked: Option<u32>,
    pub(super) wave: u32,
    /// When the next wave may begin.
    pub(super) due: u64,
    pub(super) answers: Vec<Option<Snapshot>>,
    /// The result of the previous wave, if all waited.
    pub(super) before: Option<Vec<Snapshot>>,
}
