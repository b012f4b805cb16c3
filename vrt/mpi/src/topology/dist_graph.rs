//! Graphs of ranks of which each rank knows its neighbours (MPI-4.1 section 8.5.4).

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::create;
use vrt_core::comm::shape::{Edge, Neighbors, Shape};
use vrt_core::operation;

use super::{edges_of, give_all, make};
use crate::call::{Call, functions};
use crate::communicator::{Comm, give};
use crate::fault::{Outcome, refuse};
use crate::info::Info;
use crate::numbers;

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
    Info::or_empty(call.process, info)?;
    let (n_in, n_out) = (numbers::count(indegree)?, numbers::count(outdegree)?);
    // SAFETY: as the program promises.
    unsafe {
        let sources = numbers::ints(sources, n_in)?;
        let destinations = numbers::ints(destinations, n_out)?;
        create::check_neighbors(&comm.engine, &sources)?;
        create::check_neighbors(&comm.engine, &destinations)?;
        let weights = weights_of(source_weights, n_in)?.zip(weights_of(dest_weights, n_out)?);
        let neighbors =
            Neighbors { sources: edges_of(&sources), destinations: edges_of(&destinations) };
        let shape = Some(Shape::DistributedGraph(neighbors));
        make(call, &comm, shape, |made| made.weights = weights, new)
    }
}

/// An edge with its weight.
type Weighted = [i32; 3];

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
    Info::or_empty(call.process, info)?;
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
        let mut named: Vec<Weighted> = Vec::with_capacity(total);
        let sources = sources.iter().zip(&degrees).flat_map(|(of, n)| std::iter::repeat_n(*of, *n));
        for (next, (source, destination)) in sources.zip(destinations).enumerate() {
            let weight = weights.as_ref().and_then(|all| all.get(next)).copied();
            named.push([source, destination, weight.unwrap_or(1)]);
        }
        let (engine, site) = (comm.engine.clone(), *call.site);
        let is_weighted = weights.is_some();
        let all = operation::drive(call.may_block(), async move {
            // Every rank gets all edges: how many each names, then those, padded to the most.
            let counts = create::all_gather(&engine, [numbers::int(named.len())], site).await?;
            let most = counts.iter().map(|[n]| *n).max().unwrap_or_default();
            let mut rows = Vec::new();
            for at in 0..numbers::index(most) {
                let edge = named.get(at).copied().unwrap_or([-1, -1, 0]);
                rows.push(create::all_gather(&engine, edge, site).await?);
            }
            let size = numbers::index(engine.size);
            let by_rank = (0..size).flat_map(|rank| rows.iter().map(move |row| row[rank]));
            let all: Vec<Weighted> = by_rank.filter(|[from, ..]| *from >= 0).collect();
            Ok::<_, vrt_core::Error>(all)
        })?;
        let me = comm.engine.rank;
        let incoming: Vec<Weighted> = all.iter().filter(|[_, to, _]| *to == me).copied().collect();
        let outgoing: Vec<Weighted> =
            all.iter().filter(|[from, ..]| *from == me).copied().collect();
        let froms: Vec<i32> = incoming.iter().map(|[from, ..]| *from).collect();
        let tos: Vec<i32> = outgoing.iter().map(|[_, to, _]| *to).collect();
        let neighbors = Neighbors { sources: edges_of(&froms), destinations: edges_of(&tos) };
        let weight = |edges: &[Weighted]| edges.iter().map(|[.., weight]| *weight).collect();
        let weights = is_weighted.then(|| (weight(&incoming), weight(&outgoing)));
        let shape = Some(Shape::DistributedGraph(neighbors));
        make(call, &comm, shape, |made| made.weights = weights, new)
    }
}

fn dist_graph(comm: &Comm) -> Outcome<&Neighbors> {
    match &comm.engine.shape {
        Shape::DistributedGraph(neighbors) => Ok(neighbors),
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
        give(comm.weights.is_some().into(), weighted)
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
    let ranks = |edges: &[Edge]| -> Vec<c_int> {
        edges.iter().map(|edge| edge.rank.unwrap_or(MPI_PROC_NULL)).collect()
    };
    let (max_in, max_out) = (numbers::count(max_in)?, numbers::count(max_out)?);
    let wants = |weights: *mut c_int| !std::ptr::eq(weights, MPI_UNWEIGHTED);
    // SAFETY: the program gives room for so many.
    unsafe {
        give_all(&ranks(&around.sources), sources, max_in);
        give_all(&ranks(&around.destinations), destinations, max_out);
        if let Some((incoming, outgoing)) = &comm.weights {
            if wants(source_weights) {
                give_all(incoming, source_weights, max_in);
            }
            if wants(dest_weights) {
                give_all(outgoing, dest_weights, max_out);
            }
        }
    }
    Ok(())
}
