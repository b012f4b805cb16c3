//! Graphs of ranks of which each rank knows the whole (MPI-4.1 section 8.5.3).

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::shape::{Neighbors, Shape};

use super::{edges_of, give_all, make};
use crate::call::{Call, functions};
use crate::communicator::{Comm, give};
use crate::fault::{Outcome, refuse};
use crate::numbers;

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

/// A graph as given: the end of each node's edges, and the edges.
unsafe fn graph_of(
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    available: c_int,
) -> Outcome<(Vec<i32>, Vec<i32>)> {
    let n = numbers::count(nodes)?;
    if nodes > available {
        refuse!(
            MPI_ERR_ARG,
            "a graph of {nodes} nodes, the size of the communicator is {available}"
        );
    }
    // SAFETY: the program gives so many.
    let index = unsafe { numbers::ints(index, n)? };
    let last = index.last().copied().unwrap_or_default();
    if last < 0 || index.windows(2).any(|pair| pair[0] > pair[1]) {
        refuse!(MPI_ERR_ARG, "the index of a graph does not increase: {index:?}");
    }
    // SAFETY: as above.
    let edges = unsafe { numbers::ints(edges, numbers::index(last))? };
    if let Some(edge) = edges.iter().find(|edge| **edge < 0 || **edge >= nodes) {
        refuse!(MPI_ERR_ARG, "an edge to {edge}: the graph has {nodes} nodes");
    }
    Ok((index, edges))
}

/// The edges of one node.
fn edges_from((index, edges): &(Vec<i32>, Vec<i32>), node: usize) -> &[i32] {
    let begin = node.checked_sub(1).map_or(0, |before| index[before]);
    &edges[numbers::index(begin)..numbers::index(index[node])]
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
        let me = numbers::index(comm.engine.rank);
        let shape = (me < graph.0.len()).then(|| {
            let mine = edges_of(edges_from(&graph, me));
            Shape::Graph(Neighbors { sources: mine.clone(), destinations: mine })
        });
        make(call, &comm, shape, |made| made.graph = Some(graph), new)
    }
}

fn graph(comm: &Comm) -> Outcome<&(Vec<i32>, Vec<i32>)> {
    match &comm.graph {
        Some(graph) => Ok(graph),
        None => refuse!(MPI_ERR_TOPOLOGY, "the communicator is no graph"),
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
    let (all_index, all_edges) = graph(&comm)?;
    // SAFETY: the program gives room for so many.
    unsafe {
        give_all(all_index, index, numbers::count(max_index)?);
        give_all(all_edges, edges, numbers::count(max_edges)?);
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
    let (all_index, all_edges) = graph(&comm)?;
    // SAFETY: as the program promises.
    unsafe {
        give(numbers::int(all_index.len()), nodes)?;
        give(numbers::int(all_edges.len()), edges)
    }
}

fn neighbors_of(comm: &Comm, rank: c_int) -> Outcome<&[i32]> {
    comm.engine.job_rank(rank)?;
    Ok(edges_from(graph(comm)?, numbers::index(rank)))
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
