//! What PEs report in a step, and what they are told.

use serde::{Deserialize, Serialize};

use crate::measure::PeLoad;

/// The costs of a PE and its ranks since the last step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Loads {
    pub pe: PeLoad,
    pub ranks: Vec<RankLoad>,
    /// If the strategy needs it: sender, receiver, messages and bytes since the job began.
    pub sent: Vec<(u32, u32, u64, u64)>,
    /// Why some of its ranks are held.
    pub held: Vec<(u32, String)>,
    /// The time that it took to collect this.
    pub(crate) nanoseconds: u64,
}

/// The cost of a rank since the last step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RankLoad {
    pub rank: u32,
    /// Running time.
    pub seconds: f64,
    /// Live bytes of its heap and stack.
    pub bytes: u64,
    pub pinned: bool,
    /// Pinned, and not only by something that may be gone at the next step.
    pub held: bool,
    pub(crate) coordinates: Option<[f64; 3]>,
    /// How often it has communicated since the job began, if that is needed.
    pub(crate) events: u64,
}

/// An order: a rank goes to another PE.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub rank: u32,
    pub to: u32,
}

/// The result of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// Load of the busiest PE over the mean, minus 1: today, and as predicted.
    pub before: f64,
    pub after: f64,
    /// Why nothing moves although it could.
    pub(crate) remark: Option<String>,
    /// What the user could do.
    pub(crate) advice: Option<String>,
}
