//! What passes through the faces of a block's cells.

use super::GHOSTS;
use super::block::Block;
use super::gas::{Conserved, Primitive};
use super::geometry::Face;
use super::problem::Boundary;

impl Block {
    /// Adds to each cell what passes through its faces across an axis, per time.
    pub(super) fn add_fluxes(&mut self, axis: usize, dt: f64, changes: &mut [Conserved]) {
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
}
