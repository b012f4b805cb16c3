//! Programs whose ranks do not know which ranks will send to them: applications of sparse exchange.
//!
//! | module | subject |
//! |---|---|
//! | [`microbenchmark`] | messages to k random other ranks, nothing else |
//! | [`simulate`] | the protocols on simulated networks, up to a million processes |
//! | [`bfs`] | breadth-first search of large graphs |
//! | [`cg`] | conjugate gradients on sparse matrices |
//! | [`loggp`] | the parameters of the network between ranks on this machine |
//! | [`nbody`] | galaxies: gravity by Barnes and Hut, with space cut by recursive bisection |
//!
//! The program `sparse-mini` has a subcommand for each.

pub mod bfs;
pub mod cg;
pub mod loggp;
pub mod microbenchmark;
pub mod nbody;
pub mod simulate;
