//! Cartesian grids of ranks (MPI-4.1 section 8.5).

use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::create;
use vrt_core::comm::shape::{Grid, Shape};

use super::{give_all, make};
use crate::call::{Call, functions};
use crate::communicator::{Comm, give, made};
use crate::fault::{Outcome, refuse};
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
