//! Message-passing programs as many *virtual ranks* on a few processes.
//!
//! A virtual rank calls `send`, `receive` and `barrier` like an MPI process. While it waits, its core runs another
//! rank, and a load balancer can move it to another process. The names, types and traits are those of the `mpi` crate
//! (rsmpi): a program written for that crate is ported by its dependency line,
//! `mpi = { package = "virtual-ranks", .. }`, and `#[mpi::main]` above its `main`.
//!
//! ```no_run
//! use vrt::collective::SystemOperation;
//! use vrt::traits::*;
//!
//! #[vrt::main]
//! fn main(world: vrt::World) {
//!     let (rank, size) = (world.rank(), world.size());
//!
//!     // A message around the ring of ranks. Each rank waits for it, and meanwhile others run.
//!     let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
//!     if rank == 0 {
//!         world.process_at_rank(next).send(&[1u64, 2, 3][..]);
//!     }
//!     let (token, status) = world.process_at_rank(previous).receive_vec::<u64>();
//!     assert_eq!((token.len(), status.source_rank()), (3, previous));
//!     if rank != 0 {
//!         world.process_at_rank(next).send(&token);
//!     }
//!
//!     let mut sum = 0;
//!     world.all_reduce_into(&rank, &mut sum, SystemOperation::sum());
//!     if rank == 0 {
//!         println!("the ranks add up to {sum}");
//!     }
//! }
//! ```
//!
//! `VRT_PES=2 VRT_RANKS=16 ./program` runs it as 16 ranks on 2 processes; [`Config`] lists all options. In unit tests
//! and documentation, [`run_local`] runs ranks inside the calling thread:
//!
//! ```
//! use vrt::traits::*;
//!
//! vrt::run_local(4, |world| {
//!     let mut from_root = if world.rank() == 2 { 42 } else { 0 };
//!     world.process_at_rank(2).broadcast_into(&mut from_root);
//!     assert_eq!(from_root, 42);
//! });
//! ```
//!
//! # Where to go on
//!
//! | topic | module |
//! |---|---|
//! | messages between two ranks | [`point_to_point`] |
//! | operations of all ranks of a communicator | [`collective`] |
//! | structs as messages | [`datatype`]; serde values: [`send_value`](point_to_point::Destination::send_value) |
//! | communicators, groups, grids, graphs | [`topology`] |
//! | memory that other ranks access directly | [`window`] |
//! | messages from unknown senders | [`exchange`] |
//! | async ranks, timeouts | [`guide::async_ranks`] |
//! | errors as values (`try_receive` and others) | [`error`] |
//! | what a rank must not do; which ranks move | [`guide::safety`] |
//!
//! The folder `examples` has a program for each of them.
//!
//! # Words
//!
//! A *rank* is a virtual rank. A *PE* is a process, one thread of which runs ranks. The *supervisor* is the parent of
//! the PEs. Each rank's stack and heap lie in its *slot* of the *arena*, memory that all PEs share at the same
//! addresses.

// The derive macro names this crate by its own name, also inside of it.
extern crate self as vrt;

pub mod attribute;
pub mod collective;
pub mod datatype;
pub mod environment;
pub mod error;
pub mod exchange;
pub mod ffi;
pub mod guide;
mod launch;
mod operation;
pub mod point_to_point;
pub mod raw;
pub mod request;
mod statistics;
pub mod topology;
pub mod trace;
pub mod window;

pub use error::{Error, ErrorClass, ErrorKind};

pub use environment::{
    Threading, Universe, initialize, initialize_with_threading, time, time_resolution,
};
pub use launch::{launch, launch_async, run_local};
#[doc(hidden)]
pub use vrt_core::encoding;
pub use vrt_core::encoding::{DecodeError, EncodeError};
pub use vrt_core::migrate::MoveBy;
/// The configuration of a job.
///
/// With the feature `cli`, a default, it is a `clap::Args`: a program flattens it into its own command
/// line.
///
/// # Examples
///
/// ```
/// let config = vrt::Config::default().with_pes(2).with_ranks(16).with_stack(1 << 20);
/// assert_eq!(config.ranks(), 16);
/// ```
pub use vrt_launch::Config;
pub use vrt_launch::{ConfigError, Core, Net};
pub use vrt_launch::{LaunchError, report_usage_error};
pub use vrt_launch::{LbReport, MovePinned};

pub use operation::{
    Elapsed, Timeout, block_on, sleep, sleep_async, timeout, when_idle, yield_now, yield_now_async,
};
#[doc(hidden)]
pub use vrt_slot::check::stack_words_found;

pub use statistics::{Statistics, pinned, statistics};
pub use topology::{CannotMove, World};
pub use trace::{Region, region};
pub use vrt_derive::main;

pub use vrt_core::{Count, Rank, Tag};
/// A distance between addresses, in bytes.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// let distance: vrt::Address = f64::equivalent_datatype().extent();
/// assert_eq!(distance, 8);
/// ```
pub type Address = isize;

/// What can fail without a panic.
///
/// # Examples
///
/// ```
/// let error = vrt::MpiError::from(std::ffi::CString::new("a\0b").unwrap_err());
/// assert_eq!(error.to_string(), "a text with a zero byte inside");
/// ```
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// Processes could not be started.
    #[error("cannot start {1} processes, {0} of them not at all: a job's ranks are fixed")]
    Spawn(Rank, Rank),
    /// A text cannot be given to the system.
    #[error("a text with a zero byte inside")]
    StringNul(#[from] std::ffi::NulError),
}

/// All traits of the API.
pub mod traits {
    pub use crate::{
        attribute::traits::*, collective::traits::*, datatype::traits::*, exchange::SparseExchange,
        point_to_point::traits::*, raw::traits::*, topology::traits::*, window::traits::*,
    };
}
