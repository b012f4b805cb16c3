//! Small solvers in the manner of a rocket simulation, written against the
//! blocking face of `vrt`.
//!
//! [`jacobi`] relaxes Laplace's equation on a cube, on any number of ranks:
//!
//! ```
//! use rocket_mini::jacobi::{Problem, Settings, solve, solve_sequentially};
//!
//! let settings = Settings {
//!     problem: Problem { size: 8 },
//!     max_iterations: 20,
//!     tolerance: 0.0,
//!     check_every: 10,
//!     migrate_every: 0,
//! };
//! let reference = solve_sequentially(&settings);
//! mpi::run_local(4, |world: &mpi::topology::SimpleCommunicator| {
//!     let run = solve(world, &settings, None, |_, _| ()).expect("a block for each rank");
//!     if let Some(run) = run {
//!         assert_eq!(run.solution.difference_from(&reference), None);
//!     }
//! });
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod crack;
pub mod face;
pub mod flow;
pub mod jacobi;
pub mod rocket;
pub mod solid;
