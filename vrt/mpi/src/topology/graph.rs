//! Graphs of ranks of which each rank knows the whole (MPI-4.1 section 8.5.3).

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::graph::{Graph, GraphError};
use vrt_core::comm::shape::Shape;

use crate::call::{Call, functions};
use crate::communicator::make_in_shape;
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::numbers::{self, give, give_all};
use crate::object::Comm;

functions! {
    MPI_Graph_create(
        comm: MPI_Comm, nodes: c_int, index: *const c_int, edges: *const c_int, reorder: c_int,
        new: *mut MPI_Comm,
    ) on Comm(comm) = graph_create;
    MPI_Graph_get(
        comm: MPI_Comm, max_index: c_int, max_edges: c_int, index: *mut c_int, edges: *mut c_int,
    ) on Comm(comm) = graph_get;
    MPI_Graphdims_get(comm: MPI_Comm, nodes: *mut c_int, edges: *mut c_int)
        on Comm(comm) = graphdims_get;
    MPI_Graph_neighbors_count(comm: MPI_Comm, rank: c_int, count: *mut c_int)
        on Comm(comm) = graph_neighbors_count;
    MPI_Graph_neighbors(comm: MPI_Comm, rank: c_int, max: c_int, neighbors: *mut c_int)
        on Comm(comm) = graph_neighbors;
    MPI_Graph_map(
        comm: MPI_Comm, nodes: c_int, index: *const c_int, edges: *const c_int, rank: *mut c_int,
    ) on Comm(comm) = graph_map;
}

impl From<GraphError> for Box<Fault> {
    fn from(error: GraphError) -> Box<Fault> {
        fault(MPI_ERR_ARG, error.to_string())
    }
}

/// A graph as given: the end of each node's edges, and the edges.
///
/// # Safety
/// `index` has `nodes` entries, and `edges` as many as the last of them says.
unsafe fn graph_of(
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    available: c_int,
) -> Outcome<Graph> {
    let n = numbers::count(nodes)?;
    if nodes > available {
        // There may be no more numbers than ranks.
        return Err(GraphError::TooMany { nodes: n, ranks: available }.into());
    }
    // SAFETY: the program gives so many.
    let index = unsafe { numbers::ints(index, n)? };
    let last = Graph::number_of_edges(&index)?;
    // SAFETY: as above.
    let edges = unsafe { numbers::ints(edges, numbers::index(last))? };
    Ok(Graph::new(index, edges, available)?)
}

unsafe fn graph_create(
    call: Call,
    comm: MPI_Comm,
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    _: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    comm.expect_intra()?;
    // SAFETY: as the program promises.
    unsafe {
        let graph = graph_of(nodes, index, edges, comm.engine.size)?;
        make_in_shape(call, &comm, graph.index().len(), Shape::Graph(graph), new)
    }
}

fn graph(comm: &Comm) -> Outcome<&Graph> {
    match &comm.engine.shape {
        Shape::Graph(graph) => Ok(graph),
        _ => refuse!(MPI_ERR_TOPOLOGY, "the communicator is no graph"),
    }
}

unsafe fn graph_get(
    call: Call,
    comm: MPI_Comm,
    max_index: c_int,
    max_edges: c_int,
    index: *mut c_int,
    edges: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let graph = graph(&comm)?;
    // SAFETY: the program gives room for so many.
    unsafe {
        give_all(graph.index(), index, numbers::count(max_index)?);
        give_all(graph.edges(), edges, numbers::count(max_edges)?);
    }
    Ok(())
}

unsafe fn graphdims_get(
    call: Call,
    comm: MPI_Comm,
    nodes: *mut c_int,
    edges: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let graph = graph(&comm)?;
    // SAFETY: as the program promises.
    unsafe {
        give(numbers::int(graph.index().len()), nodes)?;
        give(numbers::int(graph.edges().len()), edges)
    }
}

fn neighbors_of(comm: &Comm, rank: c_int) -> Outcome<&[i32]> {
    comm.engine.job_rank(rank)?;
    // Every rank of the communicator is a node.
    Ok(graph(comm)?.neighbors(rank).unwrap_or_default())
}

unsafe fn graph_neighbors_count(
    call: Call,
    comm: MPI_Comm,
    rank: c_int,
    count: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe { give(numbers::int(neighbors_of(&comm, rank)?.len()), count) }
}

unsafe fn graph_neighbors(
    call: Call,
    comm: MPI_Comm,
    rank: c_int,
    max: c_int,
    neighbors: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: the program gives room for so many.
    unsafe { give_all(neighbors_of(&comm, rank)?, neighbors, numbers::count(max)?) };
    Ok(())
}

unsafe fn graph_map(
    call: Call,
    comm: MPI_Comm,
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    rank: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe {
        graph_of(nodes, index, edges, comm.engine.size)?;
        let me = comm.engine.rank;
        give(if me < nodes { me } else { MPI_UNDEFINED }, rank)
    }
}
