//! Where the cells of a block lie: straight along x and z, between floor and surface along y.

use super::block::Block;

/// A face between two cells along an axis.
pub(super) struct Face {
    pub normal: [f64; 3],
    pub area: f64,
    /// How fast it moves along its normal.
    pub speed: f64,
    /// The volume of propellant that burns there per time.
    pub burned: f64,
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

    /// The face before cell `at` along an axis, of the row of cells through `cell`.
    pub(super) fn face(&self, axis: usize, [i, _, k]: [usize; 3], at: usize) -> Face {
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
    pub(super) fn y_face(&self, i: usize, level: usize, k: usize) -> Face {
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
