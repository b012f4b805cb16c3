//! A part of an elastic body: its matrix, and the operations on it.
//!
//! The matrix of a part is the sum of its own elements. A value computed with it at a shared node is incomplete until
//! [`Parts::add`] has made it the sum over all parts; vectors of displacements always have the same value in all copies
//! of a node. Sums over nodes count a shared node once, in the first part that has it.

use super::Error;
use super::element::{Coupling, Element, Material, Vector, inverse};
use super::matrix::Matrix;

/// The other parts of the body.
pub trait Parts {
    /// Replaces the values of shared nodes by the sum of those in all parts.
    fn add<const N: usize>(&mut self, values: &mut [[f64; N]]);

    /// The sums of the values of all parts.
    fn sums<const N: usize>(&mut self, values: [f64; N]) -> [f64; N];

    /// The sum of the values of all parts.
    fn sum(&mut self, value: f64) -> f64 {
        let [sum] = self.sums([value]);
        sum
    }
}

/// The part that is the whole body.
pub struct Whole;

impl Parts for Whole {
    fn add<const N: usize>(&mut self, _: &mut [[f64; N]]) {}

    fn sums<const N: usize>(&mut self, values: [f64; N]) -> [f64; N] {
        values
    }
}

/// A part of a body, and the directions in which the displacements of its nodes are given.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Body {
    matrix: Matrix,
    /// The mass at each node, from all parts.
    pub mass: Vec<f64>,
    /// Whether this part counts a node in sums.
    is_counted: Vec<bool>,
    /// Whether the displacement of a node is given, along each axis.
    pub is_given: Vec<[bool; 3]>,
}

/// When the solver stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// The residual, relative to the right-hand side.
    pub tolerance: f64,
    /// Iterations after which it gives up.
    pub max_iterations: usize,
}

impl Body {
    /// The part of a body with these elements, given by their nodes, x fastest, and nodes at these positions.
    ///
    /// # Errors
    ///
    /// [`Error::InsideOut`] if an element is inside out.
    pub fn new(
        elements: impl IntoIterator<Item = [usize; 8]>,
        places: &[Vector],
        material: &Material,
        is_counted: Vec<bool>,
        is_given: Vec<[bool; 3]>,
        parts: &mut impl Parts,
    ) -> Result<Self, Error> {
        let mut rows: Vec<Vec<(usize, Coupling)>> = vec![Vec::new(); places.len()];
        let mut mass = vec![[0.0]; places.len()];
        let mut inside_out = None;
        for (element, nodes) in elements.into_iter().enumerate() {
            let Some(matrices) = Element::new(&nodes.map(|node| places[node]), material) else {
                inside_out.get_or_insert(element);
                continue;
            };
            for (a, node) in nodes.into_iter().enumerate() {
                mass[node][0] += matrices.mass[a];
                for (b, other) in nodes.into_iter().enumerate() {
                    let row = &mut rows[node];
                    let at = row.iter().position(|(column, _)| *column == other);
                    let at = at.unwrap_or_else(|| {
                        row.push((other, [[0.0; 3]; 3]));
                        row.len() - 1
                    });
                    for (sum, more) in row[at].1.iter_mut().zip(matrices.stiffness[a][b]) {
                        for (sum, more) in sum.iter_mut().zip(more) {
                            *sum += more;
                        }
                    }
                }
            }
        }
        if parts.sum(f64::from(u8::from(inside_out.is_some()))) > 0.0 {
            return Err(Error::InsideOut { element: inside_out });
        }
        parts.add(&mut mass);
        let mass = mass.into_iter().map(|[mass]| mass).collect();
        Ok(Self { matrix: Matrix::new(rows), mass, is_counted, is_given })
    }

    /// The forces that displacements require, as far as this part's elements contribute.
    pub fn forces(&self, displacements: &[Vector]) -> Vec<Vector> {
        let mut forces = vec![[0.0; 3]; displacements.len()];
        self.matrix.multiply(displacements, &mut forces);
        forces
    }

    /// The elastic energy of displacements, of the whole body.
    pub fn elastic_energy(&self, displacements: &[Vector], parts: &mut impl Parts) -> f64 {
        let forces = self.forces(displacements);
        let of_part: f64 = (forces.iter().zip(displacements))
            .map(|(f, u)| f[0] * u[0] + f[1] * u[1] + f[2] * u[2])
            .sum();
        0.5 * parts.sum(of_part)
    }

    /// The kinetic energy of velocities, of the whole body.
    pub fn kinetic_energy(&self, velocities: &[Vector], parts: &mut impl Parts) -> f64 {
        let squares = |v: &Vector| v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
        0.5 * self.sum(parts, |node| self.mass[node] * squares(&velocities[node]))
    }

    /// The sum over all nodes of the body.
    pub fn sum(&self, parts: &mut impl Parts, value: impl Fn(usize) -> f64) -> f64 {
        let counted = (0..self.mass.len()).filter(|node| self.is_counted[*node]);
        parts.sum(counted.map(value).sum())
    }

    /// [`Body::sum`] of several values.
    fn sums<const N: usize>(
        &self,
        parts: &mut impl Parts,
        values: impl Fn(usize) -> [f64; N],
    ) -> [f64; N] {
        let mut own = [0.0; N];
        for node in (0..self.mass.len()).filter(|node| self.is_counted[*node]) {
            for (own, value) in own.iter_mut().zip(values(node)) {
                *own += value;
            }
        }
        parts.sums(own)
    }

    /// Solves `(stiffness + inertia * mass) u = load` by conjugate gradients, preconditioned by the blocks of nodes.
    /// `u` contains the first guess, and the given displacements; `load` is that of all parts. Returns the number of
    /// iterations.
    ///
    /// # Errors
    ///
    /// [`Error::NotConverged`], in all parts.
    pub fn solve(
        &self,
        inertia: f64,
        load: &[Vector],
        u: &mut [Vector],
        precision: Precision,
        parts: &mut impl Parts,
    ) -> Result<usize, Error> {
        let blocks = self.node_blocks(inertia, parts);
        let mut product = vec![[0.0; 3]; u.len()];
        self.apply(inertia, u, &mut product, parts);
        let mut residual: Vec<Vector> = (load.iter().zip(&product).zip(&self.is_given))
            .map(|((f, ku), given)| {
                std::array::from_fn(|axis| if given[axis] { 0.0 } else { f[axis] - ku[axis] })
            })
            .collect();
        let precondition =
            |node: usize, residual: &Vector| blocks[node].map(|row| dot(&row, residual));
        let mut z: Vec<Vector> = residual
            .iter()
            .enumerate()
            .map(|(node, residual)| precondition(node, residual))
            .collect();
        let mut p = z.clone();
        // What is given makes a load, too, so the first residual counts beside the load.
        let [mut rz, mut square, size] = self.sums(parts, |node| {
            let r = &residual[node];
            [dot(r, &z[node]), dot(r, r), dot(&load[node], &load[node])]
        });
        let enough = precision.tolerance * precision.tolerance * size.max(square);
        let mut iterations = 0;
        while square > enough || square.is_nan() {
            if iterations == precision.max_iterations || !square.is_finite() {
                let residual = (square / size.max(f64::MIN_POSITIVE)).sqrt();
                return Err(Error::NotConverged { iterations, residual });
            }
            self.apply(inertia, &p, &mut product, parts);
            let step = rz / self.sum(parts, |node| dot(&p[node], &product[node]));
            // One pass over the nodes, and one reduction for both products.
            let mut own = [0.0; 2];
            for node in 0..u.len() {
                let r = &mut residual[node];
                for axis in 0..3 {
                    u[node][axis] += step * p[node][axis];
                    r[axis] -= step * product[node][axis];
                }
                z[node] = precondition(node, r);
                if self.is_counted[node] {
                    own[0] += dot(r, &z[node]);
                    own[1] += dot(r, r);
                }
            }
            let [next, new_square] = parts.sums(own);
            square = new_square;
            let ratio = next / rz;
            rz = next;
            for (p, z) in p.iter_mut().zip(&z) {
                *p = std::array::from_fn(|axis| z[axis] + ratio * p[axis]);
            }
            iterations += 1;
        }
        Ok(iterations)
    }

    /// The product of the system's matrix and `x`, over all parts; zero where displacements are given.
    fn apply(&self, inertia: f64, x: &[Vector], product: &mut [Vector], parts: &mut impl Parts) {
        self.matrix.multiply(x, product);
        parts.add(product);
        for (node, product) in product.iter_mut().enumerate() {
            for (axis, product) in product.iter_mut().enumerate() {
                let force = *product + inertia * self.mass[node] * x[node][axis];
                *product = if self.is_given[node][axis] { 0.0 } else { force };
            }
        }
    }

    /// The inverses of the blocks on the diagonal, zero where displacements are given.
    fn node_blocks(&self, inertia: f64, parts: &mut impl Parts) -> Vec<Coupling> {
        let mut blocks: Vec<[f64; 9]> = (0..self.mass.len())
            .map(|node| {
                let mut row = self.matrix.row(node);
                let own = row.find(|(column, _)| *column == node);
                let [a, b, c] = own.map_or([[0.0; 3]; 3], |(_, coupling)| *coupling);
                [a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]]
            })
            .collect();
        parts.add(&mut blocks);
        (blocks.iter().enumerate())
            .map(|(node, block)| {
                let given = self.is_given[node];
                let free: Coupling = std::array::from_fn(|i| {
                    std::array::from_fn(|j| match (i == j, given[i] || given[j]) {
                        (true, true) => 1.0,
                        (false, true) => 0.0,
                        (true, false) => block[4 * i] + inertia * self.mass[node],
                        (false, false) => block[3 * i + j],
                    })
                });
                let mut inverse = inverse(&free);
                for axis in (0..3).filter(|axis| given[*axis]) {
                    inverse[axis] = [0.0; 3];
                }
                inverse
            })
            .collect()
    }
}

/// How a body moves.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Motion {
    /// Displacements of the part's nodes.
    pub u: Vec<Vector>,
    /// Velocities.
    pub v: Vec<Vector>,
    /// Accelerations.
    pub a: Vec<Vector>,
}

impl Motion {
    /// A body that is released: the accelerations are those of its load, which is that of all parts.
    pub fn new(
        body: &Body,
        u: Vec<Vector>,
        v: Vec<Vector>,
        load: &[Vector],
        parts: &mut impl Parts,
    ) -> Self {
        let mut forces = body.forces(&u);
        parts.add(&mut forces);
        let a = (0..u.len())
            .map(|node| {
                std::array::from_fn(|axis| {
                    let force = load[node][axis] - forces[node][axis];
                    if body.is_given[node][axis] { 0.0 } else { force / body.mass[node] }
                })
            })
            .collect();
        Self { u, v, a }
    }

    /// Makes a step by Newmark's method with constant mean acceleration (beta 1/4, gamma 1/2), which is stable for any
    /// step, of second order, and conserves energy. Given displacements are kept. Returns the solver's iterations.
    ///
    /// # Errors
    ///
    /// [`Error::NotConverged`].
    pub fn step(
        &mut self,
        body: &Body,
        dt: f64,
        load: &[Vector],
        precision: Precision,
        parts: &mut impl Parts,
    ) -> Result<usize, Error> {
        let inertia = 4.0 / (dt * dt);
        let mut right = load.to_vec();
        let mut next = self.u.clone();
        for node in 0..next.len() {
            for axis in (0..3).filter(|axis| !body.is_given[node][*axis]) {
                let (u, v, a) = (self.u[node][axis], self.v[node][axis], self.a[node][axis]);
                right[node][axis] += body.mass[node] * (inertia * u + 4.0 / dt * v + a);
                next[node][axis] = u + dt * v + 0.5 * dt * dt * a;
            }
        }
        let iterations = body.solve(inertia, &right, &mut next, precision, parts)?;
        for (node, next) in next.iter().enumerate() {
            for axis in (0..3).filter(|axis| !body.is_given[node][*axis]) {
                let (v, a) = (self.v[node][axis], self.a[node][axis]);
                let moved = next[axis] - self.u[node][axis];
                self.a[node][axis] = inertia * moved - 4.0 / dt * v - a;
                self.v[node][axis] = 2.0 / dt * moved - v;
            }
        }
        self.u = next;
        Ok(iterations)
    }
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
