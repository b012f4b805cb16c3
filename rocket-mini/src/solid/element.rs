//! The trilinear hexahedron: stiffness and mass by 2 x 2 x 2 Gauss points.
//!
//! Hughes, The Finite Element Method, chapter 3. Nodes are numbered with x fastest, then y, then z.

use serde::{Deserialize, Serialize};

/// A vector in space.
pub type Vector = [f64; 3];

/// A block of a matrix that couples the displacements of two nodes.
pub type Coupling = [[f64; 3]; 3];

/// A material that is elastic, isotropic and linear.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Material {
    /// Young's modulus, in force per area.
    pub young: f64,
    /// Poisson's ratio, below 0.5.
    pub poisson: f64,
    /// Mass per volume.
    pub density: f64,
}

impl Material {
    /// Lame's two moduli.
    pub fn lame(&self) -> (f64, f64) {
        let shear = self.young / (2.0 * (1.0 + self.poisson));
        (2.0 * shear * self.poisson / (1.0 - 2.0 * self.poisson), shear)
    }
}

/// The contribution of an element to the system.
pub struct Element {
    /// The stiffness between each pair of nodes.
    pub stiffness: [[Coupling; 8]; 8],
    /// The mass at each node: the integral of its shape function.
    pub mass: [f64; 8],
}

impl Element {
    /// The element with nodes at these positions; `None` if it is inside out at a Gauss point.
    pub fn new(nodes: &[Vector; 8], material: &Material) -> Option<Self> {
        let (lambda, shear) = material.lame();
        let mut element = Self { stiffness: [[[[0.0; 3]; 3]; 8]; 8], mass: [0.0; 8] };
        for point in 0..8 {
            let at = gauss_point(point);
            let (gradients, volume) = gradients(nodes, at)?;
            for a in 0..8 {
                element.mass[a] += material.density * volume * shape(a, at);
                for b in 0..8 {
                    let (ga, gb) = (gradients[a], gradients[b]);
                    let both = ga[0] * gb[0] + ga[1] * gb[1] + ga[2] * gb[2];
                    let coupling = &mut element.stiffness[a][b];
                    for i in 0..3 {
                        for j in 0..3 {
                            let stiffness = lambda * ga[i] * gb[j] + shear * gb[i] * ga[j];
                            coupling[i][j] += volume * stiffness;
                        }
                        coupling[i][i] += volume * shear * both;
                    }
                }
            }
        }
        Some(element)
    }
}

/// Whether an element with nodes at these positions is inside out at no Gauss point.
pub(super) fn is_sound(nodes: &[Vector; 8]) -> bool {
    (0..8).all(|point| gradients(nodes, gauss_point(point)).is_some())
}

/// A Gauss point's place in the reference cube.
fn gauss_point(point: usize) -> Vector {
    corner(point).map(|sign| sign / 3f64.sqrt())
}

/// A node's place in the reference cube: -1 or 1 along each axis.
fn corner(node: usize) -> Vector {
    std::array::from_fn(|axis| if node >> axis & 1 == 1 { 1.0 } else { -1.0 })
}

fn shape(node: usize, at: Vector) -> f64 {
    let corner = corner(node);
    (0..3).map(|axis| 0.5 * (1.0 + corner[axis] * at[axis])).product()
}

/// The gradients of the shape functions at a Gauss point, and the volume that it represents.
fn gradients(nodes: &[Vector; 8], at: Vector) -> Option<([Vector; 8], f64)> {
    let reference: [Vector; 8] = std::array::from_fn(|node| {
        let corner = corner(node);
        std::array::from_fn(|axis| {
            let others: f64 = (0..3)
                .filter(|other| *other != axis)
                .map(|other| 0.5 * (1.0 + corner[other] * at[other]))
                .product();
            0.5 * corner[axis] * others
        })
    });
    // Rows: the place; columns: the reference axes.
    let jacobian: Coupling = std::array::from_fn(|i| {
        std::array::from_fn(|j| (0..8).map(|node| nodes[node][i] * reference[node][j]).sum())
    });
    let volume = determinant(&jacobian);
    let inverse = (volume > 0.0).then(|| inverse(&jacobian))?;
    let gradients = reference.map(|reference| {
        std::array::from_fn(|i| (0..3).map(|j| reference[j] * inverse[j][i]).sum())
    });
    Some((gradients, volume))
}

/// The determinant of a matrix.
pub(super) fn determinant(m: &Coupling) -> f64 {
    m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
}

/// The inverse of a matrix whose determinant is not zero.
pub(super) fn inverse(m: &Coupling) -> Coupling {
    let determinant = determinant(m);
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let [a, b] = [(j + 1) % 3, (j + 2) % 3];
            let [c, d] = [(i + 1) % 3, (i + 2) % 3];
            (m[a][c] * m[b][d] - m[a][d] * m[b][c]) / determinant
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brick() -> [Vector; 8] {
        // Trilinear, with no two faces parallel.
        std::array::from_fn(|node| {
            let [x, y, z] = corner(node);
            [x + 0.1 * y * z, 2.0 * y - 0.2 * x, z + 0.15 * x * y + 0.3 * x]
        })
    }

    #[test]
    fn rigid_motions_need_no_force() {
        let material = Material { young: 3.0, poisson: 0.3, density: 2.0 };
        let nodes = brick();
        let element = Element::new(&nodes, &material).unwrap();
        let motions: [fn(Vector) -> Vector; 3] =
            [|_| [1.0, 2.0, -1.0], |[x, y, _]| [-y, x, 0.0], |[x, y, z]| [z, z, -x - y]];
        for motion in motions {
            for a in 0..8 {
                for i in 0..3 {
                    let force: f64 = (0..8)
                        .map(|b| {
                            let u = motion(nodes[b]);
                            (0..3).map(|j| element.stiffness[a][b][i][j] * u[j]).sum::<f64>()
                        })
                        .sum();
                    assert!(force.abs() < 1e-13, "{force}");
                }
            }
        }
    }

    #[test]
    fn the_stiffness_is_symmetric_and_the_mass_that_of_the_volume() {
        let material = Material { young: 3.0, poisson: 0.3, density: 2.0 };
        let cube: [Vector; 8] = std::array::from_fn(corner);
        let element = Element::new(&cube, &material).unwrap();
        assert!((element.mass.iter().sum::<f64>() - 16.0).abs() < 1e-13);
        let element = Element::new(&brick(), &material).unwrap();
        for a in 0..8 {
            for b in 0..8 {
                for i in 0..3 {
                    for j in 0..3 {
                        let (one, other) =
                            (element.stiffness[a][b][i][j], element.stiffness[b][a][j][i]);
                        assert!((one - other).abs() < 1e-14);
                    }
                }
            }
        }
    }

    #[test]
    fn an_element_inside_out_is_none() {
        let mut nodes = brick();
        nodes.swap(0, 7);
        let material = Material { young: 1.0, poisson: 0.2, density: 1.0 };
        assert!(Element::new(&nodes, &material).is_none());
    }

    #[test]
    fn inverses_are_inverse() {
        let m = [[2.0, 1.0, 0.5], [-1.0, 3.0, 0.2], [0.4, 0.1, 1.5]];
        let inverse = inverse(&m);
        for (i, row) in m.iter().enumerate() {
            for j in 0..3 {
                let entry: f64 = row.iter().zip(&inverse).map(|(m, inverse)| m * inverse[j]).sum();
                assert!((entry - f64::from(u8::from(i == j))).abs() < 1e-14);
            }
        }
    }
}
