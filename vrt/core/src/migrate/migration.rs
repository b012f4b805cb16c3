//! The part of a PE that moves ranks: what it keeps.

use rustc_hash::FxHashMap;

use crate::migrate::left_behind::LeftBehind;
use crate::migrate::options::Rules;
use crate::migrate::reasons::Reasons;
use crate::migrate::waiting::AtSyncRanks;
use vrt_slot::search::Search;

/// The part of a PE that moves ranks.
#[derive(Default)]
pub struct Migration {
    /// How and when ranks of this job move.
    pub rules: Rules,
    /// Which ranks of the PE want to be moved.
    pub at_sync: AtSyncRanks,
    /// The cost of moving ranks here since the PE began.
    pub costs: Costs,
    /// Ranks that a balancing step with a period has moved here and that have not been reported.
    pub came: u32,
    /// The search for references of the PE's ranks and statics.
    pub(super) search: Search,
    pub(super) reasons: Reasons,
    /// What ranks that were shipped away have left behind.
    pub(super) left_behind: LeftBehind,
    /// The encoded states that are arriving from other nodes, each in its block of the pool, by rank.
    pub(super) states: FxHashMap<u32, *mut u8>,
    /// Ranks that have been here before, and the size of their heaps then.
    pub(super) warm: FxHashMap<u32, usize>,
}

/// The cost of moving ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// Ranks packed here, and seconds for that, whatever their size.
    pub ranks: u64,
    /// Seconds for packing those.
    pub packing: f64,
    /// Bytes that were copied or encoded here for moves.
    pub bytes: u64,
    /// Seconds for copying and encoding those.
    pub copying: f64,
}

impl Costs {
    /// Bytes were copied or encoded for a move.
    pub fn copied(&mut self, bytes: u64, seconds: f64) {
        self.bytes += bytes;
        self.copying += seconds;
    }
}

impl Migration {
    /// The part of a PE that has not moved a rank yet.
    pub fn new(rules: Rules) -> Migration {
        Migration { rules, ..Migration::default() }
    }
}

/// Why a rank stays on its PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It has ended, or is not on this PE any more.
    NotHere,
    /// It is running.
    Running,
    /// Another PE of the node is using its memory, or a message is being copied into or out of it.
    InUse,
    /// It holds something that cannot move.
    Pinned(&'static str),
}
