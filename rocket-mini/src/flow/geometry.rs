//! Where the cells of a block lie: straight along x and z, between floor and surface along y.

use super::block::Block;
use super::lanes::{LANES, Lanes, load};

/// The faces across y of a row of columns. They are bilinear between corners at the same fraction of the height of the
/// surface; area and normal come from the product of the diagonals.
#[derive(Debug, Default)]
pub(super) struct Tilt {
    /// The components of the area along x and z at the surface, and along y everywhere.
    along_x: Vec<f64>,
    along_z: Vec<f64>,
    column: f64,
    /// The burned volume, and the volume swept by the surface, per time.
    burned: Vec<f64>,
    moved: Vec<f64>,
}

impl Tilt {
    #[inline(always)]
    fn vector(&self, share: f64, i: usize) -> [Lanes; 3] {
        let share = Lanes::splat(share);
        let (x, z) = (load(&self.along_x, i), load(&self.along_z, i));
        [share * x, Lanes::splat(self.column), share * z]
    }

    /// The areas of faces at a fraction of the height, from column `i` on.
    #[inline(always)]
    pub(super) fn area(&self, share: f64, i: usize) -> Lanes {
        let [x, y, z] = self.vector(share, i);
        (x * x + y * y + z * z).sqrt()
    }

    /// Their unit normals.
    #[inline(always)]
    pub(super) fn normal(&self, share: f64, i: usize) -> [Lanes; 3] {
        let one = Lanes::ONE / self.area(share, i);
        let [x, y, z] = self.vector(share, i);
        [x * one, y * one, z * one]
    }

    /// How fast they move along their normals.
    #[inline(always)]
    pub(super) fn speed(&self, share: f64, i: usize) -> Lanes {
        let moved = load(&self.burned, i) + load(&self.moved, i);
        Lanes::splat(share) * moved * (Lanes::ONE / self.area(share, i))
    }

    /// The normal of one face, its speed along the normal, and the volume of propellant that burns there, per area and
    /// time.
    pub(super) fn at(&self, share: f64, i: usize) -> ([f64; 3], [f64; 2]) {
        let [x, y, z] = [share * self.along_x[i], self.column, share * self.along_z[i]];
        let one = 1.0 / (x * x + y * y + z * z).sqrt();
        let speed = share * (self.burned[i] + self.moved[i]) * one;
        ([x * one, y * one, z * one], [speed, share * self.burned[i] * one])
    }
}

impl Block {
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

    /// The area of the face across x before the cells of column `i`.
    pub(super) fn x_face_area(&self, i: usize, k: usize) -> f64 {
        let [_, dz] = self.spacings();
        dz * self.mean_height(self.corner(i, k), self.corner(i, k + 1))
    }

    /// The area of the face across z before the cells of column `k`.
    pub(super) fn z_face_area(&self, i: usize, k: usize) -> f64 {
        let [dx, _] = self.spacings();
        dx * self.mean_height(self.corner(i, k), self.corner(i + 1, k))
    }

    /// The height of a cell between two corners of columns.
    fn mean_height(&self, a: usize, b: usize) -> f64 {
        0.5 * (self.heights[a] + self.heights[b]) / self.extent.lengths[1] as f64
    }

    /// Computes the faces across y of a row of columns. Lanes beyond its end repeat its last column, just as
    /// [`gather`](super::flux::gather) repeats its last cell.
    pub(super) fn find_tilt(&self, k: usize, tilt: &mut Tilt) {
        let [dx, dz] = self.spacings();
        let nx = self.extent.lengths[0];
        tilt.column = dx * dz;
        for row in [&mut tilt.along_x, &mut tilt.along_z, &mut tilt.burned, &mut tilt.moved] {
            row.resize(nx + LANES, 0.0);
        }
        for i in 0..nx {
            let [y00, y10] = [i, i + 1].map(|i| self.height(i, k));
            let [y01, y11] = [i, i + 1].map(|i| self.height(i, k + 1));
            tilt.along_x[i] = 0.5 * dz * ((y00 + y01) - (y10 + y11));
            tilt.along_z[i] = 0.5 * dx * ((y00 + y10) - (y01 + y11));
            tilt.burned[i] = dx * dz * self.column_mean(&self.burning, i, k);
            tilt.moved[i] = dx * dz * self.column_mean(&self.motion, i, k);
        }
        for row in [&mut tilt.along_x, &mut tilt.along_z, &mut tilt.burned, &mut tilt.moved] {
            let last = row[nx - 1];
            row[nx..].fill(last);
        }
    }

    /// The area of a column of cells, seen from above.
    pub fn column_area(&self) -> f64 {
        let [dx, dz] = self.spacings();
        dx * dz
    }

    pub(super) fn cell_volume(&self, heights: &[f64], i: usize, k: usize) -> f64 {
        let [dx, dz] = self.spacings();
        dx * dz * self.column_mean(heights, i, k) / self.extent.lengths[1] as f64
    }

    /// The mean over the corners of a column.
    pub(super) fn column_mean(&self, corners: &[f64], i: usize, k: usize) -> f64 {
        let before = corners[self.corner(i, k)] + corners[self.corner(i + 1, k)];
        let after = corners[self.corner(i, k + 1)] + corners[self.corner(i + 1, k + 1)];
        0.25 * (before + after)
    }

    pub(super) fn corner(&self, i: usize, k: usize) -> usize {
        k * (self.extent.lengths[0] + 1) + i
    }

    /// The widths of cells along x and z.
    pub(super) fn spacings(&self) -> [f64; 2] {
        let [x, _, z] = self.problem.size();
        [x / self.domain[0] as f64, z / self.domain[2] as f64]
    }
}
