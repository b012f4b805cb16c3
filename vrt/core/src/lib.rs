//! The untyped engine under the faces of virtual ranks.
//!
//! A rank's messages, requests, communicators, collective operations, one-sided accesses and moves, as
//! addresses, lengths and numbers. It knows no language: a face (the Rust one is `virtual-ranks`) makes
//! of its own values what these operations take, drives their futures, and says what was wrong with
//! them: wrong use comes back as an [`Error`] with a class of MPI's, never as a panic.
//!
//! | module | holds |
//! |---|---|
//! | [`pe`] | a PE's loop, ranks and their requests, sending, receiving, idling, the end; what else works on a PE plugs in here |
//! | [`net`] | packets, rings, shared control memory, parcels |
//! | [`mailbox`] | matching |
//! | [`layout`] | datatypes flattened |
//! | [`operation`] | requests as futures |
//! | [`comm`] | communicators, and the collective operations among their ranks |
//! | [`rma`] | one-sided accesses |
//! | [`exchange`] | the protocols of sparse exchanges |
//! | [`migrate`] | ranks that move |
//! | [`blocking`] | libc's calls that would block the PE's thread |
//! | [`options`] | how the values of a job's options are written |
//! | [`encoding`] | serde values as bytes |
//!
//! The interface is that of one program's crates: it changes with them.

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
