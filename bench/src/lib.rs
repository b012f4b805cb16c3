//! Benchmarks of vrt, compared with C programs that do the same on Open MPI.
//!
//! - [`programs`] contains one program for each figure, the twins of `c/*.c`; the binary `vrt-bench` runs them, and
//!   each prints one line of JSON.
//! - [`table`] runs both kinds alternately and compares them with the targets; the binary `vrt-bench-table` is what
//!   `scripts/bench` starts.
//! - [`balance`] compares `--lb auto` with no balancing and with the best known strategy; the binary
//!   `vrt-bench-balance` is what `scripts/bench-balance` starts.
//! - [`granularity`] finds the smallest tasks that pay; the binary `vrt-bench-metg` is what
//!   `scripts/bench metg` starts.
//! - [`copies`] compares long messages with plain copies; the binary `vrt-bench-copies` is what `scripts/bench copies`
//!   starts.
//! - [`growth`] measures the cost of ranks as their number grows; the binary `vrt-bench-growth` is what `scripts/bench
//!   growth` starts.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod balance;
pub mod command_line;
pub mod copies;
pub mod granularity;
pub mod growth;
pub mod measure;
pub mod programs;
pub mod table;
