//! Topologies (MPI-4.1 chapter 8): grids and graphs of ranks.
//!
//! | file | subject |
//! |---|---|
//! | `grid` | Cartesian grids (section 8.5) |
//! | `graph` | graphs of which each rank knows the whole |
//! | `dist_graph` | graphs of which each rank knows its neighbours |

mod dist_graph;
mod graph;
mod grid;

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::shape::Shape;

use crate::call::{Call, Export, functions};
use crate::fault::Outcome;
use crate::numbers::give;

/// The functions of topologies.
pub(crate) const ALL: [&[Export]; 4] =
    [EXPORTS, grid::EXPORTS, graph::EXPORTS, dist_graph::EXPORTS];

functions! {
    MPI_Topo_test(comm: MPI_Comm, kind: *mut c_int) on Comm(comm) = topo_test;
}

unsafe fn topo_test(call: Call, comm: MPI_Comm, kind: *mut c_int) -> Outcome {
    let comm = call.process.comm(comm)?;
    let found = match comm.engine.shape {
        Shape::Plain => MPI_UNDEFINED,
        Shape::Cartesian(_) => MPI_CART,
        Shape::Graph(_) => MPI_GRAPH,
        Shape::DistributedGraph(_) => MPI_DIST_GRAPH,
    };
    // SAFETY: as the program promises.
    unsafe { give(found, kind) }
}
