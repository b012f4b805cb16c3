//! Calls of the library by ranks of one PE, in the process of the test. (One program has them all: linking
//! takes longer than compiling.)
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod datatypes;
mod dropped;
mod face;
mod forgotten;
mod forms;
mod lifetimes;
mod point_to_point;
mod try_twins;
mod types;
mod wrong_use;
