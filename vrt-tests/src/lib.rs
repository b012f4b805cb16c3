//! Programs and tests that run real jobs of several processes.
//!
//! `misbehave` does one thing wrong, by name; `soak` sends random traffic,
//! `collectives` goes through a table of collective operations, `pages` looks what pages heaps
//! have. The tests under `tests/` run them and look at exit status, messages, time and what is left
//! behind.

pub mod executable;
pub mod job;
pub mod pages;
pub mod running;
