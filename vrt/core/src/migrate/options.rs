//! The part of a job's configuration that concerns moving ranks.

use crate::choices;

choices! {
    /// How ranks move.
    pub enum MoveBy {
        /// With their memory, as they are
        Memory = "memory",
        /// By the state they give to `migrate`: their program begins again from it
        State = "state",
        /// With their memory; each state given to `migrate` is encoded and decoded in place, to test
        /// that
        InPlace = "in-place",
    }
}

/// How and when the ranks of a job move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// How ranks that offer themselves move; `None`: they are not moved.
    pub move_by: Option<MoveBy>,
    /// Steps that move ranks are taken by time, not when all ranks offer themselves.
    pub periodic: bool,
    /// Ranks move by their state, including those that move by `migrate_to`.
    pub by_state: bool,
}
