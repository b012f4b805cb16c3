//! A strip of columns of a plate, with a ghost column on either side.
//!
//! Ghost columns have the displacements of the neighbour, and edges that change here as they do there: what happens to
//! an edge follows from the displacements of its two elements.

use serde::{Deserialize, Serialize};

use super::edge::{Edge, STRENGTH};
use super::faces::Faces;
use super::snapshot::{self, Parted, Snapshot};
use super::{DENSITY, NOTCH, SIZE, Settings, lame};
use crate::jacobi::cell_checksum;

/// Corners of an element: lower left, lower right, upper left, upper right.
type Corners = [[f64; 2]; 4];

/// The columns of a strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strip {
    /// The first column.
    pub start: usize,
    /// The column after the last one.
    pub end: usize,
}

/// An element: the motion of its corners, and its edges above and to the right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Element {
    u: Corners,
    v: Corners,
    above: Edge,
    right: Edge,
}

/// A strip of the plate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plate {
    settings: Settings,
    strip: Strip,
    /// Columns of the strip, the ghost columns first and last; each from bottom to top.
    columns: Vec<Vec<Element>>,
    /// The stiffness of an element.
    stiffness: Vec<[f64; 8]>,
    /// The work done by the gas.
    work: f64,
    /// The faces of edges that it has broken.
    faces: Faces,
}

/// Sums over the elements of a strip.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Elastic energy, including that of edges that hold.
    pub elastic: f64,
    /// Kinetic energy.
    pub kinetic: f64,
    /// Energy dissipated in edges, without the notch.
    pub dissipated: f64,
    /// The work done by the gas.
    pub work: f64,
    /// Momentum along both axes.
    pub momentum: [f64; 2],
    /// The sum of the magnitudes of all momenta.
    pub momenta: f64,
    /// Edges inserted, those of them that are broken, and those of these that are off the line of the notch; without
    /// the notch.
    pub edges: [f64; 3],
    /// The position along the plate of the end of the farthest broken edge.
    pub tip: f64,
    /// Edges whose faces are warming up.
    pub warming: f64,
    /// The heat below faces above that of cold propellant, for one of the two faces and per width of the plate.
    pub heat: f64,
}

/// The sides of an edge as corners of its elements: two ends, each with the corner of the element before the edge and
/// of the one after it.
const ABOVE: [[usize; 2]; 2] = [[2, 0], [3, 1]];
const RIGHT: [[usize; 2]; 2] = [[1, 0], [3, 2]];

impl Plate {
    /// A strip of the plate at rest, with the notch.
    pub fn new(settings: Settings, strip: Strip) -> Self {
        let [nx, ny] = settings.elements();
        let mut columns = vec![vec![Element::default(); ny]; strip.end - strip.start + 2];
        for (at, column) in columns.iter_mut().enumerate() {
            let is_there = (1..=nx).contains(&(strip.start + at));
            if is_there && (strip.start + at) as f64 <= NOTCH * nx as f64 {
                column[ny / 2 - 1].above = Edge::notch();
            }
        }
        Self {
            settings,
            strip,
            columns,
            stiffness: stiffness(),
            work: 0.0,
            faces: Faces::default(),
        }
    }

    /// The displacements of the first (side 0) or the last (side 1) column, for the neighbour there.
    pub fn lend(&self, side: usize) -> Vec<f64> {
        let column = if side == 0 { 1 } else { self.columns.len() - 2 };
        self.columns[column].iter().flat_map(|element| element.u.into_iter().flatten()).collect()
    }

    /// Takes the displacements of a neighbour's column.
    pub fn borrow(&mut self, side: usize, lent: &[f64]) {
        let column = if side == 0 { 0 } else { self.columns.len() - 1 };
        for (element, u) in self.columns[column].iter_mut().zip(lent.as_chunks::<8>().0) {
            element.u = std::array::from_fn(|corner| [u[2 * corner], u[2 * corner + 1]]);
        }
    }

    /// Whether all displacements are numbers, and none is a hundred times as long as the plate.
    pub fn is_sound(&self) -> bool {
        self.own()
            .flatten()
            .all(|element| element.u.iter().flatten().all(|u| u.abs() < 100.0 * SIZE[0]))
    }

    /// Makes a step; ghost columns must be up to date.
    pub fn step(&mut self) {
        self.insert_edges();
        let forces = self.forces();
        let [nx, ny] = self.settings.elements();
        let dt = self.settings.dt();
        let h = self.settings.spacing();
        let mass = DENSITY * h * h / 4.0;
        let heat_points = self.settings.heat_points;
        if heat_points > 0 {
            self.faces.warm(self.settings.pressure, dt, heat_points);
        }
        // A vertex has four elements around it: left and right, below and above. Those beyond the
        // plate are none.
        for x in 0..self.columns.len() - 1 {
            for y in 0..=ny {
                let number = self.strip.start + x;
                let is_there = |around: usize| {
                    let (right, above) = (around & 1, around >> 1);
                    (1..=nx).contains(&(number + right)) && (1..=ny).contains(&(y + above))
                };
                let place = |around: usize| (x + (around & 1), (y + (around >> 1)).wrapping_sub(1));
                // The corner of the element on the one side is that on the other side.
                let corner = |around: usize| 3 - around;
                let group = self.groups(x, y, is_there);
                let mut total = [[0.0; 2]; 4];
                let mut count = [0.0; 4];
                for around in (0..4).filter(|around| is_there(*around)) {
                    let (column, row) = place(around);
                    let force = forces[column][row][corner(around)];
                    total[group[around]][0] += force[0];
                    total[group[around]][1] += force[1];
                    count[group[around]] += 1.0;
                }
                for around in (0..4).filter(|around| is_there(*around)) {
                    let (column, row) = place(around);
                    if column == 0 || column == self.columns.len() - 1 {
                        continue;
                    }
                    let element = &mut self.columns[column][row];
                    let (group, corner) = (group[around], corner(around));
                    for (axis, total) in total[group].into_iter().enumerate() {
                        let acceleration = total / (count[group] * mass);
                        element.v[corner][axis] += dt * acceleration;
                        element.u[corner][axis] += dt * element.v[corner][axis];
                    }
                }
            }
        }
    }

    /// Which of the elements around a vertex are one node there: each has the number of the first one that it is
    /// connected with.
    fn groups(&self, x: usize, y: usize, is_there: impl Fn(usize) -> bool) -> [usize; 4] {
        let is_bonded = |edge: Option<Edge>| edge == Some(Edge::Bonded);
        let element = |column: usize, row: usize| self.columns[column].get(row).copied();
        let below = y.wrapping_sub(1);
        let links = [
            (0, 1, element(x, below).map(|element| element.right)),
            (2, 3, element(x, y).map(|element| element.right)),
            (0, 2, element(x, below).map(|element| element.above)),
            (1, 3, element(x + 1, below).map(|element| element.above)),
        ];
        let mut group = [0, 1, 2, 3];
        for (a, b, edge) in links {
            if is_there(a) && is_there(b) && is_bonded(edge) {
                let (first, second) = (group[a].min(group[b]), group[a].max(group[b]));
                for group in &mut group {
                    if *group == second {
                        *group = first;
                    }
                }
            }
        }
        group
    }

    /// Inserts cohesive edges where the stress across a bonded edge exceeds its strength: the mean of the stresses in
    /// the middles of its two elements.
    fn insert_edges(&mut self) {
        let [nx, ny] = self.settings.elements();
        let h = self.settings.spacing();
        let stresses: Vec<Vec<[f64; 3]>> = (self.columns.iter())
            .map(|column| column.iter().map(|element| stress(&element.u, h)).collect())
            .collect();
        let exceeds = |normal: f64, shear: f64| {
            let pull = normal.max(0.0);
            normal > 0.0 && pull * pull + shear * shear > STRENGTH * STRENGTH
        };
        for x in 0..self.columns.len() {
            let number = self.strip.start + x;
            if !(1..=nx).contains(&number) {
                continue;
            }
            for y in 0..ny {
                let here = stresses[x][y];
                if y + 1 < ny && self.columns[x][y].above == Edge::Bonded {
                    let there = stresses[x][y + 1];
                    if exceeds(0.5 * (here[1] + there[1]), 0.5 * (here[2] + there[2])) {
                        self.columns[x][y].above = Edge::inserted();
                    }
                }
                if x + 1 < self.columns.len()
                    && number < nx
                    && self.columns[x][y].right == Edge::Bonded
                {
                    let there = stresses[x + 1][y];
                    if exceeds(0.5 * (here[0] + there[0]), 0.5 * (here[2] + there[2])) {
                        self.columns[x][y].right = Edge::inserted();
                    }
                }
            }
        }
    }

    /// The forces on all corners: of the elements themselves, of edges that hold, and of the gas in broken edges.
    fn forces(&mut self) -> Vec<Vec<Corners>> {
        let mut forces: Vec<Vec<Corners>> = (self.columns.iter())
            .map(|column| {
                column.iter().map(|element| elastic_forces(&self.stiffness, &element.u)).collect()
            })
            .collect();
        let own = 1..self.columns.len() - 1;
        for x in 0..self.columns.len() {
            for y in 0..self.columns[x].len() {
                for is_right in [true, false] {
                    let edge = self.edge(x, y, is_right);
                    let Edge::Cohesive { opening: before, .. } = edge else { continue };
                    let (other, ends, axis) = beside(x, y, is_right);
                    let mut edge = edge;
                    let is_gas = edge.is_broken();
                    for (end, sides) in ends.into_iter().enumerate() {
                        let apart = self.apart((x, y), other, sides, axis);
                        let traction = edge.traction(end, apart);
                        let half = 0.5 * self.settings.spacing();
                        let gas = if is_gas { self.settings.pressure } else { 0.0 };
                        let along = [half * (traction[0] - gas), half * traction[1]];
                        for (component, force) in along.into_iter().enumerate() {
                            let axis = (axis + component) % 2;
                            forces[x][y][sides[0]][axis] += force;
                            forces[other.0][other.1][sides[1]][axis] -= force;
                        }
                        if is_gas && own.contains(&x) {
                            self.work += half * gas * (apart[0] - before[end]);
                        }
                    }
                    let number = self.strip.start + x;
                    let is_exposed = is_gas && self.settings.heat_points > 0;
                    if is_exposed && own.contains(&x) && !self.is_notch(number, y, is_right) {
                        self.faces.expose((number - 1, y, is_right));
                    }
                    let element = &mut self.columns[x][y];
                    *(if is_right { &mut element.right } else { &mut element.above }) = edge;
                }
            }
        }
        forces
    }

    fn edge(&self, x: usize, y: usize, is_right: bool) -> Edge {
        let element = &self.columns[x][y];
        if is_right { element.right } else { element.above }
    }

    /// Whether an edge belongs to the notch; columns are counted from 1.
    fn is_notch(&self, column: usize, y: usize, is_right: bool) -> bool {
        let [nx, ny] = self.settings.elements();
        !is_right && y == ny / 2 - 1 && column as f64 <= NOTCH * nx as f64
    }

    /// How far the sides of an edge are apart at an end: along its normal and across it.
    fn apart(
        &self,
        (x, y): (usize, usize),
        other: (usize, usize),
        sides: [usize; 2],
        axis: usize,
    ) -> [f64; 2] {
        let before = self.columns[x][y].u[sides[0]];
        let behind = self.columns[other.0][other.1].u[sides[1]];
        [behind[axis] - before[axis], behind[1 - axis] - before[1 - axis]]
    }

    /// The sums over the strip's own elements and their edges. Ghost columns must be up to date.
    pub fn sums(&self) -> Sums {
        let mut sums = Sums { work: self.work, ..Sums::default() };
        let [_, ny] = self.settings.elements();
        let h = self.settings.spacing();
        let mass = DENSITY * h * h / 4.0;
        sums.warming = self.faces.warming() as f64;
        sums.heat = h * self.faces.stored().map(|(_, heat)| heat).sum::<f64>();
        for x in 1..self.columns.len() - 1 {
            for y in 0..ny {
                let element = &self.columns[x][y];
                let forces = elastic_forces(&self.stiffness, &element.u);
                for (corner, force) in forces.iter().enumerate() {
                    for (axis, force) in force.iter().enumerate() {
                        let v = element.v[corner][axis];
                        sums.elastic -= 0.5 * force * element.u[corner][axis];
                        sums.kinetic += 0.5 * mass * v * v;
                        sums.momentum[axis] += mass * v;
                        sums.momenta += mass * v.abs();
                    }
                }
                let number = self.strip.start + x;
                for is_right in [true, false] {
                    let edge = self.edge(x, y, is_right);
                    let Edge::Cohesive { opening, .. } = edge else { continue };
                    let (other, ends, axis) = beside(x, y, is_right);
                    if edge.is_broken() {
                        // What the gas has done since forces were last looked at.
                        for (end, sides) in ends.into_iter().enumerate() {
                            let [apart, _] = self.apart((x, y), other, sides, axis);
                            sums.work += 0.5 * h * self.settings.pressure * (apart - opening[end]);
                        }
                    }
                    if self.is_notch(number, y, is_right) {
                        continue;
                    }
                    for (end, sides) in ends.into_iter().enumerate() {
                        let apart = self.apart((x, y), other, sides, axis);
                        sums.elastic += 0.5 * h * edge.stored(end, apart);
                        sums.dissipated += 0.5 * h * edge.dissipated(end);
                    }
                    sums.edges[0] += 1.0;
                    if edge.is_broken() {
                        sums.edges[1] += 1.0;
                        let is_astray = is_right || y != ny / 2 - 1;
                        sums.edges[2] += if is_astray { 1.0 } else { 0.0 };
                        sums.tip = sums.tip.max(number as f64 * h);
                    }
                }
            }
        }
        sums
    }

    /// A snapshot of the strip's own elements and their edges after this many steps. Ghost columns must be up to date.
    pub fn snapshot(&self, steps: usize) -> Snapshot {
        let h = self.settings.spacing();
        let time = steps as f64 * self.settings.dt();
        let mut snapshot = Snapshot { steps, time, ..Snapshot::default() };
        for (x, column) in self.columns.iter().enumerate().take(self.columns.len() - 1).skip(1) {
            let number = self.strip.start + x;
            for (y, Element { u, .. }) in column.iter().enumerate() {
                let at = [number - 1, y];
                let corners: Corners = std::array::from_fn(|corner| {
                    [(at[0] + (corner & 1)) as f64 * h, (y + (corner >> 1)) as f64 * h]
                });
                snapshot.elements.push(snapshot::Element {
                    at,
                    corners,
                    u: *u,
                    stress: stress(u, h),
                });
                for is_right in [false, true] {
                    let edge = self.edge(x, y, is_right);
                    if edge == Edge::Bonded {
                        continue;
                    }
                    let (other, ends, _) = beside(x, y, is_right);
                    snapshot.edges.push(Parted {
                        at: (at[0], y, is_right),
                        is_notch: self.is_notch(number, y, is_right),
                        is_broken: edge.is_broken(),
                        ends: ends.map(|[before, _]| corners[before]),
                        u: ends.map(|[before, behind]| {
                            [u[before], self.columns[other.0][other.1].u[behind]]
                        }),
                    });
                }
            }
        }
        snapshot
    }

    /// The sum of [`cell_checksum`]s of the bits of all displacements of the strip's own elements, and of
    /// the heat below their faces.
    pub fn checksum(&self) -> u64 {
        let [nx, ny] = self.settings.elements();
        let mut sum: u64 = 0;
        for (x, column) in self.own().enumerate() {
            for (y, element) in column.iter().enumerate() {
                let number = 8 * ((self.strip.start + x) * ny + y) as u64;
                for (at, u) in (0..).zip(element.u.iter().flatten()) {
                    sum = sum.wrapping_add(cell_checksum(number + at, *u));
                }
            }
        }
        for ((x, y, is_right), heat) in self.faces.stored() {
            let number = 8 * nx * ny + 2 * (x * ny + y) + usize::from(is_right);
            sum = sum.wrapping_add(cell_checksum(number as u64, heat));
        }
        sum
    }

    /// Moves all corners of an element of the strip.
    #[cfg(test)]
    pub(super) fn displace(&mut self, x: usize, y: usize, u: impl Fn(usize) -> [f64; 2]) {
        self.columns[x + 1][y].u = std::array::from_fn(u);
    }

    /// The displacements of an element of the strip.
    #[cfg(test)]
    pub(super) fn displacements(&self, x: usize, y: usize) -> Corners {
        self.columns[x + 1][y].u
    }

    fn own(&self) -> impl Iterator<Item = &Vec<Element>> {
        self.columns[1..self.columns.len() - 1].iter()
    }
}

/// The element after an edge, the corners at its ends, and the axis of its normal.
fn beside(x: usize, y: usize, is_right: bool) -> ((usize, usize), [[usize; 2]; 2], usize) {
    if is_right { ((x + 1, y), RIGHT, 0) } else { ((x, y + 1), ABOVE, 1) }
}

/// The forces with which an element resists the displacements of its corners.
fn elastic_forces(stiffness: &[[f64; 8]], u: &Corners) -> Corners {
    let u = u.as_flattened();
    std::array::from_fn(|corner| {
        std::array::from_fn(|axis| {
            -stiffness[2 * corner + axis].iter().zip(u).map(|(k, u)| k * u).sum::<f64>()
        })
    })
}

/// The stress in the middle of an element: along x, along y, shear.
fn stress(u: &Corners, h: f64) -> [f64; 3] {
    let (lambda, shear) = lame();
    let across = |axis: usize| ((u[1][axis] + u[3][axis]) - (u[0][axis] + u[2][axis])) / (2.0 * h);
    let up = |axis: usize| ((u[2][axis] + u[3][axis]) - (u[0][axis] + u[1][axis])) / (2.0 * h);
    let (xx, yy) = (across(0), up(1));
    let volume = lambda * (xx + yy);
    [volume + 2.0 * shear * xx, volume + 2.0 * shear * yy, shear * (up(0) + across(1))]
}

/// The stiffness of a square element under plane strain, by 2 x 2 Gauss points; it does not depend on the element's
/// size.
fn stiffness() -> Vec<[f64; 8]> {
    let (lambda, shear) = lame();
    let mut stiffness = vec![[0.0; 8]; 8];
    for point in 0..4 {
        let sign = |bit: usize| if bit & 1 == 1 { 1.0 } else { -1.0 };
        let at = [sign(point), sign(point >> 1)].map(|s| 0.5 + 0.5 * s / 3f64.sqrt());
        let gradients: [[f64; 2]; 4] = std::array::from_fn(|corner| {
            let (x, y) = (corner & 1, corner >> 1);
            let share = |bit: usize, at: f64| if bit == 1 { at } else { 1.0 - at };
            [sign(x) * share(y, at[1]), sign(y) * share(x, at[0])]
        });
        for (a, ga) in gradients.iter().enumerate() {
            for (b, gb) in gradients.iter().enumerate() {
                let both = ga[0] * gb[0] + ga[1] * gb[1];
                for i in 0..2 {
                    for j in 0..2 {
                        stiffness[2 * a + i][2 * b + j] +=
                            0.25 * (lambda * ga[i] * gb[j] + shear * gb[i] * ga[j]);
                    }
                    stiffness[2 * a + i][2 * b + i] += 0.25 * shear * both;
                }
            }
        }
    }
    stiffness
}
