//! How a cube of cells is cut into one block for each rank.

use super::Error;

/// A side of a block. West and east lie along x, the axis whose cells are
/// neighbours in memory; south and north along y; below and above along z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Towards smaller x.
    West,
    /// Towards larger x.
    East,
    /// Towards smaller y.
    South,
    /// Towards larger y.
    North,
    /// Towards smaller z.
    Below,
    /// Towards larger z.
    Above,
}

impl Face {
    /// All faces, each beside its opposite.
    pub const ALL: [Self; 6] =
        [Self::West, Self::East, Self::South, Self::North, Self::Below, Self::Above];

    /// The axis that crosses the face: 0 for x, 1 for y, 2 for z.
    pub fn axis(self) -> usize {
        self as usize / 2
    }

    /// Whether the face is at the upper end of its axis.
    pub fn is_upper(self) -> bool {
        self as usize % 2 == 1
    }

    /// The face that touches this one in the neighbouring block.
    pub fn opposite(self) -> Self {
        Self::ALL[self as usize ^ 1]
    }
}

/// The cells of a block: `lengths[axis]` of them from `start[axis]` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Extent {
    /// Number of the first cell along x, y and z, counted from zero in the domain.
    pub start: [usize; 3],
    /// Cells along x, y and z.
    pub lengths: [usize; 3],
}

impl Extent {
    /// The middle of the block, in cells from the corner of the domain.
    pub fn centre(&self) -> [f64; 3] {
        std::array::from_fn(|axis| self.start[axis] as f64 + self.lengths[axis] as f64 / 2.0)
    }

    /// The cells in the block.
    pub fn cells(&self) -> usize {
        self.lengths.iter().product()
    }

    /// The cells on one face.
    pub fn face_cells(&self, face: Face) -> usize {
        self.cells() / self.lengths[face.axis()]
    }
}

/// The cost of a cut across x relative to one across y or z: its faces are gathered cell by cell,
/// and it shortens the rows that are computed as vectors. On 2 PEs, 32 blocks of a cube of 96 cells
/// took 1.6 times the time of 2 when cut 2 x 4 x 4, and 1.45 times when cut 1 x 4 x 8.
const X_CUT: usize = 4;

/// The number of axes along which the cube is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Along z only: a block has two neighbours.
    Slabs,
    /// Along all axes, where that makes the cut surface smaller.
    Blocks,
}

/// The ranks as a grid of blocks over a cube with `size` cells per side.
///
/// Of all grids with one block per rank it is the one with the smallest cut surface, where a cut
/// across x counts several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessGrid {
    shape: [usize; 3],
    size: usize,
}

impl ProcessGrid {
    /// The grid for `ranks` blocks of a cube with `size` cells per side.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyRanks`] if some block would have no cells whatever the grid.
    pub fn new(ranks: usize, size: usize) -> Result<Self, Error> {
        Self::cut(ranks, size, Cut::Blocks)
    }

    /// The grid for `ranks` blocks, cut according to `cut`.
    ///
    /// # Errors
    ///
    /// As [`ProcessGrid::new`], and [`Error::TooManySlabs`].
    pub fn cut(ranks: usize, size: usize, cut: Cut) -> Result<Self, Error> {
        if cut == Cut::Slabs {
            let fits = ranks <= size;
            return fits
                .then_some(Self { shape: [1, 1, ranks], size })
                .ok_or(Error::TooManySlabs { ranks, size });
        }
        ordered_factors(ranks)
            .filter(|shape| shape[2] <= size)
            .min_by_key(|shape| (shape.iter().sum::<usize>() + X_CUT * shape[0], shape[2]))
            .map(|shape| Self { shape, size })
            .ok_or(Error::TooManyRanks { ranks, size })
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.shape.iter().product()
    }

    /// Blocks along x, y and z.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The cells of a rank's block. Along an axis that does not divide evenly, the first blocks
    /// have one cell more than the last ones.
    pub fn extent(&self, rank: usize) -> Extent {
        let coordinates = self.coordinates(rank);
        let part = |axis: usize| {
            let (parts, index) = (self.shape[axis], coordinates[axis]);
            let (length, larger) = (self.size / parts, self.size % parts);
            (index * length + index.min(larger), length + usize::from(index < larger))
        };
        let parts = [part(0), part(1), part(2)];
        Extent { start: parts.map(|(start, _)| start), lengths: parts.map(|(_, length)| length) }
    }

    /// The rank whose block touches a face of this rank's block; `None` at
    /// the boundary of the domain.
    pub fn neighbour(&self, rank: usize, face: Face) -> Option<usize> {
        let mut coordinates = self.coordinates(rank);
        let along = &mut coordinates[face.axis()];
        if face.is_upper() {
            *along += 1;
            if *along == self.shape[face.axis()] {
                return None;
            }
        } else {
            *along = along.checked_sub(1)?;
        }
        let [x, y, z] = coordinates;
        Some((z * self.shape[1] + y) * self.shape[0] + x)
    }

    fn coordinates(&self, rank: usize) -> [usize; 3] {
        let [along_x, along_y, _] = self.shape;
        [rank % along_x, rank / along_x % along_y, rank / along_x / along_y]
    }
}

/// Every way to write `product` as three non-decreasing factors.
fn ordered_factors(product: usize) -> impl Iterator<Item = [usize; 3]> {
    divisors_to_root(product, 1, 3).flat_map(move |first| {
        let rest = product / first;
        divisors_to_root(rest, first, 2).map(move |second| [first, second, rest / second])
    })
}

/// The divisors of `number` from `least` on whose power does not exceed it.
fn divisors_to_root(number: usize, least: usize, power: u32) -> impl Iterator<Item = usize> {
    (least..)
        .take_while(move |d| d.checked_pow(power).is_some_and(|p| p <= number))
        .filter(move |d| number.is_multiple_of(*d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_compact_and_cut_x_least() {
        for (ranks, shape) in [
            (1, [1, 1, 1]),
            (2, [1, 1, 2]),
            (5, [1, 1, 5]),
            (8, [1, 2, 4]),
            (12, [1, 3, 4]),
            (32, [1, 4, 8]),
            (64, [1, 8, 8]),
            (512, [2, 16, 16]),
        ] {
            let grid = ProcessGrid::new(ranks, 64).unwrap();
            assert_eq!(grid.shape(), shape, "{ranks} ranks");
        }
    }

    #[test]
    fn the_shape_has_the_least_costly_surface_of_all() {
        for ranks in 1..=200 {
            let mut best = usize::MAX;
            for x in 1..=ranks {
                for y in 1..=ranks {
                    if ranks % (x * y) == 0 {
                        best = best.min((1 + X_CUT) * x + y + ranks / (x * y));
                    }
                }
            }
            let shape = ProcessGrid::new(ranks, 200).unwrap().shape();
            assert_eq!(shape.iter().product::<usize>(), ranks);
            assert_eq!(shape.iter().sum::<usize>() + X_CUT * shape[0], best, "{ranks} ranks");
        }
    }

    #[test]
    fn blocks_cover_each_cell_once_and_differ_by_at_most_one_cell_a_side() {
        for ranks in [1, 2, 3, 5, 6, 7, 8, 12, 18, 27] {
            for size in [7, 8, 13] {
                let grid = ProcessGrid::new(ranks, size).unwrap();
                let mut covered = vec![0; size * size * size];
                let mut shortest = [usize::MAX; 3];
                let mut longest = [0; 3];
                for rank in 0..ranks {
                    let extent = grid.extent(rank);
                    for axis in 0..3 {
                        shortest[axis] = shortest[axis].min(extent.lengths[axis]);
                        longest[axis] = longest[axis].max(extent.lengths[axis]);
                    }
                    for z in 0..extent.lengths[2] {
                        for y in 0..extent.lengths[1] {
                            for x in 0..extent.lengths[0] {
                                let at = [x, y, z];
                                let [x, y, z] = [0, 1, 2].map(|a| extent.start[a] + at[a]);
                                covered[(z * size + y) * size + x] += 1;
                            }
                        }
                    }
                }
                assert!(covered.iter().all(|times| *times == 1));
                for axis in 0..3 {
                    assert!(shortest[axis] >= 1);
                    assert!(longest[axis] - shortest[axis] <= 1);
                }
            }
        }
    }

    #[test]
    fn neighbours_see_each_other_through_faces_of_one_size() {
        for ranks in [1, 2, 6, 7, 12, 27, 36] {
            let grid = ProcessGrid::new(ranks, 37).unwrap();
            let mut links = 0;
            for rank in 0..ranks {
                for face in Face::ALL {
                    let Some(other) = grid.neighbour(rank, face) else {
                        let extent = grid.extent(rank);
                        let axis = face.axis();
                        let end = extent.start[axis] + extent.lengths[axis];
                        assert!(if face.is_upper() { end == 37 } else { extent.start[axis] == 0 });
                        continue;
                    };
                    links += 1;
                    assert_eq!(grid.neighbour(other, face.opposite()), Some(rank));
                    assert_eq!(
                        grid.extent(rank).face_cells(face),
                        grid.extent(other).face_cells(face.opposite())
                    );
                }
            }
            let [x, y, z] = grid.shape();
            assert_eq!(links, 2 * (3 * ranks - y * z - x * z - x * y), "{ranks} ranks");
        }
    }

    #[test]
    fn more_ranks_than_fit_are_refused() {
        assert_eq!(ProcessGrid::new(27, 3).unwrap().shape(), [3, 3, 3]);
        assert_eq!(ProcessGrid::new(12, 3).unwrap().shape(), [2, 2, 3]);
        assert!(ProcessGrid::new(28, 3).is_err());
        assert_eq!(ProcessGrid::cut(8, 8, Cut::Slabs).unwrap().shape(), [1, 1, 8]);
        let error = ProcessGrid::cut(9, 8, Cut::Slabs).unwrap_err();
        assert_eq!(error, Error::TooManySlabs { ranks: 9, size: 8 });
        assert!(ProcessGrid::new(7, 6).is_err(), "a prime number of blocks in a row");
    }
}
