//! Small solvers in the manner of a rocket simulation, written against the blocking API of `vrt`.
//!
//! | module | subject |
//! |---|---|
//! | [`jacobi`] | Laplace's equation on a cube |
//! | [`flow`] | compressible flow of a gas below a surface that may burn and recede |
//! | [`solid`] | an elastic body, implicit in time |
//! | [`face`] | loads and motions between surface meshes that do not match |
//! | [`rocket`] | gas and propellant, coupled |
//! | [`crack`] | a crack that pressure drives through a plate |
//! | [`picture`] | what pictures of the solvers have in common |
//! | [`switching`] | the cost of a switch between ranks |
//!
//! Each has the physics, which works without ranks, and a run on the ranks of a communicator; the
//! program `rocket-mini` has a subcommand for each.
//!
//! [`jacobi`] relaxes Laplace's equation on a cube, on any number of ranks:
//!
//! ```
//! use rocket_mini::jacobi::{Cut, Problem, Settings, solve, solve_sequentially};
//!
//! let settings = Settings {
//!     problem: Problem { size: 8 },
//!     cut: Cut::Blocks,
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
pub mod picture;
pub mod rocket;
pub mod solid;
pub mod switching;
