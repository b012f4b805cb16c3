//! Programs whose ranks do not know from whom they will hear: applications of sparse exchange.
//!
//! | module | subject |
//! |---|---|
//! | [`microbenchmark`] | messages to k random others, nothing else |
//! | [`simulate`] | the protocols on networks that are not here, up to a million processes |
//! | [`bfs`] | breadth-first search of large graphs |
//! | [`cg`] | conjugate gradients on sparse matrices |
//! | [`loggp`] | the parameters of the network that ranks have here |
//! | [`nbody`] | galaxies: gravity by Barnes and Hut, space cut by recursive bisection |
//!
//! The program `sparse-mini` has a subcommand for each.

pub mod bfs;
pub mod cg;
pub mod loggp;
pub mod microbenchmark;
pub mod nbody;
pub mod simulate;
