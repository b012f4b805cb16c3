//! The parts of both meshes at the surface: faces in the plane of x and z, with corners and values.

use mpi::topology::SimpleCommunicator;

use super::{OUTSIDE, PROBLEM, Settings, THICKNESS};
use crate::face::{Corners, Face, Route, forces, interpolate};
use crate::flow::Block;
use crate::solid::{Part, Vector};

/// The surface from the point of view of a rank.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Surface {
    part: Part,
    elements: [usize; 3],
    /// The faces of the propellant's part, seen from below: those of its columns.
    below_part: Vec<Face>,
    /// The corners of the gas's columns.
    corners: Vec<[f64; 2]>,
    /// From the gas to the propellant: heights and pressures.
    up: Route,
    /// From the propellant to the gas: displacements.
    down: Route,
}

/// What the gas sends to the propellant.
pub(super) struct Told {
    values: Vec<[f64; 5]>,
}

impl Surface {
    /// Finds out whose gas touches whose propellant. All ranks must call this.
    pub(super) fn discover(
        world: &SimpleCommunicator,
        settings: &Settings,
        block: &Block,
        part: Part,
    ) -> Self {
        let below_part = faces(settings.elements, [part.start, part.end]);
        let extent = block.extent();
        let end = std::array::from_fn(|axis| extent.start[axis] + extent.lengths[axis]);
        let below_gas = faces(settings.cells, [extent.start, end]);
        let at_surface = if part.start[1] == 0 { &below_part[..] } else { &[] };
        let [size_x, _, size_z] = PROBLEM.size();
        let corner = |x: usize, z: usize| {
            let along = |at: usize, count: usize, size: f64| at as f64 * size / count as f64;
            [along(x, settings.cells[0], size_x), along(z, settings.cells[2], size_z)]
        };
        let corners = (extent.start[2]..=end[2])
            .flat_map(|z| (extent.start[0]..=end[0]).map(move |x| corner(x, z)))
            .collect();
        Self {
            up: Route::discover(world, &below_gas, &below_part),
            down: Route::discover(world, at_surface, &below_gas),
            part,
            elements: settings.elements,
            below_part,
            corners,
        }
    }

    /// Sends heights and pressures to the propellant. `applied` is how far the propellant has moved
    /// the corners of columns; without it, heights are those of the propellant at rest.
    pub(super) fn tell(&self, world: &SimpleCommunicator, block: &Block, applied: &[f64]) -> Told {
        let [nx, ny, nz] = block.extent().lengths;
        let at_rest = |i: usize, k: usize| block.height(i, k) - applied[k * (nx + 1) + i];
        let mut values = Vec::with_capacity(nx * nz);
        for k in 0..nz {
            for i in 0..nx {
                let pressure = block.state([i, ny - 1, k])[4];
                let [a, b] = [at_rest(i, k), at_rest(i + 1, k)];
                let [c, d] = [at_rest(i, k + 1), at_rest(i + 1, k + 1)];
                values.push([a, b, c, d, pressure]);
            }
        }
        Told { values: self.up.send(world, &values) }
    }

    /// The positions of the part's nodes when the propellant is at rest; `None` if some column has burned through.
    pub(super) fn places(&self, told: &Told) -> Option<Vec<Vector>> {
        let Part { start, end } = self.part;
        let [size_x, size_y, size_z] = PROBLEM.size();
        let along =
            |at: usize, axis: usize, size: f64| at as f64 * size / self.elements[axis] as f64;
        let points: Vec<[f64; 2]> = (start[2]..=end[2])
            .flat_map(|z| {
                (start[0]..=end[0]).map(move |x| [along(x, 0, size_x), along(z, 2, size_z)])
            })
            .collect();
        let heights: Vec<[Corners; 1]> =
            told.values.iter().map(|[a, b, c, d, _]| [[*a, *b, *c, *d]]).collect();
        let heights = interpolate(&points, &self.up.faces, &heights);
        let case = size_y + THICKNESS;
        let columns = end[0] - start[0] + 1;
        let mut places = Vec::with_capacity(self.part.node_count());
        for [x, y, z] in self.part.nodes() {
            let column = (z - start[2]) * columns + x - start[0];
            let [height] = heights[column]?;
            if height >= case - 1e-3 * THICKNESS {
                return None;
            }
            let share = y as f64 / self.elements[1] as f64;
            let [px, pz] = points[column];
            places.push([px, height + share * (case - height), pz]);
        }
        Some(places)
    }

    /// The forces of the gas on the part's nodes, from this part's faces.
    pub(super) fn load(&self, told: &Told) -> Vec<Vector> {
        let mut load = vec![[0.0; 3]; self.part.node_count()];
        if self.part.start[1] > 0 {
            return load;
        }
        let pressures: Vec<Corners> =
            told.values.iter().map(|[.., pressure]| [pressure - OUTSIDE; 4]).collect();
        let forces = forces(&self.below_part, &self.up.faces, &pressures);
        for (nodes, forces) in self.face_nodes().zip(&forces) {
            for (node, force) in nodes.into_iter().zip(forces) {
                load[node][1] += force;
            }
        }
        load
    }

    /// How far the propellant has moved the corners of the gas's columns.
    pub(super) fn displacements(&self, world: &SimpleCommunicator, u: &[Vector]) -> Vec<f64> {
        let at_surface = self.part.start[1] == 0;
        let values: Vec<[f64; 4]> = (self.face_nodes())
            .filter(|_| at_surface)
            .map(|nodes| nodes.map(|node| u[node][1]))
            .collect();
        let came: Vec<[Corners; 1]> =
            self.down.send(world, &values).into_iter().map(|corners| [corners]).collect();
        interpolate(&self.corners, &self.down.faces, &came)
            .into_iter()
            .map(|value| value.map_or(f64::NAN, |[value]| value))
            .collect()
    }

    /// The greatest number of ranks that this one receives from or sends to.
    pub(super) fn partners(&self) -> usize {
        [self.up.partners(), self.down.partners()].into_iter().flatten().max().unwrap_or(0)
    }

    /// The lowest nodes of the part at each face's corners, in the order of the faces.
    fn face_nodes(&self) -> impl Iterator<Item = [usize; 4]> + use<> {
        let [nx, ny, nz] = self.part.lengths();
        let node = move |x: usize, z: usize| z * (ny + 1) * (nx + 1) + x;
        (0..nz).flat_map(move |z| {
            (0..nx).map(move |x| [node(x, z), node(x + 1, z), node(x, z + 1), node(x + 1, z + 1)])
        })
    }
}

/// The faces of columns `start` to `end` of a mesh with this many columns along x and z.
fn faces(counts: [usize; 3], [start, end]: [[usize; 3]; 2]) -> Vec<Face> {
    let size = PROBLEM.size();
    let along = |at: usize, axis: usize| at as f64 * size[axis] / counts[axis] as f64;
    (start[2]..end[2])
        .flat_map(|z| {
            (start[0]..end[0]).map(move |x| Face {
                number: (z * counts[0] + x) as u64,
                low: [along(x, 0), along(z, 2)],
                high: [along(x + 1, 0), along(z + 1, 2)],
            })
        })
        .collect()
}
