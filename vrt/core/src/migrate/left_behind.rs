//! Ranks that a PE has shipped away.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::pe::Encoded;

/// A rank on its way: the bytes that go with it, and the block of the pool in which they lie if they are its
/// encoded state.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) rank: u32,
    pub(super) bytes: usize,
    pub(super) state: Option<Encoded>,
}

/// Ranks that have been shipped, and the bytes of each that were live.
#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    /// Ranks whose last piece has not been sent.
    pub(super) leaving: Vec<Leaving>,
    /// Number of the departure and bytes of each rank that has gone.
    pub(super) gone: FxHashMap<u32, (u64, usize)>,
    /// The departures, oldest first; for a rank that left again only the last one counts.
    pub(super) order: VecDeque<(u32, u64)>,
    pub(super) departures: u64,
    pub(super) bytes: usize,
}
