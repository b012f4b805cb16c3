//! The transfer between two surface meshes that do not match: loads and motions.
//!
//! Both meshes cover the same rectangle with their own rectangles. A load is integrated over the common refinement, the
//! overlaps of faces of both meshes, in which both fields are polynomials (Jiao and Heath, Int. J. Numer. Meth. Eng.
//! 61, 2004): no force is lost. Motions are interpolated in the faces that contain the points. Both preserve constants
//! and linear fields.
//!
//! No rank knows the other mesh. [`Route::discover`] finds out which ranks' faces touch through a directory and sparse
//! exchanges; [`Route::send`] then sends values along these routes.
//!
//! The results of a rank depend only on the faces that touch its own, in the order of their numbers, and so have the
//! same bits for any distribution of the other mesh.

mod route;
pub mod trial;

use serde::{Deserialize, Serialize};

pub use route::Route;

/// A face of a surface mesh: a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Face {
    /// Its number in the mesh.
    pub number: u64,
    /// Its lower corner.
    pub low: [f64; 2],
    /// Its upper corner.
    pub high: [f64; 2],
}

/// Values at the corners of a face, the first coordinate fastest; between them they are bilinear.
pub type Corners = [f64; 4];

impl Face {
    /// Whether it has a point in common with another face, including their edges.
    pub fn touches(&self, other: &Self) -> bool {
        (0..2).all(|axis| self.low[axis] <= other.high[axis] && other.low[axis] <= self.high[axis])
    }

    /// Whether a point lies in it or on its edge.
    pub fn has(&self, point: [f64; 2]) -> bool {
        (0..2).all(|axis| (self.low[axis]..=self.high[axis]).contains(&point[axis]))
    }

    /// The weights of the four corners in the value at a point: they sum to 1.
    pub fn shares(&self, point: [f64; 2]) -> Corners {
        let [s, t]: [f64; 2] = std::array::from_fn(|axis| {
            (point[axis] - self.low[axis]) / (self.high[axis] - self.low[axis])
        });
        [(1.0 - s) * (1.0 - t), s * (1.0 - t), (1.0 - s) * t, s * t]
    }

    /// The value at a point.
    pub fn interpolate(&self, corners: &Corners, point: [f64; 2]) -> f64 {
        self.shares(point).iter().zip(corners).map(|(share, value)| share * value).sum()
    }

    /// Adds the contribution of a load on another face to the forces at this face's corners: the integral of the load
    /// times the corners' weights, over the overlap.
    pub fn add_load(&self, forces: &mut Corners, other: &Self, load: &Corners) {
        let low: [f64; 2] = std::array::from_fn(|axis| self.low[axis].max(other.low[axis]));
        let high: [f64; 2] = std::array::from_fn(|axis| self.high[axis].min(other.high[axis]));
        if (0..2).any(|axis| low[axis] >= high[axis]) {
            return;
        }
        // Two Gauss points along each axis are exact for the product of two bilinear functions.
        let area = (high[0] - low[0]) * (high[1] - low[1]);
        let along = |axis: usize, sign: f64| {
            let (middle, half) = (0.5 * (low[axis] + high[axis]), 0.5 * (high[axis] - low[axis]));
            middle + sign * half / 3f64.sqrt()
        };
        for signs in [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]] {
            let point = [along(0, signs[0]), along(1, signs[1])];
            let value = 0.25 * area * other.interpolate(load, point);
            for (force, share) in forces.iter_mut().zip(self.shares(point)) {
                *force += value * share;
            }
        }
    }
}

/// The forces at the corners of each of `faces` under loads on other faces, which are in the order
/// of their numbers.
pub fn forces(faces: &[Face], loaded: &[Face], loads: &[Corners]) -> Vec<Corners> {
    let force_on = |face: &Face| {
        let mut forces = [0.0; 4];
        for (other, load) in loaded.iter().zip(loads) {
            if face.touches(other) {
                face.add_load(&mut forces, other, load);
            }
        }
        forces
    };
    faces.iter().map(force_on).collect()
}

/// The values at points of a field on faces, which are in the order of their numbers; the first face that contains a
/// point determines its value. `None` for a point in no face.
pub fn interpolate<const N: usize>(
    points: &[[f64; 2]],
    faces: &[Face],
    corners: &[[Corners; N]],
) -> Vec<Option<[f64; N]>> {
    let value_at = |point: &[f64; 2]| {
        let at = faces.iter().position(|face| face.has(*point))?;
        Some(corners[at].map(|corners| faces[at].interpolate(&corners, *point)))
    };
    points.iter().map(value_at).collect()
}

/// The lines of a graded mesh of the interval from 0 to 1 with `cells` cells, which are smaller in the middle by
/// `grading`, below 1.
pub fn graded_lines(cells: usize, grading: f64) -> Vec<f64> {
    use std::f64::consts::TAU;
    let place = |line: usize| {
        let t = line as f64 / cells as f64;
        t + grading / TAU * libm::sin(TAU * t)
    };
    (0..=cells).map(|line| if line == cells { 1.0 } else { place(line) }).collect()
}

#[cfg(test)]
mod tests;
