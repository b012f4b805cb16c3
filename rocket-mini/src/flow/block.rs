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

use super::decomposition::Extent;
use super::gas::{Conserved, Limiter, Primitive};
use super::problem::{Boundary, Problem};
use super::{GHOSTS, cell_checksum};

/// The cells of a block, and its surface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    problem: Problem,
    limiter: Limiter,
    extent: Extent,
    /// Cells of the domain.
    domain: [usize; 3],
    /// Ghost cells on either side along each axis: none along an axis of one cell.
    ghosts: [usize; 3],
    /// Conserved quantities per volume, x fastest, ghost cells included.
    cells: Vec<Conserved>,
    /// The same, without ghost cells, when the step began.
    before: Vec<Conserved>,
    /// The height of the surface at the corners of columns, x fastest.
    pub(super) heights: Vec<f64>,
    heights_before: Vec<f64>,
    /// How fast the propellant recedes at those corners.
    burning: Vec<f64>,
    /// How fast the surface moves at those corners because what is behind it deforms.
    pub motion: Vec<f64>,
    /// What has come in through the boundary of the domain at this block.
    gained: Conserved,
    #[serde(skip)]
    changes: Vec<Conserved>,
}

/// A face between two cells along an axis.
struct Face {
    normal: [f64; 3],
    area: f64,
    /// How fast it moves along its normal.
    speed: f64,
    /// The volume of propellant that burns there per time.
    burned: f64,
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
            gained: [0.0; 5],
            changes: Vec::new(),
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

    /// Gives all cells one state.
    #[cfg(test)]
    pub(super) fn set_all(&mut self, state: Conserved) {
        self.cells.fill(state);
    }

    /// The cells it has of the domain.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The middle of a cell.
    pub fn centre(&self, [i, j, k]: [usize; 3]) -> [f64; 3] {
        let [dx, dz] = self.spacings();
        let height = self.column_mean(&self.heights, i, k);
        let [x, _, z] = self.extent.start;
        [
            ((x + i) as f64 + 0.5) * dx,
            (j as f64 + 0.5) * height / self.extent.lengths[1] as f64,
            ((z + k) as f64 + 0.5) * dz,
        ]
    }

    /// The corners of a cell, x fastest, then y, then z.
    pub fn corners(&self, [i, j, k]: [usize; 3]) -> [[f64; 3]; 8] {
        let [dx, dz] = self.spacings();
        let [start_x, _, start_z] = self.extent.start;
        std::array::from_fn(|corner| {
            let [a, b, c] = [corner & 1, corner >> 1 & 1, corner >> 2];
            let share = (j + b) as f64 / self.extent.lengths[1] as f64;
            let height = share * self.height(i + a, k + c);
            [(start_x + i + a) as f64 * dx, height, (start_z + k + c) as f64 * dz]
        })
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

    /// What has come in through the boundary of the domain at this block since time zero: mass,
    /// momenta, energy.
    pub fn gained(&self) -> Conserved {
        self.gained
    }

    /// What is in the block: mass, momenta, energy, and its volume.
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

    /// The sum over its cells of [`cell_checksum`]s of their bits and those of the surface.
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

    /// The greatest rate at which waves cross a cell, in cells per time; infinite if some cell holds
    /// what is no gas.
    pub fn fastest(&self) -> f64 {
        let mut fastest: f64 = 0.0;
        let [dx, dz] = self.spacings();
        let gas = self.problem.gas();
        self.for_each_cell(|cell| {
            let state = self.state(cell);
            if !(state[0] > 0.0 && state[4] > 0.0 && state.iter().all(|q| q.is_finite())) {
                fastest = f64::INFINITY;
                return;
            }
            let c = gas.sound_speed(&state);
            let mut rate = 0.0;
            if self.domain[0] > 1 {
                rate += (state[1].abs() + c) / dx;
            }
            if self.domain[1] > 1 {
                let Face { normal: n, area, speed, .. } =
                    self.y_face(cell[0], cell[1] + 1, cell[2]);
                let along = state[1] * n[0] + state[2] * n[1] + state[3] * n[2];
                rate += (along.abs() + c + speed.abs()) * area / self.volume(cell);
            }
            if self.domain[2] > 1 {
                rate += (state[3].abs() + c) / dz;
            }
            fastest = fastest.max(rate);
        });
        fastest
    }

    /// Finds how fast the surface recedes, from the pressures below it. Ghost cells must be filled.
    pub fn burn(&mut self) {
        if self.problem.boundaries()[1][1] != Boundary::Burning {
            return;
        }
        let propellant = self.problem.propellant();
        let gas = self.problem.gas();
        let [nx, ny, nz] = self.extent.lengths;
        let [gx, _, gz] = self.ghosts;
        // The rate at the column before or after a corner; beyond an axis of one cell it is that of
        // the one cell.
        let rate = |i: usize, k: usize| {
            let along = |at: usize, ghosts: usize, length: usize| {
                if ghosts > 0 { at + ghosts - 1 } else { at.clamp(1, length) - 1 }
            };
            let (i, k) = (along(i, gx, nx), along(k, gz, nz));
            let at = self.stored([i, ny - 1 + self.ghosts[1], k]);
            propellant.rate(gas.primitive(self.cells[at])[4])
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

    /// Begins a step.
    pub fn begin_step(&mut self) {
        let mut before = std::mem::take(&mut self.before);
        before.clear();
        self.for_each_cell(|cell| before.push(self.cells[self.index(cell)]));
        self.before = before;
        self.heights_before.clone_from(&self.heights);
    }

    /// Makes one of the two stages of a step of length `dt`. Ghost cells across x and z must be
    /// filled.
    pub fn stage(&mut self, dt: f64, is_second: bool) {
        self.fill_boundary(1);
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        changes.resize(self.extent.lengths.iter().product(), [0.0; 5]);
        for axis in 0..3 {
            if self.domain[axis] > 1 {
                self.add_fluxes(axis, dt, &mut changes);
            }
        }
        let old_heights = self.heights.clone();
        if !is_second {
            for (at, height) in self.heights.iter_mut().enumerate() {
                *height += dt * (self.burning[at] + self.motion[at]);
            }
        }
        let [nx, ny, nz] = self.extent.lengths;
        let mut number = 0;
        for k in 0..nz {
            for j in 0..ny {
                for i in 0..nx {
                    let at = self.index([i, j, k]);
                    let old_volume = self.cell_volume(&old_heights, i, k);
                    let new_volume = self.cell_volume(&self.heights, i, k);
                    let first_volume = self.cell_volume(&self.heights_before, i, k);
                    let (first, change) = (self.before[number], changes[number]);
                    for (q, value) in self.cells[at].iter_mut().enumerate() {
                        let moved = old_volume * *value + dt * change[q];
                        *value = if is_second {
                            0.5 * (first_volume * first[q] + moved) / new_volume
                        } else {
                            moved / new_volume
                        };
                    }
                    number += 1;
                }
            }
        }
        self.changes = changes;
    }

    /// Adds to each cell what passes through its faces across an axis, per time.
    fn add_fluxes(&mut self, axis: usize, dt: f64, changes: &mut [Conserved]) {
        let gas = self.problem.gas();
        let n = self.extent.lengths[axis];
        let boundaries = self.problem.boundaries()[axis];
        let at_end =
            [self.extent.start[axis] == 0, self.extent.start[axis] + n == self.domain[axis]];
        let (p, q) = ((axis + 1) % 3, (axis + 2) % 3);
        let mut states = vec![[0.0; 5]; n + 2 * GHOSTS];
        let mut slopes = vec![[0.0; 5]; n + 2 * GHOSTS];
        for b in 0..self.extent.lengths[q] {
            for a in 0..self.extent.lengths[p] {
                let mut cell = [0; 3];
                (cell[p], cell[q]) = (a, b);
                let first = self.index(cell) - GHOSTS * self.stride(axis);
                for (at, state) in states.iter_mut().enumerate() {
                    *state = gas.primitive(self.cells[first + at * self.stride(axis)]);
                }
                for at in 1..n + 2 * GHOSTS - 1 {
                    slopes[at] = self.slope(&states[at - 1], &states[at], &states[at + 1]);
                }
                for face_at in 0..=n {
                    let face = self.face(axis, cell, face_at);
                    let beside = [face_at + GHOSTS - 1, face_at + GHOSTS];
                    let left: Primitive =
                        std::array::from_fn(|q| states[beside[0]][q] + 0.5 * slopes[beside[0]][q]);
                    let right: Primitive =
                        std::array::from_fn(|q| states[beside[1]][q] - 0.5 * slopes[beside[1]][q]);
                    let side = match face_at {
                        0 if at_end[0] => Some(0),
                        _ if face_at == n && at_end[1] => Some(1),
                        _ => None,
                    };
                    let flux = match side.map(|side| (side, boundaries[side])) {
                        Some((0, Boundary::Wall)) => self.wall_flux(&right, &face, -1.0),
                        Some((1, Boundary::Wall)) => self.wall_flux(&left, &face, 1.0),
                        Some((1, Boundary::Burning)) => self.burning_flux(&left, &face),
                        _ => gas.flux(&left, &right, face.normal, face.speed),
                    };
                    let passed = flux.map(|flux| flux * face.area);
                    if let Some(side) = side
                        && boundaries[side] != Boundary::Periodic
                    {
                        let weight = if side == 0 { 0.5 * dt } else { -0.5 * dt };
                        for (gained, passed) in self.gained.iter_mut().zip(passed) {
                            *gained += weight * passed;
                        }
                    }
                    if face_at > 0 {
                        cell[axis] = face_at - 1;
                        let change = &mut changes[self.number(cell)];
                        for (change, passed) in change.iter_mut().zip(passed) {
                            *change -= passed;
                        }
                    }
                    if face_at < n {
                        cell[axis] = face_at;
                        let change = &mut changes[self.number(cell)];
                        for (change, passed) in change.iter_mut().zip(passed) {
                            *change += passed;
                        }
                    }
                    cell[axis] = 0;
                }
            }
        }
    }

    /// The slopes of a cell between two others: none if density or pressure would not be positive.
    #[inline(always)]
    fn slope(&self, before: &Primitive, here: &Primitive, after: &Primitive) -> Primitive {
        let slope: Primitive =
            std::array::from_fn(|q| self.limiter.slope(here[q] - before[q], after[q] - here[q]));
        let is_gas = |q: usize| 0.5 * slope[q].abs() < here[q];
        if is_gas(0) && is_gas(4) { slope } else { [0.0; 5] }
    }

    /// What a wall does to the gas before it: it pushes as the middle of HLLC's waves does if the
    /// gas meets its mirror image. `outward` is 1 if the normal points into the wall.
    fn wall_flux(&self, state: &Primitive, face: &Face, outward: f64) -> Conserved {
        let n = face.normal;
        let along = state[1] * n[0] + state[2] * n[1] + state[3] * n[2];
        let towards = outward * (along - face.speed);
        let c = self.problem.gas().sound_speed(state);
        let pressure = state[4] + state[0] * towards * (towards.abs() + c + towards);
        let [nx, ny, nz] = n.map(|n| pressure * n);
        [0.0, nx, ny, nz, pressure * face.speed]
    }

    /// What a burning surface gives to the gas below it: the mass of what has burned, at the
    /// pressure of the gas.
    fn burning_flux(&self, state: &Primitive, face: &Face) -> Conserved {
        let propellant = self.problem.propellant();
        let pressure = state[4];
        let density = pressure / propellant.temperature;
        let mass = -propellant.density * face.burned / face.area;
        let velocity = face.speed + mass / density;
        let [nx, ny, nz] = face.normal.map(|n| (mass * velocity + pressure) * n);
        let internal = pressure / ((self.problem.gas().gamma - 1.0) * density);
        let energy = mass * (internal + 0.5 * velocity * velocity) + pressure * velocity;
        [mass, nx, ny, nz, energy]
    }

    /// The face before cell `at` along an axis, of the row of cells through `cell`.
    fn face(&self, axis: usize, [i, _, k]: [usize; 3], at: usize) -> Face {
        let ny = self.extent.lengths[1] as f64;
        let [dx, dz] = self.spacings();
        let mean = |a: usize, b: usize| 0.5 * (self.heights[a] + self.heights[b]) / ny;
        match axis {
            0 => Face {
                normal: [1.0, 0.0, 0.0],
                area: dz * mean(self.corner(at, k), self.corner(at, k + 1)),
                speed: 0.0,
                burned: 0.0,
            },
            1 => self.y_face(i, at, k),
            _ => Face {
                normal: [0.0, 0.0, 1.0],
                area: dx * mean(self.corner(i, at), self.corner(i + 1, at)),
                speed: 0.0,
                burned: 0.0,
            },
        }
    }

    /// The face below level `level` of a column: half of the product of the diagonals.
    fn y_face(&self, i: usize, level: usize, k: usize) -> Face {
        let share = level as f64 / self.extent.lengths[1] as f64;
        let [dx, dz] = self.spacings();
        let height = |i: usize, k: usize| share * self.heights[self.corner(i, k)];
        let (y00, y10) = (height(i, k), height(i + 1, k));
        let (y01, y11) = (height(i, k + 1), height(i + 1, k + 1));
        let area = [
            0.5 * dz * ((y00 + y01) - (y10 + y11)),
            dx * dz,
            0.5 * dx * ((y00 + y10) - (y01 + y11)),
        ];
        let length = (area[0] * area[0] + area[1] * area[1] + area[2] * area[2]).sqrt();
        let burned = dx * dz * share * self.column_mean(&self.burning, i, k);
        let moved = dx * dz * share * self.column_mean(&self.motion, i, k);
        Face {
            normal: area.map(|component| component / length),
            area: length,
            speed: (burned + moved) / length,
            burned,
        }
    }

    /// Fills the ghost cells beyond the ends of the domain along an axis, if this block is there.
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
                let targets: Vec<usize> = self.layer(axis, ghost).collect();
                let sources: Vec<usize> = self.layer(axis, from).collect();
                for (target, source) in targets.into_iter().zip(sources) {
                    self.cells[target] = self.beyond(boundary, axis, self.cells[source]);
                }
            }
        }
    }

    /// A ghost cell made of a cell inside.
    fn beyond(&self, boundary: Boundary, axis: usize, mut cell: Conserved) -> Conserved {
        match boundary {
            Boundary::Wall => cell[1 + axis] = -cell[1 + axis],
            Boundary::Outlet(pressure) => {
                let gas = self.problem.gas();
                let mut state = gas.primitive(cell);
                if state[1 + axis].abs() < gas.sound_speed(&state) {
                    state[4] = pressure;
                    cell = gas.conserved(state);
                }
            }
            Boundary::Periodic | Boundary::Open | Boundary::Burning => (),
        }
        cell
    }

    /// Whether there are ghost cells along an axis.
    pub fn has_ghosts(&self, axis: usize) -> bool {
        self.ghosts[axis] > 0
    }

    /// Whether the domain is joined with itself along an axis, so that ghost cells come from the
    /// block at the other end.
    pub fn is_periodic(&self, axis: usize) -> bool {
        self.ghosts[axis] > 0 && self.problem.boundaries()[axis][0] == Boundary::Periodic
    }

    /// Copies the cells that a neighbour needs beyond its end: those at the beginning (side 0) or
    /// the end (side 1) of this block.
    pub fn lend(&self, axis: usize, side: usize) -> Vec<f64> {
        let n = self.extent.lengths[axis];
        let first = if side == 0 { GHOSTS } else { n };
        (first..first + GHOSTS)
            .flat_map(|place| self.layer(axis, place))
            .flat_map(|at| self.cells[at])
            .collect()
    }

    /// Fills ghost cells before (side 0) or after (side 1) this block with what a neighbour lends.
    ///
    /// # Panics
    ///
    /// When the neighbour's block has another number of cells there.
    pub fn borrow(&mut self, axis: usize, side: usize, lent: &[f64]) {
        let first = if side == 0 { 0 } else { self.extent.lengths[axis] + GHOSTS };
        let targets: Vec<usize> =
            (first..first + GHOSTS).flat_map(|place| self.layer(axis, place)).collect();
        let (lent, rest) = lent.as_chunks::<5>();
        assert!(rest.is_empty() && lent.len() == targets.len(), "ghost cells of another size");
        for (target, cell) in targets.into_iter().zip(lent) {
            self.cells[target] = *cell;
        }
    }

    /// The cells at a place along an axis, which counts ghost cells. Across z and y ghost cells
    /// across x are among them, across y those across z, too.
    fn layer(&self, axis: usize, place: usize) -> impl Iterator<Item = usize> + use<> {
        let inside = |axis: usize| self.ghosts[axis]..self.ghosts[axis] + self.extent.lengths[axis];
        let all = |axis: usize| 0..self.extent.lengths[axis] + 2 * self.ghosts[axis];
        let [x, y, z] = match axis {
            0 => [place..place + 1, inside(1), inside(2)],
            1 => [all(0), place..place + 1, all(2)],
            _ => [all(0), inside(1), place..place + 1],
        };
        let (row, plane) = (self.stride(1), self.stride(2));
        z.flat_map(move |z| {
            let x = x.clone();
            y.clone().flat_map(move |y| x.clone().map(move |x| z * plane + y * row + x))
        })
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

    fn cell_volume(&self, heights: &[f64], i: usize, k: usize) -> f64 {
        let [dx, dz] = self.spacings();
        dx * dz * self.column_mean(heights, i, k) / self.extent.lengths[1] as f64
    }

    /// The mean over the corners of a column.
    fn column_mean(&self, corners: &[f64], i: usize, k: usize) -> f64 {
        let before = corners[self.corner(i, k)] + corners[self.corner(i + 1, k)];
        let after = corners[self.corner(i, k + 1)] + corners[self.corner(i + 1, k + 1)];
        0.25 * (before + after)
    }

    fn corner(&self, i: usize, k: usize) -> usize {
        k * (self.extent.lengths[0] + 1) + i
    }

    /// The widths of cells along x and z.
    fn spacings(&self) -> [f64; 2] {
        let [x, _, z] = self.problem.size();
        [x / self.domain[0] as f64, z / self.domain[2] as f64]
    }

    /// The number of a cell among those of the block.
    fn number(&self, [i, j, k]: [usize; 3]) -> usize {
        let [nx, ny, _] = self.extent.lengths;
        (k * ny + j) * nx + i
    }

    /// Where a cell of the block lies in memory.
    fn index(&self, cell: [usize; 3]) -> usize {
        self.stored(std::array::from_fn(|axis| cell[axis] + self.ghosts[axis]))
    }

    /// Where a cell lies in memory whose places count ghost cells.
    fn stored(&self, [x, y, z]: [usize; 3]) -> usize {
        z * self.stride(2) + y * self.stride(1) + x
    }

    /// The distance in memory of neighbours along an axis.
    fn stride(&self, axis: usize) -> usize {
        (0..axis).map(|axis| self.extent.lengths[axis] + 2 * self.ghosts[axis]).product()
    }
}
