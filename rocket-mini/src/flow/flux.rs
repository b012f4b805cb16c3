//! The fluxes through the faces of a block's cells: row by row along x, several faces at a time.
//!
//! For each stage the states of all cells are stored in a separate layout, one array for each quantity, so that the
//! loops over rows are loops over lanes. The last lanes of a row may lie beyond it: there is room for them, and their
//! results are ignored.

use super::GHOSTS;
use super::block::Block;
use super::gas::{Conserved, Primitive};
use super::geometry::Tilt;
use super::lanes::{Axis, LANES, Lanes, Normal, State, each, store};
use super::problem::Boundary;

/// A quantity of each cell, or of each face of a row, for the five of a state.
type Rows = [Vec<f64>; 5];

/// What a stage needs besides the cells; nothing is kept from one stage to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspace {
    /// The states of all cells, in the cells' order.
    states: Rows,
    /// The inflow of each cell per time, without ghost cells.
    pub changes: Rows,
    slopes: [Rows; 2],
    fluxes: Rows,
    areas: Vec<f64>,
}

impl Block {
    /// Computes the inflow of each cell per time in this stage, and accumulates the inflow through the boundary of the
    /// domain with half the length of the step. Ghost cells must be filled.
    pub(super) fn find_changes(&mut self, dt: f64, work: &mut Workspace) {
        let [nx, ny, nz] = self.extent.lengths;
        let row = nx + 1 + 2 * GHOSTS + LANES;
        for rows in work.slopes.iter_mut().chain([&mut work.fluxes]) {
            rows.iter_mut().for_each(|of_row| of_row.resize(row, 0.0));
        }
        work.areas.resize(row, 0.0);
        for changes in &mut work.changes {
            changes.clear();
            changes.resize(nx * ny * nz, 0.0);
        }
        self.lay_out_states(&mut work.states);
        for (axis, sweep) in [Self::sweep_x, Self::sweep_y, Self::sweep_z].into_iter().enumerate() {
            if self.domain[axis] > 1 {
                sweep(self, dt, work);
            }
        }
    }

    fn lay_out_states(&self, states: &mut Rows) {
        let gas = self.problem.gas();
        let count = self.cells.len();
        let room = count.next_multiple_of(LANES) + LANES;
        states.iter_mut().for_each(|states| states.resize(room, 0.0));
        let n = count.div_ceil(LANES);
        let mut states = row_mut(states, n);
        for at in 0..n {
            write(&mut states, at, &gas.states(gather(&self.cells, LANES * at, count)));
        }
    }

    /// Faces across x: those of a row lie side by side.
    fn sweep_x(&mut self, dt: f64, work: &mut Workspace) {
        let [nx, ny, nz] = self.extent.lengths;
        let Workspace { states, changes, slopes: [slopes, _], fluxes, areas } = work;
        for k in 0..nz {
            (0..=nx).for_each(|i| areas[i] = self.x_face_area(i, k));
            for j in 0..ny {
                let first = self.index([0, j, k]) - 1;
                self.find_slopes(states, first, 1, nx + 2, slopes);
                let sides = [(first, &*slopes, 0), (first + 1, &*slopes, 1)];
                let still = |_| Lanes::ZERO;
                self.find_fluxes(states, sides, nx + 1, |_| Axis::<0>, still, fluxes);
                for (side, face) in [0, nx].into_iter().enumerate() {
                    if let Some(boundary) = self.boundary(0, side, face) {
                        let inside = inner_state(states, sides, side, face);
                        let normal = [1.0, 0.0, 0.0];
                        self.pass_boundary(boundary, side, &inside, normal, [0.0; 2], fluxes, face);
                        self.count(boundary, side, dt, areas, fluxes, face);
                    }
                }
                let row = (k * ny + j) * nx;
                for (changes, fluxes) in changes.iter_mut().zip(&*fluxes) {
                    let before = fluxes[..nx].iter().zip(&areas[..nx]);
                    let after = fluxes[1..=nx].iter().zip(&areas[1..=nx]);
                    for ((change, b), a) in changes[row..row + nx].iter_mut().zip(before).zip(after)
                    {
                        *change += b.0 * b.1 - a.0 * a.1;
                    }
                }
            }
        }
    }

    /// Faces across y, which are tilted and move: a row of them below each row of cells.
    fn sweep_y(&mut self, dt: f64, work: &mut Workspace) {
        let [nx, ny, nz] = self.extent.lengths;
        let stride = self.stride(1);
        let Workspace { states, changes, slopes, fluxes, areas } = work;
        let mut tilt = Tilt::default();
        for k in 0..nz {
            self.find_tilt(k, &mut tilt);
            let cells = |j: usize| (k * ny + j) * nx;
            // One below the row, where there may be a ghost cell.
            let below = self.index([0, 0, k]) - stride;
            self.find_slopes(states, below, stride, nx, &mut slopes[0]);
            for j in 0..=ny {
                let share = j as f64 / ny as f64;
                let [before, here] = &mut *slopes;
                self.find_slopes(states, below + (j + 1) * stride, stride, nx, here);
                let sides =
                    [(below + j * stride, &*before, 0), (below + (j + 1) * stride, &*here, 0)];
                for i in (0..nx).step_by(LANES) {
                    store(areas, i, tilt.area(share, i));
                }
                let normal = |i: usize| tilt.normal(share, i);
                let speed = |i: usize| tilt.speed(share, i);
                self.find_fluxes(states, sides, nx, normal, speed, fluxes);
                let side = usize::from(j == ny);
                if (j == 0 || j == ny)
                    && let Some(boundary) = self.boundary(1, side, j)
                {
                    for i in 0..nx {
                        let inside = inner_state(states, sides, side, i);
                        let (normal, moves) = tilt.at(share, i);
                        self.pass_boundary(boundary, side, &inside, normal, moves, fluxes, i);
                        self.count(boundary, side, dt, areas, fluxes, i);
                    }
                }
                let rows = [(j > 0).then(|| cells(j - 1)), (j < ny).then(|| cells(j))];
                add(changes, rows, fluxes, areas, nx);
                slopes.swap(0, 1);
            }
        }
    }

    /// Faces across z: a row of them before each row of cells.
    fn sweep_z(&mut self, dt: f64, work: &mut Workspace) {
        let [nx, ny, nz] = self.extent.lengths;
        let stride = self.stride(2);
        let Workspace { states, changes, slopes, fluxes, areas } = work;
        // Those of all columns: they are the same at any height.
        areas.clear();
        areas.extend(
            (0..=nz)
                .flat_map(|k| (0..nx).map(move |i| (i, k)))
                .map(|(i, k)| self.z_face_area(i, k)),
        );
        for j in 0..ny {
            let cells = |k: usize| (k * ny + j) * nx;
            let before_all = self.index([0, j, 0]) - stride;
            self.find_slopes(states, before_all, stride, nx, &mut slopes[0]);
            for (k, areas) in areas.chunks_exact(nx).enumerate() {
                let [before, here] = &mut *slopes;
                let at = before_all + k * stride;
                self.find_slopes(states, at + stride, stride, nx, here);
                let sides = [(at, &*before, 0), (at + stride, &*here, 0)];
                let still = |_| Lanes::ZERO;
                self.find_fluxes(states, sides, nx, |_| Axis::<2>, still, fluxes);
                let side = usize::from(k == nz);
                if (k == 0 || k == nz)
                    && let Some(boundary) = self.boundary(2, side, k)
                {
                    for i in 0..nx {
                        let inside = inner_state(states, sides, side, i);
                        let normal = [0.0, 0.0, 1.0];
                        self.pass_boundary(boundary, side, &inside, normal, [0.0; 2], fluxes, i);
                        self.count(boundary, side, dt, areas, fluxes, i);
                    }
                }
                let rows = [(k > 0).then(|| cells(k - 1)), (k < nz).then(|| cells(k))];
                add(changes, rows, fluxes, areas, nx);
                slopes.swap(0, 1);
            }
        }
    }

    /// The slopes of cells from `first` on, whose neighbours lie `stride` before and after them.
    #[inline(always)]
    fn find_slopes(&self, states: &Rows, first: usize, stride: usize, count: usize, to: &mut Rows) {
        let n = count.div_ceil(LANES);
        let [before, here, after] =
            [first - stride, first, first + stride].map(|first| row(states, first, n));
        let mut to = row_mut(to, n);
        for i in 0..n {
            let slopes = self.limiter.slopes(&read(&before, i), &read(&here, i), &read(&after, i));
            write(&mut to, i, &slopes);
        }
    }

    /// The fluxes per area through faces between cells: `sides` contains the positions of their states, their slopes,
    /// and where these begin.
    #[inline(always)]
    fn find_fluxes<N: Normal>(
        &self,
        states: &Rows,
        sides: [(usize, &Rows, usize); 2],
        count: usize,
        normal: impl Fn(usize) -> N,
        speed: impl Fn(usize) -> Lanes,
        fluxes: &mut Rows,
    ) {
        let gas = self.problem.gas();
        let half = Lanes::splat(0.5);
        let [(before, before_slopes, b), (after, after_slopes, a)] = sides;
        let n = count.div_ceil(LANES);
        let (before, before_slopes) = (row(states, before, n), row(before_slopes, b, n));
        let (after, after_slopes) = (row(states, after, n), row(after_slopes, a, n));
        let mut fluxes = row_mut(fluxes, n);
        for i in 0..n {
            let (here, slopes) = (read(&before, i), read(&before_slopes, i));
            let left: State = each(|q| here[q] + half * slopes[q]);
            let (here, slopes) = (read(&after, i), read(&after_slopes, i));
            let right: State = each(|q| here[q] - half * slopes[q]);
            let (normal, speed) = (normal(LANES * i), speed(LANES * i));
            write(&mut fluxes, i, &gas.fluxes(&left, &right, normal, speed));
        }
    }

    /// The boundary of the domain at a face, the first or last along an axis; `None` for inner faces and along a
    /// periodic axis.
    fn boundary(&self, axis: usize, side: usize, face: usize) -> Option<Boundary> {
        let is_end = self.extent.start[axis] + face == side * self.domain[axis];
        let boundary = self.problem.boundaries()[axis][side];
        (is_end && boundary != Boundary::Periodic).then_some(boundary)
    }

    /// Corrects the flux through a face with gas on one side only. `moves` is how fast the face moves along its normal,
    /// and how much of the propellant burns there, per area.
    #[expect(clippy::too_many_arguments, reason = "what there is to a face")]
    fn pass_boundary(
        &self,
        boundary: Boundary,
        side: usize,
        inside: &Primitive,
        normal: [f64; 3],
        moves: [f64; 2],
        fluxes: &mut Rows,
        at: usize,
    ) {
        let flux = match boundary {
            Boundary::Wall => {
                let outward = if side == 0 { -1.0 } else { 1.0 };
                self.wall_flux(inside, normal, moves[0], outward)
            }
            Boundary::Burning => self.burning_flux(inside, normal, moves),
            Boundary::Periodic | Boundary::Open | Boundary::Outlet(_) => return,
        };
        for (fluxes, flux) in fluxes.iter_mut().zip(flux) {
            fluxes[at] = flux;
        }
    }

    /// Accumulates the inflow through a face of the boundary.
    fn count(
        &mut self,
        boundary: Boundary,
        side: usize,
        dt: f64,
        areas: &[f64],
        fluxes: &Rows,
        at: usize,
    ) {
        debug_assert_ne!(boundary, Boundary::Periodic);
        let weight = if side == 0 { 0.5 * dt } else { -0.5 * dt };
        for (gained, fluxes) in self.gained.iter_mut().zip(fluxes) {
            *gained += weight * fluxes[at] * areas[at];
        }
    }

    /// The flux of a wall: its pressure is that between HLLC's waves if the gas meets its mirror image. `outward` is 1
    /// if the normal points into the wall.
    fn wall_flux(&self, state: &Primitive, n: [f64; 3], speed: f64, outward: f64) -> Conserved {
        let along = state[1] * n[0] + state[2] * n[1] + state[3] * n[2];
        let towards = outward * (along - speed);
        let c = self.problem.gas().sound_speed(state);
        let pressure = state[4] + state[0] * towards * (towards.abs() + c + towards);
        let [nx, ny, nz] = n.map(|n| pressure * n);
        [0.0, nx, ny, nz, pressure * speed]
    }

    /// The flux of a burning surface into the gas below it: the mass of what has burned, at the pressure of the gas.
    fn burning_flux(&self, state: &Primitive, n: [f64; 3], [speed, burned]: [f64; 2]) -> Conserved {
        let propellant = self.problem.propellant();
        let pressure = state[4];
        let density = pressure / propellant.temperature;
        let mass = -propellant.density * burned;
        let velocity = speed + mass / density;
        let [nx, ny, nz] = n.map(|n| (mass * velocity + pressure) * n);
        let internal = pressure / ((self.problem.gas().gamma - 1.0) * density);
        let energy = mass * (internal + 0.5 * velocity * velocity) + pressure * velocity;
        [mass, nx, ny, nz, energy]
    }
}

/// A row of states from a position on, with this many lanes. Its arrays are cut to one length, so that bounds are not
/// checked again for each lane.
#[inline(always)]
fn row(rows: &Rows, first: usize, n: usize) -> [&[[f64; LANES]]; 5] {
    let [a, b, c, d, e] = rows;
    let cut = |row| cut(row, first, n);
    [cut(a), cut(b), cut(c), cut(d), cut(e)]
}

#[inline(always)]
fn cut(row: &[f64], first: usize, n: usize) -> &[[f64; LANES]] {
    &row[first..first + n * LANES].as_chunks().0[..n]
}

/// [`row`] for writing, from the beginning.
#[inline(always)]
fn row_mut(rows: &mut Rows, n: usize) -> [&mut [[f64; LANES]]; 5] {
    rows.each_mut().map(|row| &mut row[..n * LANES].as_chunks_mut().0[..n])
}

/// Reads a state of several cells.
#[inline(always)]
fn read(row: &[&[[f64; LANES]]; 5], at: usize) -> State {
    each(|q| Lanes::new(row[q][at]))
}

/// Writes a state of several cells.
#[inline(always)]
fn write(row: &mut [&mut [[f64; LANES]]; 5], at: usize, state: &State) {
    for (row, lanes) in row.iter_mut().zip(state) {
        row[at] = lanes.to_array();
    }
}

/// The conserved quantities of several cells; the last one is repeated where there are fewer.
#[inline(always)]
pub(super) fn gather(cells: &[Conserved], at: usize, count: usize) -> State {
    let lane = |lane: usize| &cells[(at + lane).min(count - 1)];
    let [a, b, c, d] = [lane(0), lane(1), lane(2), lane(3)];
    each(|q| Lanes::new([a[q], b[q], c[q], d[q]]))
}

/// The state at a boundary face of the cell on its inner side.
fn inner_state(
    states: &Rows,
    sides: [(usize, &Rows, usize); 2],
    side: usize,
    at: usize,
) -> Primitive {
    // At the first face of the domain the cell lies after it.
    let (first, slopes, offset) = sides[1 - side];
    let half = if side == 0 { -0.5 } else { 0.5 };
    let mut state = [0.0; 5];
    for ((state, states), slopes) in state.iter_mut().zip(states).zip(slopes) {
        *state = states[first + at] + half * slopes[offset + at];
    }
    state
}

/// Adds the fluxes through a row of faces to the rows of cells before and after it.
fn add(changes: &mut Rows, rows: [Option<usize>; 2], fluxes: &Rows, areas: &[f64], count: usize) {
    for (changes, fluxes) in changes.iter_mut().zip(fluxes) {
        let passed = || fluxes[..count].iter().zip(&areas[..count]);
        if let Some(row) = rows[0] {
            for (change, (flux, area)) in changes[row..row + count].iter_mut().zip(passed()) {
                *change -= flux * area;
            }
        }
        if let Some(row) = rows[1] {
            for (change, (flux, area)) in changes[row..row + count].iter_mut().zip(passed()) {
                *change += flux * area;
            }
        }
    }
}
