//! The ghost cells of a block: beyond the ends of the domain, and copies of a neighbour's cells.

use std::ops::Range;

use super::GHOSTS;
use super::block::Block;
use super::problem::Boundary;

impl Block {
    /// Fills the ghost cells beyond the ends of the domain along an axis, if this block is at an end.
    pub fn fill_boundary(&mut self, axis: usize) {
        if self.ghosts[axis] == 0 {
            return;
        }
        let n = self.extent.lengths[axis];
        let boundaries = self.problem.boundaries()[axis];
        let starts = self.extent.start[axis] == 0;
        let ends = self.extent.start[axis] + n == self.domain[axis];
        for (side, is_here) in [starts, ends].into_iter().enumerate() {
            if !is_here {
                continue;
            }
            for depth in 0..GHOSTS {
                // Places count ghost cells: the first cell of the block is at GHOSTS.
                let (ghost, first, mirror, wrapped) = if side == 0 {
                    let ghost = GHOSTS - 1 - depth;
                    (ghost, GHOSTS, GHOSTS + depth, ghost + n)
                } else {
                    let ghost = GHOSTS + n + depth;
                    (ghost, GHOSTS + n - 1, GHOSTS + n - 1 - depth, ghost - n)
                };
                let boundary = boundaries[side];
                let from = match boundary {
                    // Across x and z the other end may be another rank's.
                    Boundary::Periodic if axis != 1 => continue,
                    Boundary::Periodic => wrapped,
                    Boundary::Wall => mirror,
                    Boundary::Open | Boundary::Outlet(_) | Boundary::Burning => first,
                };
                let targets = self.rows(axis, ghost..ghost + 1);
                let sources = self.rows(axis, from..from + 1);
                for (target, source) in targets.zip(sources) {
                    self.cells.copy_within(source, target.start);
                    self.pass_beyond(boundary, axis, target);
                }
            }
        }
    }

    /// Turns copies of inner cells into the cells beyond a boundary.
    fn pass_beyond(&mut self, boundary: Boundary, axis: usize, copies: Range<usize>) {
        let gas = self.problem.gas();
        let copies = &mut self.cells[copies];
        match boundary {
            Boundary::Wall => copies.iter_mut().for_each(|cell| cell[1 + axis] = -cell[1 + axis]),
            Boundary::Outlet(pressure) => {
                for cell in copies {
                    let mut state = gas.primitive(*cell);
                    if state[1 + axis].abs() < gas.sound_speed(&state) {
                        state[4] = pressure;
                        *cell = gas.conserved(state);
                    }
                }
            }
            Boundary::Periodic | Boundary::Open | Boundary::Burning => (),
        }
    }

    /// Whether there are ghost cells along an axis.
    pub fn has_ghosts(&self, axis: usize) -> bool {
        self.ghosts[axis] > 0
    }

    /// Whether the domain is periodic along an axis, so that ghost cells come from the block at the other end.
    pub fn is_periodic(&self, axis: usize) -> bool {
        self.ghosts[axis] > 0 && self.problem.boundaries()[axis][0] == Boundary::Periodic
    }

    /// Copies the cells that a neighbour needs beyond its end to `lent`, replacing its contents: those at the beginning
    /// (side 0) or the end (side 1) of this block.
    pub fn lend(&self, axis: usize, side: usize, lent: &mut Vec<f64>) {
        let n = self.extent.lengths[axis];
        let first = if side == 0 { GHOSTS } else { n };
        lent.clear();
        for row in self.rows(axis, first..first + GHOSTS) {
            lent.extend_from_slice(self.cells[row].as_flattened());
        }
    }

    /// How many numbers a neighbour along an axis needs.
    pub fn lent_values(&self, axis: usize) -> usize {
        self.rows(axis, 0..GHOSTS).map(|row| 5 * row.len()).sum()
    }

    /// Fills ghost cells before (side 0) or after (side 1) this block with a neighbour's cells.
    ///
    /// # Panics
    ///
    /// If the neighbour's block has another number of cells there.
    pub fn borrow(&mut self, axis: usize, side: usize, lent: &[f64]) {
        let first = if side == 0 { 0 } else { self.extent.lengths[axis] + GHOSTS };
        assert_eq!(lent.len(), self.lent_values(axis), "ghost cells of another size");
        let mut rest = lent;
        for row in self.rows(axis, first..first + GHOSTS) {
            let to = self.cells[row].as_flattened_mut();
            let (cells, more) = rest.split_at(to.len());
            to.copy_from_slice(cells);
            rest = more;
        }
    }

    /// The cells at positions along an axis, which count ghost cells, in rows of adjacent cells. Across z and y this
    /// includes ghost cells across x, across y also those across z.
    fn rows(
        &self,
        axis: usize,
        places: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let inside = |axis: usize| self.ghosts[axis]..self.ghosts[axis] + self.extent.lengths[axis];
        let all = |axis: usize| 0..self.extent.lengths[axis] + 2 * self.ghosts[axis];
        let [x, y, z] = match axis {
            0 => [places, inside(1), inside(2)],
            1 => [all(0), places, all(2)],
            _ => [all(0), inside(1), places],
        };
        let (row, plane) = (self.stride(1), self.stride(2));
        z.flat_map(move |z| {
            let x = x.clone();
            y.clone().map(move |y| {
                let first = z * plane + y * row;
                first + x.start..first + x.end
            })
        })
    }
}
