//! A rank's part of the domain: two grids with ghost cells around them.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::kernel::{Change, Stencil};
use super::{Costly, Error, Extent, Face, Problem};

/// The cells of a block with one layer of ghost cells on each side.
///
/// Ghost cells at the boundary of the domain hold boundary values and never change; the others are
/// copies of a neighbour's cells. How cells are moved to and from messages depends on their layout
/// in memory:
///
/// - across z they are planes, sent and received in place;
/// - across y they are rows, packed and unpacked around the exchange;
/// - across x each lies in another cache line. The sweep touches all of them anyway, so it stores
///   the ghost cells and collects the outgoing cells on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Block {
    problem: Problem,
    extent: Extent,
    /// Two grids, `distance` apart.
    cells: Vec<f64>,
    distance: usize,
    /// Whether the current iterate is the second grid.
    second_is_current: bool,
    /// The buffers of the faces along x and y, in the order of [`Face::ALL`].
    sides: [Option<Buffers>; 4],
}

/// The buffers of a face that is shared with a neighbour.
#[derive(Debug, Serialize, Deserialize)]
struct Buffers {
    /// The neighbour's cells, for the ghost cells.
    incoming: Vec<f64>,
    /// The block's cells on the face.
    outgoing: Vec<f64>,
}

/// What a block exchanges across a face.
pub(super) struct FaceCells<'a> {
    pub incoming: &'a mut [f64],
    pub outgoing: &'a [f64],
}

/// The offset of the two grids from a multiple of the page size, in cells: at equal offsets in
/// their pages, each store would delay the following loads.
const STAGGER: usize = 64;
const PAGE: usize = 4096 / size_of::<f64>();

impl Block {
    /// The block at its first iterate: zero inside, boundary values around. `is_shared` tells which
    /// faces have a neighbour.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the grids cannot be allocated.
    pub(super) fn new(
        problem: Problem,
        extent: Extent,
        is_shared: impl Fn(Face) -> bool,
    ) -> Result<Self, Error> {
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
        let sides = [Face::West, Face::East, Face::South, Face::North].map(|face| {
            // The first iterate inside is zero, and so is the first message.
            let cells = || vec![0.0; extent.face_cells(face)];
            is_shared(face).then(|| Buffers { incoming: cells(), outgoing: cells() })
        });
        Ok(Self { problem, extent, cells, distance, second_is_current: false, sides })
    }

    /// Makes the next iterate the current one. If `change` is given, adds each cell's change to it.
    ///
    /// A costly cell is computed repeatedly with the same result.
    pub(super) fn sweep(&mut self, costly: Option<Costly>, mut change: Option<&mut Change>) {
        let size = self.problem.size;
        let Extent { start: [_, _, first_z], lengths: [nx, ny, nz] } = self.extent;
        let (along_y, along_z) = self.strides();
        let first = self.index([1, 1, 1]);
        let (old, new) = grids(&mut self.cells, self.distance, self.second_is_current);
        let [west, east, ..] = &mut self.sides;
        for z in 0..nz {
            let times = costly.map_or(1, |costly| costly.times(first_z + z, size));
            for y in 0..ny {
                let row = first + z * along_z + y * along_y;
                if let Some(west) = west {
                    old[row - 1] = west.incoming[z * ny + y];
                }
                if let Some(east) = east {
                    old[row + nx] = east.incoming[z * ny + y];
                }
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
                if let Some(west) = west {
                    west.outgoing[z * ny + y] = new[0];
                }
                if let Some(east) = east {
                    east.outgoing[z * ny + y] = new[nx - 1];
                }
                if let Some(change) = &mut change {
                    change.add_row(&old[row..row + nx], new);
                }
            }
        }
        self.second_is_current = !self.second_is_current;
    }

    /// Prepares the messages to the neighbours.
    pub(super) fn pack(&mut self) {
        let [_, ny, _] = self.extent.lengths;
        let layers = [self.y_layer(1), self.y_layer(ny)];
        let (cells, _) = grids(&mut self.cells, self.distance, self.second_is_current);
        let [_, _, south, north] = &mut self.sides;
        for (layer, buffers) in layers.into_iter().zip([south, north]) {
            let Some(buffers) = buffers else { continue };
            for (from, to) in layer.starts().zip(buffers.outgoing.chunks_exact_mut(layer.length)) {
                to.copy_from_slice(&cells[from..from + layer.length]);
            }
        }
    }

    /// The data to exchange across each face, in the order of [`Face::ALL`]; none across x and y
    /// where there is no neighbour. The planes across z include the ghost cells at their edges,
    /// which are never read.
    pub(super) fn faces(&mut self) -> [FaceCells<'_>; 6] {
        let (_, along_z) = self.strides();
        let end = self.index([0, 0, self.extent.lengths[2] + 1]);
        let (cells, _) = grids(&mut self.cells, self.distance, self.second_is_current);
        let (cells, above) = cells.split_at_mut(end);
        let (below, inside) = cells.split_at_mut(along_z);
        let [west, east, south, north] = self.sides.each_mut().map(|side| match side {
            Some(buffers) => {
                FaceCells { incoming: &mut buffers.incoming, outgoing: &buffers.outgoing }
            }
            None => FaceCells { incoming: &mut [], outgoing: &[] },
        });
        let inside = &*inside;
        let below = FaceCells { incoming: below, outgoing: &inside[..along_z] };
        let above = FaceCells {
            incoming: &mut above[..along_z],
            outgoing: &inside[inside.len() - along_z..],
        };
        [west, east, south, north, below, above]
    }

    /// The data to exchange across one face.
    pub(super) fn face(&mut self, face: Face) -> FaceCells<'_> {
        let [west, east, south, north, below, above] = self.faces();
        match face {
            Face::West => west,
            Face::East => east,
            Face::South => south,
            Face::North => north,
            Face::Below => below,
            Face::Above => above,
        }
    }

    /// Stores the messages of the neighbours.
    pub(super) fn unpack(&mut self) {
        let [_, ny, _] = self.extent.lengths;
        let layers = [self.y_layer(0), self.y_layer(ny + 1)];
        let (cells, _) = grids(&mut self.cells, self.distance, self.second_is_current);
        let [_, _, south, north] = &self.sides;
        for (layer, buffers) in layers.into_iter().zip([south, north]) {
            let Some(buffers) = buffers else { continue };
            for (to, from) in layer.starts().zip(buffers.incoming.chunks_exact(layer.length)) {
                cells[to..to + layer.length].copy_from_slice(from);
            }
        }
    }

    /// Calls `visit` with the number of each cell in the domain, its position, and its value.
    pub(super) fn for_each_cell(&self, mut visit: impl FnMut(u64, [usize; 3], f64)) {
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

    /// The rows of cells at one place along y.
    fn y_layer(&self, y: usize) -> Layer {
        let [nx, _, nz] = self.extent.lengths;
        let (_, along_z) = self.strides();
        Layer { first: self.index([1, y, 1]), count: nz, distance: along_z, length: nx }
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

/// The current iterate, and room for the next.
fn grids(cells: &mut [f64], distance: usize, second_is_current: bool) -> (&mut [f64], &mut [f64]) {
    let (first, second) = cells.split_at_mut(distance);
    if second_is_current { (second, first) } else { (first, second) }
}

/// `count` rows of `length` cells that start `distance` apart.
struct Layer {
    first: usize,
    count: usize,
    distance: usize,
    length: usize,
}

impl Layer {
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

    #[test]
    fn blocks_that_exchange_their_faces_compute_what_one_block_does() {
        for (ranks, size) in [(2, 5), (8, 6), (12, 9), (27, 3)] {
            let grid = ProcessGrid::new(ranks, size).unwrap();
            let neighbour = |rank, face| grid.neighbour(rank, face);
            let mut whole = whole(size);
            let mut blocks: Vec<Block> = (0..ranks)
                .map(|rank| {
                    let is_shared = |face| neighbour(rank, face).is_some();
                    Block::new(Problem { size }, grid.extent(rank), is_shared).unwrap()
                })
                .collect();
            for _ in 0..3 * size {
                whole.sweep(None, None);
                blocks.iter_mut().for_each(Block::pack);
                for rank in 0..ranks {
                    for face in Face::ALL {
                        if let Some(other) = neighbour(rank, face) {
                            let [theirs, ours] = [face.opposite() as usize, face as usize];
                            let cells = blocks[other].faces()[theirs].outgoing.to_vec();
                            blocks[rank].faces()[ours].incoming.copy_from_slice(&cells);
                        }
                    }
                }
                for block in &mut blocks {
                    block.unpack();
                    block.sweep(None, None);
                }
            }
            let mut expected = vec![0.0; size.pow(3)];
            whole.for_each_cell(|number, _, value| expected[number as usize] = value);
            for block in &blocks {
                block.for_each_cell(|number, _, value| {
                    assert_eq!(value.to_bits(), expected[number as usize].to_bits());
                });
            }
        }
    }

    /// The domain as one block.
    fn whole(size: usize) -> Block {
        let extent = ProcessGrid::new(1, size).unwrap().extent(0);
        Block::new(Problem { size }, extent, |_| false).unwrap()
    }

    #[test]
    fn costly_cells_have_the_same_values() {
        let (mut plain, mut uneven) = (whole(10), whole(10));
        let costly = Costly { fraction: 0.5, factor: 7, first: 0.0 };
        for _ in 0..5 {
            plain.sweep(None, None);
            uneven.sweep(Some(costly), None);
        }
        assert_eq!(plain.current(), uneven.current());
    }
}
