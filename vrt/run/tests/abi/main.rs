//! Tests of everything that is generated from the table, used as programs and build systems use it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cmake;
mod coverage;
mod header;
mod lists;
mod signatures;
mod stub;
mod tools;
mod wrapper;
