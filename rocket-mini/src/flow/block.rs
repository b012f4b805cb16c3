//! A rank's part of the grid: cells with ghost cells around them, and the surface above its columns.
//!
//! The grid is straight along x and z; along y each column is divided evenly between the floor and
//! the surface, whose height is given at the corners of columns and changes with time. Only faces
//! across y are tilted, and only they move.
//!
//! A step is Heun's method (SSP, second order). The surface moves evenly during a step, so that the
//! volume of a cell grows by exactly what its faces sweep in either stage, and a uniform flow stays
//! uniform (the geometric conservation law).

use serde::{Deserialize, Serialize};
use wide::{CmpEq, CmpGt, CmpLt};

use super::decomposition::Extent;
use super::flux::{Workspace, gather};
use super::gas::{Conserved, Limiter, Primitive};
use super::geometry::Tilt;
use super::lanes::{LANES, Lanes, Normal};
use super::problem::{Boundary, Problem};
use super::{GHOSTS, cell_checksum};

/// The cells of a block, and its surface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    pub(super) problem: Problem,
    pub(super) limiter: Limiter,
    pub(super) extent: Extent,
    /// Cells of the domain.
    pub(super) domain: [usize; 3],
    /// Ghost cells on either side along each axis: none along an axis of one cell.
    pub(super) ghosts: [usize; 3],
    /// Conserved quantities per volume, x fastest, including ghost cells.
    pub(super) cells: Vec<Conserved>,
    /// The same at the beginning of the step, without ghost cells.
    before: Vec<Conserved>,
    /// The height of the surface at the corners of columns, x fastest.
    pub(super) heights: Vec<f64>,
    heights_before: Vec<f64>,
    /// How fast the propellant recedes at those corners.
    pub(super) burning: Vec<f64>,
    /// How fast the surface moves at those corners because the solid behind it deforms.
    pub motion: Vec<f64>,
    /// How long the front of ignition takes from one end of the domain to the other along x; 0: the whole surface burns
    /// from the beginning.
    front: f64,
    /// What has entered through the boundary of the domain at this block.
    pub(super) gained: Conserved,
    #[serde(skip)]
    work: Workspace,
}

impl Block {
    /// The block at time zero.
    pub fn new(problem: Problem, limiter: Limiter, domain: [usize; 3], extent: Extent) -> Self {
        let ghosts = domain.map(|cells| if cells > 1 { GHOSTS } else { 0 });
        let [nx, ny, nz] = extent.lengths;
        let all: usize = (0..3).map(|axis| extent.lengths[axis] + 2 * ghosts[axis]).product();
        let corners = (nx + 1) * (nz + 1);
        let height = problem.size()[1];
        let mut block = Self {
            problem,
            limiter,
            extent,
            domain,
            ghosts,
            cells: vec![[0.0; 5]; all],
            before: Vec::new(),
            heights: vec![height; corners],
            heights_before: vec![height; corners],
            burning: vec![0.0; corners],
            motion: vec![0.0; corners],
            front: 0.0,
            gained: [0.0; 5],
            work: Workspace::default(),
        };
        for k in 0..nz {
            for j in 0..ny {
                for i in 0..nx {
                    let at = block.index([i, j, k]);
                    let first = problem.first(block.centre([i, j, k]));
                    block.cells[at] = problem.gas().conserved(first);
                }
            }
        }
        block
    }

    /// Sets all cells to one state.
    #[cfg(test)]
    pub(super) fn set_all(&mut self, state: Conserved) {
        self.cells.fill(state);
    }

    /// Lets a front of ignition travel along x from time zero on, for this long. Parts that it has not reached do not
    /// burn.
    #[must_use]
    pub fn with_front(mut self, duration: f64) -> Self {
        self.front = duration;
        self
    }

    /// The cells of the domain that it contains.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The state in a cell.
    pub fn state(&self, cell: [usize; 3]) -> Primitive {
        self.problem.gas().primitive(self.cells[self.index(cell)])
    }

    /// The volume of a cell.
    pub fn volume(&self, [i, _, k]: [usize; 3]) -> f64 {
        self.cell_volume(&self.heights, i, k)
    }

    /// The height of the surface at a corner of columns.
    pub fn height(&self, i: usize, k: usize) -> f64 {
        self.heights[self.corner(i, k)]
    }

    /// What has entered through the boundary of the domain at this block since time zero: mass, momenta, energy.
    pub fn gained(&self) -> Conserved {
        self.gained
    }

    /// The contents of the block: mass, momenta, energy, and its volume.
    pub fn totals(&self) -> (Conserved, f64) {
        let mut totals = [0.0; 5];
        let mut sum = 0.0;
        self.for_each_cell(|cell| {
            let volume = self.volume(cell);
            sum += volume;
            for (total, density) in totals.iter_mut().zip(self.cells[self.index(cell)]) {
                *total += volume * density;
            }
        });
        (totals, sum)
    }

    /// The sum of the [`cell_checksum`]s of its cells' and the surface's bits.
    pub fn checksum(&self) -> u64 {
        let mut sum: u64 = 0;
        let [dx, dy, _] = self.domain;
        self.for_each_cell(|[i, j, k]| {
            let [x, y, z] = self.extent.start;
            let number = (((z + k) * dy + y + j) * dx + x + i) as u64;
            for (q, value) in (0..).zip(self.cells[self.index([i, j, k])]) {
                sum = sum.wrapping_add(cell_checksum(6 * number + q, value));
            }
            if j == 0 {
                sum = sum.wrapping_add(cell_checksum(6 * number + 5, self.height(i, k)));
            }
        });
        sum
    }

    /// The greatest rate at which waves cross a cell, in cells per time; infinite if the state of some cell is not a
    /// gas.
    pub fn fastest(&self) -> f64 {
        let [dx, dz] = self.spacings();
        let [nx, ny, nz] = self.extent.lengths;
        let gas = self.problem.gas();
        let (gamma, zero) = (Lanes::splat(gas.gamma), Lanes::ZERO);
        let [along_x, along_z] = [1.0 / dx, 1.0 / dz].map(Lanes::splat);
        let mut tilt = Tilt::default();
        let mut fastest = zero;
        let mut is_gas = zero.cmp_eq(zero);
        for k in 0..nz {
            self.find_tilt(k, &mut tilt);
            for i in (0..nx).step_by(LANES) {
                let column = |lane: usize| (i + lane).min(nx - 1);
                let volumes: [f64; LANES] =
                    std::array::from_fn(|lane| self.volume([column(lane), 0, k]));
                let inverse = Lanes::ONE / Lanes::new(volumes);
                for j in 0..ny {
                    let row = self.index([0, j, k]);
                    let state = gas.states(gather(&self.cells[row..row + nx], i, nx));
                    let [density, u, v, w, pressure] = state;
                    let c = (gamma * pressure / density).sqrt();
                    let mut rate = zero;
                    if self.domain[0] > 1 {
                        rate += (u.abs() + c) * along_x;
                    }
                    if self.domain[1] > 1 {
                        let share = (j + 1) as f64 / ny as f64;
                        let along = tilt.normal(share, i).along([u, v, w]).abs();
                        let speed = tilt.speed(share, i).abs();
                        rate += (along + c + speed) * tilt.area(share, i) * inverse;
                    }
                    if self.domain[2] > 1 {
                        rate += (w.abs() + c) * along_z;
                    }
                    is_gas &= density.cmp_gt(zero) & pressure.cmp_gt(zero);
                    is_gas &= rate.cmp_lt(Lanes::splat(f64::INFINITY));
                    fastest = fastest.fast_max(rate);
                }
            }
        }
        if is_gas.all() {
            fastest.to_array().into_iter().fold(0.0, f64::max)
        } else {
            f64::INFINITY
        }
    }

    /// Determines how fast the surface recedes at a time, from the pressures below it and the degree of ignition. Ghost
    /// cells must be filled.
    pub fn burn(&mut self, time: f64) {
        if self.problem.boundaries()[1][1] != Boundary::Burning {
            return;
        }
        let propellant = self.problem.propellant();
        let gas = self.problem.gas();
        let [nx, ny, nz] = self.extent.lengths;
        let [gx, _, gz] = self.ghosts;
        // How many columns the front has reached.
        let front = if self.front > 0.0 {
            time / self.front * self.domain[0] as f64
        } else {
            f64::INFINITY
        };
        // The rate at the column before or after a corner; beyond an axis of one cell it is that of
        // the one cell.
        let rate = |i: usize, k: usize| {
            let along = |at: usize, ghosts: usize, length: usize| {
                if ghosts > 0 { at + ghosts - 1 } else { at.clamp(1, length) - 1 }
            };
            let (i, k) = (along(i, gx, nx), along(k, gz, nz));
            let at = self.stored([i, ny - 1 + self.ghosts[1], k]);
            // Where the front is in a column, a part of it burns.
            let column = (self.extent.start[0] + i) as f64 - gx as f64;
            let ignited = (front - column).clamp(0.0, 1.0);
            ignited * propellant.rate(gas.primitive(self.cells[at])[4])
        };
        let mut burning = Vec::with_capacity(self.burning.len());
        for k in 0..=nz {
            for i in 0..=nx {
                let before = rate(i, k) + rate(i + 1, k);
                let after = rate(i, k + 1) + rate(i + 1, k + 1);
                burning.push(0.25 * (before + after));
            }
        }
        self.burning = burning;
    }

    /// How fast the propellant above a column of cells recedes, in the last step.
    pub fn burn_rate(&self, i: usize, k: usize) -> f64 {
        self.column_mean(&self.burning, i, k)
    }

    /// Begins a step.
    pub fn begin_step(&mut self) {
        let mut before = std::mem::take(&mut self.before);
        before.clear();
        let [nx, ny, nz] = self.extent.lengths;
        for (k, j) in (0..nz).flat_map(|k| (0..ny).map(move |j| (k, j))) {
            let first = self.index([0, j, k]);
            before.extend_from_slice(&self.cells[first..first + nx]);
        }
        self.before = before;
        self.heights_before.clone_from(&self.heights);
    }

    /// Executes one of the two stages of a step of length `dt`. Ghost cells across x and z must be
    /// filled.
    pub fn stage(&mut self, dt: f64, is_second: bool) {
        self.fill_boundary(1);
        let mut work = std::mem::take(&mut self.work);
        self.find_changes(dt, &mut work);
        let old_heights = self.heights.clone();
        if !is_second {
            for (at, height) in self.heights.iter_mut().enumerate() {
                *height += dt * (self.burning[at] + self.motion[at]);
            }
        }
        let [nx, ny, nz] = self.extent.lengths;
        for k in 0..nz {
            // Of each column: what counts of the cell now, of what passes, and of the cell before.
            let shares: Vec<[f64; 3]> = (0..nx)
                .map(|i| {
                    let [first, old, new] = [&self.heights_before, &old_heights, &self.heights]
                        .map(|heights| self.cell_volume(heights, i, k));
                    let weight = if is_second { 0.5 / new } else { 1.0 / new };
                    [weight * old, weight * dt, if is_second { weight * first } else { 0.0 }]
                })
                .collect();
            for j in 0..ny {
                let (row, first) = ((k * ny + j) * nx, self.index([0, j, k]));
                let changes = work.changes.each_ref().map(|of_row| &of_row[row..row + nx]);
                let at_first = &self.before[row..row + nx];
                let cells = self.cells[first..first + nx].iter_mut().zip(at_first).zip(&shares);
                for (i, ((cell, at_first), [now, passed, before])) in cells.enumerate() {
                    for (q, value) in cell.iter_mut().enumerate() {
                        *value = now * *value + passed * changes[q][i] + before * at_first[q];
                    }
                }
            }
        }
        self.work = work;
    }

    /// Calls `visit` with each cell of the block.
    pub fn for_each_cell(&self, mut visit: impl FnMut([usize; 3])) {
        let [nx, ny, nz] = self.extent.lengths;
        for k in 0..nz {
            for j in 0..ny {
                for i in 0..nx {
                    visit([i, j, k]);
                }
            }
        }
    }

    /// Where a cell of the block lies in memory.
    pub(super) fn index(&self, cell: [usize; 3]) -> usize {
        self.stored(std::array::from_fn(|axis| cell[axis] + self.ghosts[axis]))
    }

    /// Where a cell lies in memory, given coordinates that count ghost cells.
    pub(super) fn stored(&self, [x, y, z]: [usize; 3]) -> usize {
        z * self.stride(2) + y * self.stride(1) + x
    }

    /// The distance in memory of neighbours along an axis.
    pub(super) fn stride(&self, axis: usize) -> usize {
        (0..axis).map(|axis| self.extent.lengths[axis] + 2 * self.ghosts[axis]).product()
    }
}
