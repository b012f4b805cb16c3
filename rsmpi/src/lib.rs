//! [`vrt`] under the name of the `mpi` crate (rsmpi).
//!
//! Whole trees of dependencies are ported by it: where a program and the libraries that it uses all
//! depend on `mpi`, one entry in the program's `Cargo.toml` gives them this crate instead.
//!
//! ```toml
//! [patch.crates-io]
//! mpi = { path = "../vrt/rsmpi" }
//! ```
//!
//! It has the version of the crate whose place it takes, because cargo asks for that: a `Cargo.lock`
//! that names an older one needs `cargo update -p mpi` first. (A line such as
//! `mpi = { package = "virtual-ranks", .. }` under `[patch.crates-io]` does nothing, and cargo does not
//! say so.) A program that is alone in using `mpi` needs no patch: such a line among its dependencies
//! does.
//!
//! The program's `main` gets `#[mpi::main]`; libraries are not changed.
//!
//! ```
//! use mpi::traits::*;
//!
//! #[derive(Equivalence, Default, Debug, PartialEq)]
//! struct Particle {
//!     at: [f64; 3],
//!     mass: f32,
//! }
//!
//! // Outside of a job: a world of one.
//! let universe = mpi::initialize().unwrap();
//! let world = universe.world();
//! let sent = Particle { at: [1.0, 2.0, 3.0], mass: 4.0 };
//! let mut received = Particle::default();
//! mpi::point_to_point::send_receive_into(
//!     &sent,
//!     &world.this_process(),
//!     &mut received,
//!     &world.this_process(),
//! );
//! assert_eq!(received, sent);
//! ```

pub use vrt::*;
