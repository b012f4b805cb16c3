//! Topologies (MPI-4.1 chapter 8): grids and graphs of ranks.

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::create;
use vrt_core::comm::handle::CommunicatorHandle;
use vrt_core::comm::shape::{Edge, Grid, Neighbors, Shape};
use vrt_core::operation;

use crate::call::{Call, functions};
use crate::communicator::Comm;
use crate::fault::{Outcome, refuse};
use crate::info::Info;
use crate::numbers;

functions! {
    MPI_Dims_create(ranks: c_int, n: c_int, dims: *mut c_int) on Nothing when Always = dims_create;
    MPI_Cart_create(
        comm: MPI_Comm, n: c_int, dims: *const c_int, periods: *const c_int, reorder: c_int,
        new: *mut MPI_Comm,
    ) on Comm(comm) = cart_create;
    MPI_Cart_sub(comm: MPI_Comm, remain: *const c_int, new: *mut MPI_Comm) on Comm(comm) = cart_sub;
    MPI_Cart_get(
        comm: MPI_Comm, max: c_int, dims: *mut c_int, periods: *mut c_int, coords: *mut c_int,
    ) on Comm(comm) = cart_get;
    MPI_Cartdim_get(comm: MPI_Comm, n: *mut c_int) on Comm(comm) = cartdim_get;
    MPI_Cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) on Comm(comm) = cart_rank;
    MPI_Cart_coords(comm: MPI_Comm, rank: c_int, max: c_int, coords: *mut c_int)
        on Comm(comm) = cart_coords;
    MPI_Cart_shift(
        comm: MPI_Comm, direction: c_int, by: c_int, source: *mut c_int, dest: *mut c_int,
    ) on Comm(comm) = cart_shift;
    MPI_Cart_map(
        comm: MPI_Comm, n: c_int, dims: *const c_int, periods: *const c_int, rank: *mut c_int,
    ) on Comm(comm) = cart_map;
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
    MPI_Topo_test(comm: MPI_Comm, kind: *mut c_int) on Comm(comm) = topo_test;
}

unsafe fn give(value: c_int, to: *mut c_int) -> Outcome {
    // SAFETY: the program gives room for a number.
    unsafe { to.write(value) };
    Ok(())
}

/// Numbers to the program, as many as it has room for.
unsafe fn give_all(values: &[c_int], to: *mut c_int, room: usize) {
    for (at, value) in values.iter().take(room).enumerate() {
        // SAFETY: the caller has room for so many.
        unsafe { to.add(at).write(*value) };
    }
}

/// Makes a communicator of the ranks that have a shape in it, and gives it to the program.
unsafe fn make(
    call: Call,
    comm: &Comm,
    shape: Option<Shape>,
    finish: impl FnOnce(&mut Comm),
    new: *mut MPI_Comm,
) -> Outcome {
    let color = shape.as_ref().map(|_| 0);
    let shape = shape.unwrap_or(Shape::Plain);
    let split = create::split(&comm.engine, color, comm.engine.rank, shape, *call.site);
    let engine: Option<CommunicatorHandle> = operation::drive(call.may_block(), split)?;
    let handle = match engine {
        None => MPI_COMM_NULL,
        Some(engine) => {
            let mut made = Comm::new(engine);
            made.errhandler.replace(comm.errhandler.borrow().clone());
            finish(&mut made);
            MPI_Comm(call.process.comms.add(made))
        }
    };
    // SAFETY: the program gives room for a handle.
    unsafe { new.write(handle) };
    Ok(())
}

/// How `ranks` ranks are divided among dimensions, as equally as can be, the largest first; dimensions
/// that are not 0 are given (MPI-4.1 section 8.5.2).
unsafe fn dims_create(_: Call, ranks: c_int, n: c_int, dims: *mut c_int) -> Outcome {
    let n = numbers::count(n)?;
    // SAFETY: the program gives so many dimensions.
    let given: Vec<i64> = unsafe { numbers::list(dims, n)? };
    if ranks <= 0 {
        refuse!(MPI_ERR_DIMS, "{ranks} ranks cannot be divided among dimensions");
    }
    if let Some(negative) = given.iter().find(|dim| **dim < 0) {
        refuse!(MPI_ERR_DIMS, "a dimension is {negative}: negative");
    }
    let fixed: i64 = given.iter().filter(|dim| **dim > 0).product();
    let free = given.iter().filter(|dim| **dim == 0).count();
    let rest = i64::from(ranks) / fixed;
    if rest * fixed != i64::from(ranks) || (free == 0 && rest != 1) {
        refuse!(MPI_ERR_DIMS, "{ranks} ranks cannot be divided among dimensions {given:?}");
    }
    let mut chosen = balanced(rest, free).into_iter();
    for (at, dim) in given.iter().enumerate().filter(|(_, dim)| **dim == 0) {
        debug_assert_eq!(*dim, 0);
        // SAFETY: as above.
        unsafe { dims.add(at).write(chosen.next().unwrap_or(1) as c_int) };
    }
    Ok(())
}

/// The factors of a number, `n` of them, largest first: such that the largest and the smallest differ least,
/// and of those such that the smallest is largest.
fn balanced(number: i64, n: usize) -> Vec<i64> {
    let divisors: Vec<i64> = {
        let roots = (1..).take_while(|small| small * small <= number);
        let mut all: Vec<i64> = roots
            .filter(|small| number % small == 0)
            .flat_map(|small| [small, number / small])
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let mut search = Balance { divisors, chosen: Vec::new(), best: vec![number; n.min(1)] };
    if n > 1 {
        search.best = [vec![number], vec![1; n - 1]].concat();
        search.choose(number, n, number);
    }
    search.best
}

/// A search for factors.
struct Balance {
    divisors: Vec<i64>,
    chosen: Vec<i64>,
    best: Vec<i64>,
}

impl Balance {
    /// How far the largest and the smallest differ.
    fn spread(factors: &[i64]) -> i64 {
        factors.first().zip(factors.last()).map_or(0, |(first, last)| first - last)
    }

    fn is_better(&self) -> bool {
        let spreads = (Balance::spread(&self.chosen), Balance::spread(&self.best));
        let smallest_first = self.chosen.iter().rev().gt(self.best.iter().rev());
        spreads.0 < spreads.1 || (spreads.0 == spreads.1 && smallest_first)
    }

    /// Chooses `n` more factors of what is left, none of them above `most`.
    fn choose(&mut self, rest: i64, n: usize, most: i64) {
        if n == 0 {
            if rest == 1 && self.is_better() {
                self.best.clone_from(&self.chosen);
            }
            return;
        }
        // Of what is left, the smallest factor is at most the mean, the largest at least.
        let mean = (rest as f64).powf(1.0 / n as f64);
        for at in 0..self.divisors.len() {
            let factor = self.divisors[at];
            let largest = self.chosen.first().copied().unwrap_or(factor);
            let least_spread = largest as f64 - mean.min(factor as f64) - 0.5;
            if factor > most
                || (self.chosen.is_empty() && least_spread > Balance::spread(&self.best) as f64)
            {
                break;
            }
            if (factor as f64) < mean - 0.5
                || rest % factor != 0
                || least_spread > Balance::spread(&self.best) as f64
            {
                continue;
            }
            self.chosen.push(factor);
            self.choose(rest / factor, n - 1, factor);
            self.chosen.pop();
        }
    }
}

/// A grid as it is given, whose dimensions have so many ranks at least.
unsafe fn grid_of(
    n: c_int,
    dims: *const c_int,
    periods: *const c_int,
    least: c_int,
) -> Outcome<Grid> {
    let n = numbers::count(n)?;
    // SAFETY: the program gives so many.
    let (dims, periods) = unsafe { (numbers::list(dims, n)?, numbers::list(periods, n)?) };
    if let Some(dim) = dims.iter().find(|dim| **dim < least.into()) {
        refuse!(MPI_ERR_DIMS, "a dimension has {dim} ranks: {least} and more are allowed");
    }
    Ok(Grid {
        dims: dims.into_iter().map(|dim| dim as c_int).collect(),
        periods: periods.into_iter().map(|periodic| periodic != 0).collect(),
    })
}

/// How many ranks a grid has.
fn size_of_grid(grid: &Grid, available: c_int) -> Outcome<c_int> {
    let ranks = grid.dims.iter().fold(1i64, |all, dim| all.saturating_mul((*dim).into()));
    if ranks > available.into() {
        refuse!(
            MPI_ERR_ARG,
            "a grid of {:?} has {ranks} ranks, the communicator has {available}",
            grid.dims
        );
    }
    Ok(ranks as c_int)
}

unsafe fn cart_create(
    call: Call,
    comm: MPI_Comm,
    n: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _: c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    comm.expect_intra()?;
    // SAFETY: as the program promises.
    unsafe {
        let grid = grid_of(n, dims, periods, 1)?;
        let ranks = size_of_grid(&grid, comm.engine.size)?;
        let shape = (comm.engine.rank < ranks).then_some(Shape::Cartesian(grid));
        make(call, &comm, shape, |_| (), new)
    }
}

/// The grid of a communicator.
fn grid(comm: &Comm) -> Outcome<&Grid> {
    match &comm.engine.shape {
        Shape::Cartesian(grid) => Ok(grid),
        _ => refuse!(MPI_ERR_TOPOLOGY, "the communicator is no grid"),
    }
}

fn coordinates(grid: &Grid, rank: c_int) -> Vec<c_int> {
    let mut coords = vec![0; grid.dims.len()];
    grid.coordinates(rank, &mut coords);
    coords
}

unsafe fn cart_sub(
    call: Call,
    comm: MPI_Comm,
    remain: *const c_int,
    new: *mut MPI_Comm,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let whole = grid(&comm)?;
    // SAFETY: the program gives a flag for each dimension.
    let remain = unsafe { numbers::list(remain, whole.dims.len())? };
    let keeps = |at: usize| remain[at] != 0;
    let kept = |all: Vec<usize>| -> Grid {
        Grid {
            dims: all.iter().map(|at| whole.dims[*at]).collect(),
            periods: all.iter().map(|at| whole.periods[*at]).collect(),
        }
    };
    let part = kept((0..whole.dims.len()).filter(|at| keeps(*at)).collect());
    let coords = coordinates(whole, comm.engine.rank);
    // Ranks with the same coordinates in the other dimensions come together.
    let (mut color, mut key) = (0, 0);
    for (at, (dim, coord)) in whole.dims.iter().zip(coords).enumerate() {
        let number = if keeps(at) { &mut key } else { &mut color };
        *number = *number * dim + coord;
    }
    let shape = Shape::Cartesian(part);
    let split = create::split(&comm.engine, Some(color as u32), key, shape, *call.site);
    let engine = operation::drive(call.may_block(), split)?;
    let handle = match engine {
        None => MPI_COMM_NULL,
        Some(engine) => {
            let made = Comm::new(engine);
            made.errhandler.replace(comm.errhandler.borrow().clone());
            MPI_Comm(call.process.comms.add(made))
        }
    };
    // SAFETY: the program gives room for a handle.
    unsafe { new.write(handle) };
    Ok(())
}

unsafe fn cart_get(
    call: Call,
    comm: MPI_Comm,
    max: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let (grid, room) = (grid(&comm)?, numbers::count(max)?);
    let closed: Vec<c_int> = grid.periods.iter().map(|periodic| (*periodic).into()).collect();
    // SAFETY: the program gives room for so many.
    unsafe {
        give_all(&grid.dims, dims, room);
        give_all(&closed, periods, room);
        give_all(&coordinates(grid, comm.engine.rank), coords, room);
    }
    Ok(())
}

unsafe fn cartdim_get(call: Call, comm: MPI_Comm, n: *mut c_int) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe { give(grid(&comm)?.dims.len() as c_int, n) }
}

unsafe fn cart_rank(call: Call, comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> Outcome {
    let comm = call.process.comm(comm)?;
    let grid = grid(&comm)?;
    // SAFETY: the program gives a coordinate for each dimension.
    let coords: Vec<c_int> = unsafe { numbers::list(coords, grid.dims.len())? }
        .into_iter()
        .map(|coord| coord as c_int)
        .collect();
    let Some(found) = grid.rank(&coords) else {
        refuse!(MPI_ERR_ARG, "{coords:?} lies outside of the grid {:?}", grid.dims);
    };
    // SAFETY: as the program promises.
    unsafe { give(found, rank) }
}

unsafe fn cart_coords(
    call: Call,
    comm: MPI_Comm,
    rank: c_int,
    max: c_int,
    coords: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let (grid, room) = (grid(&comm)?, numbers::count(max)?);
    comm.engine.job_rank(rank)?;
    // SAFETY: the program gives room for so many.
    unsafe { give_all(&coordinates(grid, rank), coords, room) };
    Ok(())
}

unsafe fn cart_shift(
    call: Call,
    comm: MPI_Comm,
    direction: c_int,
    by: c_int,
    source: *mut c_int,
    dest: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let grid = grid(&comm)?;
    if direction < 0 || direction as usize >= grid.dims.len() {
        refuse!(MPI_ERR_ARG, "there is no dimension {direction}: the grid has {}", grid.dims.len());
    }
    let shifted =
        |by| grid.shifted(comm.engine.rank, direction as usize, by).unwrap_or(MPI_PROC_NULL);
    // SAFETY: as the program promises.
    unsafe {
        give(shifted(-by), source)?;
        give(shifted(by), dest)
    }
}

unsafe fn cart_map(
    call: Call,
    comm: MPI_Comm,
    n: c_int,
    dims: *const c_int,
    periods: *const c_int,
    rank: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe {
        // As elsewhere, a grid without a place is one that nobody is in.
        let ranks = size_of_grid(&grid_of(n, dims, periods, 0)?, comm.engine.size)?;
        let me = comm.engine.rank;
        give(if me < ranks { me } else { MPI_UNDEFINED }, rank)
    }
}

/// A graph as it is given: where the edges of each node end, and the edges.
unsafe fn graph_of(
    nodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    available: c_int,
) -> Outcome<(Vec<i32>, Vec<i32>)> {
    let n = numbers::count(nodes)?;
    if nodes > available {
        refuse!(MPI_ERR_ARG, "a graph of {nodes} nodes, the communicator has {available} ranks");
    }
    // SAFETY: the program gives so many.
    let index: Vec<i32> =
        unsafe { numbers::list(index, n)? }.into_iter().map(|end| end as i32).collect();
    let last = index.last().copied().unwrap_or_default();
    if last < 0 || index.windows(2).any(|pair| pair[0] > pair[1]) {
        refuse!(MPI_ERR_ARG, "the index of a graph does not increase: {index:?}");
    }
    // SAFETY: as above.
    let edges: Vec<i32> = unsafe { numbers::list(edges, last as usize)? }
        .into_iter()
        .map(|edge| edge as i32)
        .collect();
    if let Some(edge) = edges.iter().find(|edge| **edge < 0 || **edge >= nodes) {
        refuse!(MPI_ERR_ARG, "an edge to {edge}: the graph has {nodes} nodes");
    }
    Ok((index, edges))
}

fn edges_of(ranks: &[i32]) -> Vec<Edge> {
    ranks.iter().map(|rank| Edge { rank: Some(*rank), label: 0 }).collect()
}

/// The edges of one node.
fn edges_from((index, edges): &(Vec<i32>, Vec<i32>), node: usize) -> &[i32] {
    let begin = if node == 0 { 0 } else { index[node - 1] };
    &edges[begin as usize..index[node] as usize]
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
        let me = comm.engine.rank as usize;
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
        give(all_index.len() as c_int, nodes)?;
        give(all_edges.len() as c_int, edges)
    }
}

fn neighbors_of(comm: &Comm, rank: c_int) -> Outcome<&[i32]> {
    comm.engine.job_rank(rank)?;
    Ok(edges_from(graph(comm)?, rank as usize))
}

unsafe fn graph_neighbors_count(
    call: Call,
    comm: MPI_Comm,
    rank: c_int,
    count: *mut c_int,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe { give(neighbors_of(&comm, rank)?.len() as c_int, count) }
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

/// The weights of edges: none where the program says that there are none.
unsafe fn weights_of(weights: *const c_int, n: usize) -> Outcome<Option<Vec<i32>>> {
    if std::ptr::eq(weights, MPI_UNWEIGHTED) {
        return Ok(None);
    }
    if std::ptr::eq(weights, MPI_WEIGHTS_EMPTY) || n == 0 {
        return Ok(Some(Vec::new()));
    }
    // SAFETY: the program gives so many.
    let weights = unsafe { numbers::list(weights, n)? };
    if let Some(weight) = weights.iter().find(|weight| **weight < 0) {
        refuse!(MPI_ERR_ARG, "the weight of an edge is {weight}: negative");
    }
    Ok(Some(weights.into_iter().map(|weight| weight as i32).collect()))
}

fn narrow(ranks: Vec<i64>) -> Vec<i32> {
    ranks.into_iter().map(|rank| rank as i32).collect()
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
        let sources = narrow(numbers::list(sources, n_in)?);
        let destinations = narrow(numbers::list(destinations, n_out)?);
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
        let sources = narrow(numbers::list(sources, n)?);
        let degrees = numbers::counts(degrees, n)?;
        let total = degrees.iter().sum();
        let destinations = narrow(numbers::list(destinations, total)?);
        create::check_neighbors(&comm.engine, &sources)?;
        create::check_neighbors(&comm.engine, &destinations)?;
        let weights = weights_of(weights, total)?;
        let mut named: Vec<Weighted> = Vec::with_capacity(total);
        let mut next = 0;
        for (source, degree) in sources.iter().zip(&degrees) {
            for _ in 0..*degree {
                let weight = weights.as_ref().and_then(|all| all.get(next)).copied();
                named.push([*source, destinations[next], weight.unwrap_or(1)]);
                next += 1;
            }
        }
        let (engine, site) = (comm.engine.clone(), *call.site);
        let is_weighted = weights.is_some();
        let all = operation::drive(call.may_block(), async move {
            // Every rank gets all edges: how many each names, then those, padded to the most.
            let counts = create::all_gather(&engine, [named.len() as i32], site).await?;
            let most = counts.iter().map(|[n]| *n).max().unwrap_or_default();
            let mut rows = Vec::new();
            for at in 0..most as usize {
                let edge = named.get(at).copied().unwrap_or([-1, -1, 0]);
                rows.push(create::all_gather(&engine, edge, site).await?);
            }
            let size = engine.size as usize;
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
        give(around.sources.len() as c_int, indegree)?;
        give(around.destinations.len() as c_int, outdegree)?;
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

#[cfg(test)]
mod tests {
    use super::balanced;

    #[test]
    fn dimensions_are_balanced() {
        assert_eq!(balanced(12, 2), [4, 3]);
        assert_eq!(balanced(64, 3), [4, 4, 4]);
        assert_eq!(balanced(6, 3), [3, 2, 1]);
        assert_eq!(balanced(7, 2), [7, 1]);
        assert_eq!(balanced(1, 2), [1, 1]);
        assert_eq!(balanced(36, 3), [4, 3, 3]);
    }
}
