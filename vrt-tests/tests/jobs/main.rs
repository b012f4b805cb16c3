//! Jobs of the programs of this crate: what they print, how they end, what is left of them.
//!
//! One program has all of them: each would be linked with the runtime, and none would run beside the
//! slowest test of another.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod abandons;
mod allocator;
mod alone;
mod balancing;
mod blocks;
mod collectives;
mod crashes;
mod dropped;
mod endings;
mod everyday;
mod exchange;
mod growth;
mod holds;
mod launches;
mod moving;
mod other_locks;
#[cfg(target_arch = "x86_64")]
mod own_locals;
mod pages;
mod polls;
mod recovers;
mod shares;
mod soak;
mod stalls;
mod static_locks;
mod trace;
mod types;
mod unread;
mod unwind;
