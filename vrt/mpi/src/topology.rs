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
use vrt_core::comm::create;
use vrt_core::comm::shape::Shape;

use crate::call::{Call, Export, functions};
use crate::communicator::{Comm, give, made};
use crate::fault::Outcome;

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

/// Returns numbers to the program, as many as it has room for.
unsafe fn give_all(values: &[c_int], to: *mut c_int, room: usize) {
    for (at, value) in values.iter().take(room).enumerate() {
        // SAFETY: the caller has room for so many.
        unsafe { to.add(at).write(*value) };
    }
}

/// Makes a communicator of the first ranks in a shape, and returns it to the program.
///
/// # Safety
/// There is room for a handle at `new`.
unsafe fn make(
    call: Call,
    comm: &Comm,
    places: usize,
    shape: Shape,
    new: *mut MPI_Comm,
) -> Outcome {
    let placed = create::in_shape(&comm.engine, places, shape, *call.site);
    // SAFETY: as the caller promises.
    unsafe { made(call, comm, placed, new) }
}
