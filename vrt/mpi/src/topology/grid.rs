//! Cartesian grids of ranks (MPI-4.1 section 8.5).

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::create;
use vrt_core::comm::dims::{self, DimsError};
use vrt_core::comm::grid::Grid;
use vrt_core::comm::shape::Shape;

use crate::call::{Call, functions};
use crate::communicator::{made, make_in_shape};
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::numbers::{self, give, give_all};
use crate::object::Comm;

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
}

/// Divides `ranks` ranks among dimensions.
unsafe fn dims_create(_: Call, ranks: c_int, n: c_int, dims: *mut c_int) -> Outcome {
    let n = numbers::count(n)?;
    if n > 0 && dims.is_null() {
        refuse!(MPI_ERR_DIMS, "an array of {n} dimensions is missing: the pointer is null");
    }
    // SAFETY: the program gives an array of so many dimensions.
    let dims = if n == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(dims, n) } };
    Ok(dims::fill(ranks, dims)?)
}

impl From<DimsError> for Box<Fault> {
    fn from(error: DimsError) -> Box<Fault> {
        let class = match error {
            DimsError::TooMany { .. } => MPI_ERR_ARG,
            _ => MPI_ERR_DIMS,
        };
        fault(class, error.to_string())
    }
}

/// A grid as given.
///
/// # Safety
/// The arrays have `n` entries.
unsafe fn grid_of(n: c_int, dims: *const c_int, periods: *const c_int) -> Outcome<Grid> {
    let n = numbers::count(n)?;
    // SAFETY: the program gives so many.
    unsafe {
        let periods = numbers::list(periods, n)?.into_iter().map(|periodic| periodic != 0);
        Ok(Grid { dims: numbers::ints(dims, n)?, periods: periods.collect() })
    }
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
        let grid = grid_of(n, dims, periods)?;
        let ranks = dims::places(&grid.dims, 1, comm.engine.size)?;
        make_in_shape(call, &comm, numbers::index(ranks), Shape::Cartesian(grid), new)
    }
}

/// The grid of a communicator.
fn grid(comm: &Comm) -> Outcome<&Grid> {
    match &comm.engine.shape {
        Shape::Cartesian(grid) => Ok(grid),
        _ => refuse!(MPI_ERR_TOPOLOGY, "the communicator is no grid"),
    }
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
    let remain: Vec<bool> = remain.iter().map(|remains| *remains != 0).collect();
    let part = whole.sub(&remain, comm.engine.rank);
    let split = create::part_of_grid(&comm.engine, part, *call.site);
    // SAFETY: the program gives room for a handle.
    unsafe { made(call, &comm, split, new) }
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
        give_all(&grid.coordinates_of(comm.engine.rank), coords, room);
    }
    Ok(())
}

unsafe fn cartdim_get(call: Call, comm: MPI_Comm, n: *mut c_int) -> Outcome {
    let comm = call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe { give(numbers::int(grid(&comm)?.dims.len()), n) }
}

unsafe fn cart_rank(call: Call, comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> Outcome {
    let comm = call.process.comm(comm)?;
    let grid = grid(&comm)?;
    // SAFETY: the program gives a coordinate for each dimension.
    let coords = unsafe { numbers::ints(coords, grid.dims.len())? };
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
    unsafe { give_all(&grid.coordinates_of(rank), coords, room) };
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
    if direction < 0 || numbers::index(direction) >= grid.dims.len() {
        refuse!(MPI_ERR_ARG, "there is no dimension {direction}: the grid has {}", grid.dims.len());
    }
    let (from, to) = grid.shift(comm.engine.rank, numbers::index(direction), by);
    // SAFETY: as the program promises.
    unsafe {
        give(from.unwrap_or(MPI_PROC_NULL), source)?;
        give(to.unwrap_or(MPI_PROC_NULL), dest)
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
        let ranks = dims::places(&grid_of(n, dims, periods)?.dims, 0, comm.engine.size)?;
        let me = comm.engine.rank;
        give(if me < ranks { me } else { MPI_UNDEFINED }, rank)
    }
}
