//! Benchmarks of vrt beside C programs that do the same on Open MPI.
//!
//! - [`programs`] holds one program for each figure, the twins of `c/*.c`; the
//!   binary `vrt-bench` runs them, and each prints one line of JSON.
//! - [`table`] runs both kinds in turn and compares them with the targets; the
//!   binary `vrt-bench-table` is what `scripts/bench` starts.
//! - [`balance`] compares `--lb auto` with no balancing and with the best known
//!   way; the binary `vrt-bench-balance` is what `scripts/bench-balance` starts.
//! - [`granularity`] finds the smallest tasks that pay; the binary `vrt-bench-metg` is what
//!   `scripts/bench metg` starts.
//! - [`copies`] compares long messages with copies without a runtime; the binary `vrt-bench-copies` is what
//!   `scripts/bench copies` starts.
//! - [`growth`] shows what ranks cost as they grow many; the binary `vrt-bench-growth` is what `scripts/bench growth`
//!   starts.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod balance;
pub mod command_line;
pub mod copies;
pub mod granularity;
pub mod growth;
pub mod measure;
pub mod programs;
pub mod table;
