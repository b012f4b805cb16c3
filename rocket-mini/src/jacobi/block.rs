//! A rank's part of the domain: two grids with ghost cells around them.

use std::hint::black_box;

use super::kernel::{Change, Stencil};
use super::{Costly, Error, Extent, Face, Problem};

/// The cells of a block with one layer of ghost cells on each side.
///
/// Ghost cells at the boundary of the domain hold boundary values and never
/// change; the others are copies of a neighbour's cells.
#[derive(Debug)]
pub(super) struct Block {
    problem: Problem,
    extent: Extent,
    /// Two grids, `distance` apart.
    cells: Vec<f64>,
    distance: usize,
    /// Whether the current iterate is the second grid.
    second_is_current: bool,
}

/// The two grids lie this far from a whole number of pages apart, in cells:
/// at equal offsets in their pages, each store would hold up the loads after it.
const STAGGER: usize = 64;
const PAGE: usize = 4096 / size_of::<f64>();

impl Block {
    /// The block at its first iterate: zero inside, the boundary values around.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when the grids cannot be allocated.
    pub fn new(problem: Problem, extent: Extent) -> Result<Self, Error> {
        let [nx, ny, nz] = extent.lengths.map(|length| length + 2);
        let distance = (nx * ny * nz).next_multiple_of(PAGE) + STAGGER;
        let length = 2 * distance;
        let mut cells = Vec::new();
        cells
            .try_reserve_exact(length)
            .map_err(|_| Error::OutOfMemory { bytes: length * size_of::<f64>() })?;
        for _ in 0..2 {
            for z in 0..nz {
                for y in 0..ny {
                    let [sx, sy, sz] = extent.start;
                    cells.extend((0..nx).map(|x| problem.first_iterate([sx + x, sy + y, sz + z])));
                }
            }
            cells.resize(cells.len().next_multiple_of(distance), 0.0);
        }
        Ok(Self { problem, extent, cells, distance, second_is_current: false })
    }

    /// Makes the next iterate the current one. With `change` given, adds by
    /// how much each cell changed.
    ///
    /// A costly cell is computed again and again with the same result.
    pub fn sweep(&mut self, costly: Option<Costly>, mut change: Option<&mut Change>) {
        let extent = self.extent;
        let size = self.problem.size;
        let [nx, ny, nz] = extent.lengths;
        let (along_y, along_z) = self.strides();
        let first = self.index([1, 1, 1]);
        let (old, new) = self.current_and_next();
        for z in 0..nz {
            let times = costly.map_or(1, |costly| costly.times(extent.start[2] + z, size));
            for y in 0..ny {
                let row = first + z * along_z + y * along_y;
                let stencil = Stencil {
                    centre: &old[row - 1..row + nx + 1],
                    south: &old[row - along_y..][..nx],
                    north: &old[row + along_y..][..nx],
                    below: &old[row - along_z..][..nx],
                    above: &old[row + along_z..][..nx],
                };
                let new = &mut new[row..row + nx];
                stencil.relax(new);
                for _ in 1..times {
                    stencil.relax(black_box(&mut *new));
                }
                if let Some(change) = &mut change {
                    change.add_row(&old[row..row + nx], new);
                }
            }
        }
        self.second_is_current = !self.second_is_current;
    }

    /// The planes of cells at both ends of z, which are sent and received where
    /// they are: the ghost cells at their edges travel too, and nobody reads them.
    pub fn planes(&mut self) -> Planes<'_> {
        let (_, along_z) = self.strides();
        let end = self.index([0, 0, self.extent.lengths[2] + 1]);
        let (cells, above) = self.current_mut().split_at_mut(end);
        let (ghosts_below, inside) = cells.split_at_mut(along_z);
        Planes {
            ghosts_below,
            lowest: &inside[..along_z],
            highest: &inside[inside.len() - along_z..],
            ghosts_above: &mut above[..along_z],
        }
    }

    /// Copies the cells on a face along x or y to `buffer`, which must have
    /// room for exactly [`Extent::face_cells`] of them.
    pub fn pack(&self, face: Face, buffer: &mut [f64]) {
        let layer = if face.is_upper() { self.extent.lengths[face.axis()] } else { 1 };
        let rows = self.face_rows(face, layer);
        let cells = self.current();
        for (from, to) in rows.starts().zip(buffer.chunks_exact_mut(rows.length)) {
            if rows.step == 1 {
                to.copy_from_slice(&cells[from..from + rows.length]);
            } else {
                let column = cells[from..].iter().step_by(rows.step);
                for (to, cell) in to.iter_mut().zip(column) {
                    *to = *cell;
                }
            }
        }
    }

    /// Copies a neighbour's cells to the ghost cells beyond a face along x or y.
    pub fn unpack(&mut self, face: Face, buffer: &[f64]) {
        let layer = if face.is_upper() { self.extent.lengths[face.axis()] + 1 } else { 0 };
        let rows = self.face_rows(face, layer);
        let cells = self.current_mut();
        for (to, from) in rows.starts().zip(buffer.chunks_exact(rows.length)) {
            if rows.step == 1 {
                cells[to..to + rows.length].copy_from_slice(from);
            } else {
                let column = cells[to..].iter_mut().step_by(rows.step);
                for (cell, from) in column.zip(from) {
                    *cell = *from;
                }
            }
        }
    }

    /// Calls `visit` with the number of each cell in the domain, its place,
    /// and its value.
    pub fn for_each_cell(&self, mut visit: impl FnMut(u64, [usize; 3], f64)) {
        let [nx, ny, nz] = self.extent.lengths;
        let size = self.problem.size;
        for z in 0..nz {
            for y in 0..ny {
                let row = self.index([1, y + 1, z + 1]);
                for (x, value) in self.current()[row..row + nx].iter().enumerate() {
                    let [x, y, z] = [
                        self.extent.start[0] + x,
                        self.extent.start[1] + y,
                        self.extent.start[2] + z,
                    ];
                    let number = ((z * size + y) * size + x) as u64;
                    visit(number, [x + 1, y + 1, z + 1], *value);
                }
            }
        }
    }

    /// The current iterate.
    fn current(&self) -> &[f64] {
        let (first, second) = self.cells.split_at(self.distance);
        if self.second_is_current { second } else { first }
    }

    fn current_mut(&mut self) -> &mut [f64] {
        let (first, second) = self.cells.split_at_mut(self.distance);
        if self.second_is_current { second } else { first }
    }

    /// The current iterate, and room for the next.
    fn current_and_next(&mut self) -> (&[f64], &mut [f64]) {
        let (first, second) = self.cells.split_at_mut(self.distance);
        if self.second_is_current { (second, first) } else { (first, second) }
    }

    /// The layer of cells across x or y, the axis of a face, as rows in memory.
    fn face_rows(&self, face: Face, layer: usize) -> FaceRows {
        let [nx, ny, nz] = self.extent.lengths;
        let (along_y, along_z) = self.strides();
        let (first, length, step) = if face.axis() == 0 {
            (self.index([layer, 1, 1]), ny, along_y)
        } else {
            (self.index([1, layer, 1]), nx, 1)
        };
        FaceRows { first, count: nz, distance: along_z, length, step }
    }

    /// The distance in memory of neighbours along y and along z.
    fn strides(&self) -> (usize, usize) {
        let [nx, ny, _] = self.extent.lengths;
        (nx + 2, (nx + 2) * (ny + 2))
    }

    /// Where a cell lies in memory; its coordinates count ghost cells.
    fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        let (along_y, along_z) = self.strides();
        z * along_z + y * along_y + x
    }
}

/// The planes at both ends of z, with the ghost cells at their edges.
pub(super) struct Planes<'a> {
    /// To be filled by the neighbour below.
    pub ghosts_below: &'a mut [f64],
    /// The first cells along z.
    pub lowest: &'a [f64],
    /// The last cells along z.
    pub highest: &'a [f64],
    /// To be filled by the neighbour above.
    pub ghosts_above: &'a mut [f64],
}

/// A layer of cells: `count` rows that start `distance` apart, each of
/// `length` cells that lie `step` apart.
struct FaceRows {
    first: usize,
    count: usize,
    distance: usize,
    length: usize,
    step: usize,
}

impl FaceRows {
    /// Where each row starts.
    fn starts(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, distance) = (self.first, self.distance);
        (0..self.count).map(move |row| first + row * distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jacobi::ProcessGrid;

    fn problem(size: usize) -> Problem {
        Problem { size }
    }

    #[test]
    fn ghost_cells_are_the_neighbours_cells() {
        let grid = ProcessGrid::new(12, 9).unwrap();
        let mut blocks: Vec<Block> = (0..12).map(|rank| numbered(grid.extent(rank))).collect();
        for rank in 0..12 {
            for face in Face::ALL {
                let Some(other) = grid.neighbour(rank, face) else {
                    continue;
                };
                match face {
                    Face::Below => {
                        let plane = blocks[other].planes().highest.to_vec();
                        blocks[rank].planes().ghosts_below.copy_from_slice(&plane);
                    }
                    Face::Above => {
                        let plane = blocks[other].planes().lowest.to_vec();
                        blocks[rank].planes().ghosts_above.copy_from_slice(&plane);
                    }
                    side => {
                        let mut buffer = vec![0.0; grid.extent(rank).face_cells(side)];
                        blocks[other].pack(side.opposite(), &mut buffer);
                        blocks[rank].unpack(side, &buffer);
                    }
                }
            }
        }
        for (rank, block) in blocks.iter().enumerate() {
            for node in nodes(block.extent) {
                let faces = Face::ALL.into_iter().filter(|face| {
                    let end =
                        if face.is_upper() { block.extent.lengths[face.axis()] + 1 } else { 0 };
                    node[face.axis()] == end
                });
                let expected = match faces.collect::<Vec<_>>()[..] {
                    [] => number(block.extent, node),
                    [face] if grid.neighbour(rank, face).is_some() => number(block.extent, node),
                    [_] => UNKNOWN,
                    // Nobody reads the ghost cells at edges.
                    _ => continue,
                };
                assert_eq!(block.current()[block.index(node)], expected, "{rank}: {node:?}");
            }
        }
    }

    const UNKNOWN: f64 = -1.0;

    /// A block whose cells hold their numbers, with nothing known around them.
    fn numbered(extent: Extent) -> Block {
        let mut block = Block::new(problem(9), extent).unwrap();
        block.current_mut().fill(UNKNOWN);
        for node in nodes(extent) {
            if (0..3).all(|axis| (1..=extent.lengths[axis]).contains(&node[axis])) {
                let at = block.index(node);
                block.current_mut()[at] = number(extent, node);
            }
        }
        block
    }

    /// All cells of a block and around it.
    fn nodes(extent: Extent) -> impl Iterator<Item = [usize; 3]> {
        let [nx, ny, nz] = extent.lengths.map(|length| length + 2);
        (0..nx * ny * nz).map(move |i| [i % nx, i / nx % ny, i / nx / ny])
    }

    /// The number in the domain of a cell of a block.
    fn number(extent: Extent, node: [usize; 3]) -> f64 {
        let [x, y, z] = [0, 1, 2].map(|axis| (extent.start[axis] + node[axis]) as f64);
        x + 100.0 * y + 10_000.0 * z
    }

    #[test]
    fn costly_cells_have_the_same_values() {
        let whole = ProcessGrid::new(1, 10).unwrap().extent(0);
        let mut plain = Block::new(problem(10), whole).unwrap();
        let mut uneven = Block::new(problem(10), whole).unwrap();
        let costly = Costly { fraction: 0.5, factor: 7 };
        for _ in 0..5 {
            plain.sweep(None, None);
            uneven.sweep(Some(costly), None);
        }
        assert_eq!(plain.current(), uneven.current());
    }

    #[test]
    fn costly_cells_cost_more() {
        let whole = ProcessGrid::new(1, 48).unwrap().extent(0);
        let mut block = Block::new(problem(48), whole).unwrap();
        let mut fastest = |costly| {
            (0..9)
                .map(|_| {
                    let start = std::time::Instant::now();
                    block.sweep(costly, None);
                    start.elapsed()
                })
                .min()
                .unwrap()
        };
        let plain = fastest(None);
        let uneven = fastest(Some(Costly { fraction: 1.0, factor: 50 }));
        assert!(uneven > 5 * plain, "{uneven:?} against {plain:?}");
    }
}
