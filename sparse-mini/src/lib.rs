//! Programs whose ranks do not know from whom they will hear: applications of sparse exchange.
//!
//! | module | subject |
//! |---|---|
//! | [`microbenchmark`] | messages to k random others, nothing else |
//! | [`simulate`] | the protocols on networks that are not here, up to a million processes |
//!
//! The program `sparse-mini` has a subcommand for each.

pub mod microbenchmark;
pub mod simulate;
