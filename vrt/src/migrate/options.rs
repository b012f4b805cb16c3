//! What of a job's configuration is about moving ranks.

/// How ranks move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum MoveBy {
    /// With their memory, as they are
    Memory,
    /// By the state they give to `migrate`: their program begins again from it
    State,
    /// With their memory; each state given to `migrate` is encoded and decoded in place, to test
    /// that
    InPlace,
}
