//! The untyped engine of virtual ranks, below the language bindings.
//!
//! It implements a rank's messages, requests, communicators, collective operations, one-sided accesses and moves in
//! terms of addresses, lengths and numbers. It knows no language: a binding (the Rust one is `virtual-ranks`) converts
//! its own values to the arguments of these operations, drives their futures, and reports errors: wrong use is returned
//! as an [`Error`] with a class of MPI's, never as a panic.
//!
//! | module | holds |
//! |---|---|
//! | [`pe`] | a PE's loop, ranks and their requests, sending, receiving, idling, termination; extensions of a PE plug in here |
//! | [`net`] | packets, rings, shared control memory, parcels |
//! | [`mailbox`] | matching |
//! | [`layout`] | flattened datatypes |
//! | [`operation`] | requests as futures |
//! | [`comm`] | communicators, and the collective operations among their ranks |
//! | [`rma`] | one-sided accesses |
//! | [`exchange`] | the protocols of sparse exchanges |
//! | [`migrate`] | moving ranks |
//! | [`blocking`] | libc's calls that would block the PE's thread |
//! | [`options`] | the syntax of option values |
//! | [`encoding`] | serde values as bytes |
//!
//! The interface is internal to the crates of this project and changes with them.

pub mod blocking;
pub mod comm;
mod cycles;
pub mod encoding;
mod error;
pub mod exchange;
pub mod layout;
pub mod mailbox;
pub mod migrate;
pub mod net;
pub mod operation;
pub mod options;
pub mod pe;
pub mod rma;

pub use error::{Class, Error, Site};
pub use vrt_slot::report::count;

/// Number of a rank in a communicator.
pub type Rank = i32;
/// Tag of a message.
pub type Tag = i32;
/// Number of elements of a message.
pub type Count = i32;
