//! Graphs of ranks of which each rank knows its neighbours (MPI-4.1 section 8.5.4).

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::create;
use vrt_core::comm::graph::{Adjacency, Weights};
use vrt_core::comm::neighbors::{NamedEdge, adjacency};
use vrt_core::comm::shape::Shape;
use vrt_core::operation;

use crate::call::{Call, functions};
use crate::communicator::make_in_shape;
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, give, give_all};
use crate::object::Comm;

functions! {
    MPI_Dist_graph_create(
        comm: MPI_Comm, n: c_int, sources: *const c_int, degrees: *const c_int,
        destinations: *const c_int, weights: *const c_int, info: MPI_Info, reorder: c_int,
        new: *mut MPI_Comm,
    ) on Comm(comm) = dist_graph_create;
    MPI_Dist_graph_create_adjacent(
        comm: MPI_Comm, indegree: c_int, sources: *const c_int, source_weights: *const c_int,
        outdegree: c_int, destinations: *const c_int, dest_weights: *const c_int, info: MPI_Info,
        reorder: c_int, new: *mut MPI_Comm,
    ) on Comm(comm) = dist_graph_create_adjacent;
    MPI_Dist_graph_neighbors_count(
        comm: MPI_Comm, indegree: *mut c_int, outdegree: *mut c_int, weighted: *mut c_int,
    ) on Comm(comm) = dist_graph_neighbors_count;
    MPI_Dist_graph_neighbors(
        comm: MPI_Comm, max_in: c_int, sources: *mut c_int, source_weights: *mut c_int,
        max_out: c_int, destinations: *mut c_int, dest_weights: *mut c_int,
    ) on Comm(comm) = dist_graph_neighbors;
}

/// The weights of edges; `None` if the program passes none.
///
/// # Safety
/// There are so many weights, unless the pointer is one of MPI's two.
unsafe fn weights_of(weights: *const c_int, n: usize) -> Outcome<Option<Vec<i32>>> {
    if std::ptr::eq(weights, MPI_UNWEIGHTED) {
        return Ok(None);
    }
    if std::ptr::eq(weights, MPI_WEIGHTS_EMPTY) || n == 0 {
        return Ok(Some(Vec::new()));
    }
    // SAFETY: the program gives so many.
    let weights = unsafe { numbers::ints(weights, n)? };
    if let Some(weight) = weights.iter().find(|weight| **weight < 0) {
        refuse!(MPI_ERR_ARG, "the weight of an edge is {weight}: negative");
    }
    Ok(Some(weights))
}

unsafe fn dist_graph_create_adjacent(
    call: Call,
    comm: MPI_Comm,
    indegree: c_int,
    sources: *const c_int,
    source_weights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    dest_weights: *const c_int,
    info: MPI_Info,
    _: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    comm.expect_intra()?;
    call.process.info_or_empty(info)?;
    let (n_in, n_out) = (numbers::count(indegree)?, numbers::count(outdegree)?);
    // SAFETY: as the program promises.
    unsafe {
        let sources = numbers::ints(sources, n_in)?;
        let destinations = numbers::ints(destinations, n_out)?;
        create::check_neighbors(&comm.engine, &sources)?;
        create::check_neighbors(&comm.engine, &destinations)?;
        let weights = weights_of(source_weights, n_in)?.zip(weights_of(dest_weights, n_out)?);
        let weights = weights.map(|(sources, destinations)| Weights { sources, destinations });
        let around = Adjacency { sources, destinations, weights };
        make_in_shape(call, &comm, comm.engine.members.len(), Shape::DistributedGraph(around), new)
    }
}

unsafe fn dist_graph_create(
    call: Call,
    comm: MPI_Comm,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights: *const c_int,
    info: MPI_Info,
    _: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    comm.expect_intra()?;
    call.process.info_or_empty(info)?;
    let n = numbers::count(n)?;
    // SAFETY: as the program promises.
    unsafe {
        let sources = numbers::ints(sources, n)?;
        let degrees = numbers::counts(degrees, n)?;
        let total = numbers::sum(&degrees)?;
        let destinations = numbers::ints(destinations, total)?;
        create::check_neighbors(&comm.engine, &sources)?;
        create::check_neighbors(&comm.engine, &destinations)?;
        let weights = weights_of(weights, total)?;
        let sources = sources.iter().zip(&degrees).flat_map(|(of, n)| std::iter::repeat_n(*of, *n));
        let weight = |edge: usize| weights.as_ref().and_then(|all| all.get(edge)).copied();
        let named: Vec<NamedEdge> = sources
            .zip(destinations)
            .enumerate()
            .map(|(at, (from, to))| NamedEdge { from, to, weight: weight(at).unwrap_or(1) })
            .collect();
        let around = adjacency(&comm.engine, &named, weights.is_some(), *call.site);
        let around = operation::drive(call.may_block(), around)?;
        make_in_shape(call, &comm, comm.engine.members.len(), Shape::DistributedGraph(around), new)
    }
}

fn dist_graph(comm: &Comm) -> Outcome<&Adjacency> {
    match &comm.engine.shape {
        Shape::DistributedGraph(around) => Ok(around),
        _ => refuse!(MPI_ERR_TOPOLOGY, "the communicator is no distributed graph"),
    }
}

unsafe fn dist_graph_neighbors_count(
    call: Call,
    comm: MPI_Comm,
    indegree: *mut c_int,
    outdegree: *mut c_int,
    weighted: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let around = dist_graph(&comm)?;
    // SAFETY: as the program promises.
    unsafe {
        give(numbers::int(around.sources.len()), indegree)?;
        give(numbers::int(around.destinations.len()), outdegree)?;
        give(around.weights.is_some().into(), weighted)
    }
}

unsafe fn dist_graph_neighbors(
    call: Call,
    comm: MPI_Comm,
    max_in: c_int,
    sources: *mut c_int,
    source_weights: *mut c_int,
    max_out: c_int,
    destinations: *mut c_int,
    dest_weights: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let around = dist_graph(&comm)?;
    let (max_in, max_out) = (numbers::count(max_in)?, numbers::count(max_out)?);
    let wants = |weights: *mut c_int| !std::ptr::eq(weights, MPI_UNWEIGHTED);
    // SAFETY: the program gives room for so many.
    unsafe {
        give_all(&around.sources, sources, max_in);
        give_all(&around.destinations, destinations, max_out);
        if let Some(weights) = &around.weights {
            if wants(source_weights) {
                give_all(&weights.sources, source_weights, max_in);
            }
            if wants(dest_weights) {
                give_all(&weights.destinations, dest_weights, max_out);
            }
        }
    }
    Ok(())
}
