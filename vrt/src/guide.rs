//! What a program has to know beyond single calls: documentation only.

pub mod async_ranks;
pub mod safety;
