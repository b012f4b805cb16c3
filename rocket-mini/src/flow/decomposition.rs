//! How the grid is cut into a block for each rank: across x and z, never across y.
//!
//! Columns of cells along y are kept whole, because a receding surface stretches them. Blocks may be made unequal on
//! purpose; the distribution of cells over blocks changes no result.

use super::{Error, GHOSTS};

/// The cells of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Extent {
    /// The number of the first cell along x, y and z.
    pub start: [usize; 3],
    /// Cells along x, y and z.
    pub lengths: [usize; 3],
}

impl Extent {
    /// The middle of the block, in cells from the corner of the domain.
    pub fn centre(&self) -> [f64; 3] {
        std::array::from_fn(|axis| self.start[axis] as f64 + self.lengths[axis] as f64 / 2.0)
    }
}

/// The blocks of all ranks. Ranks are counted along z first, so that the ranks of a PE have a part of the domain with a
/// small surface if the domain is long along x.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    cells: [usize; 3],
    /// Where the blocks along x begin, and where the last one ends.
    x: Vec<usize>,
    /// The same along z.
    z: Vec<usize>,
}

impl Blocks {
    /// Cuts a grid of `cells` for `ranks`. Along x the last block is `unevenness` times as long as
    /// the first, and the others are in between, as far as whole cells allow.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyRanks`] if a block would be shorter than the ghost cells it lends.
    pub fn new(ranks: usize, cells: [usize; 3], unevenness: f64) -> Result<Self, Error> {
        let fits = |parts: usize, length: usize| parts == 1 || parts * GHOSTS <= length;
        let (x, z) = (1..=ranks)
            .filter(|z| ranks.is_multiple_of(*z))
            .map(|z| (ranks / z, z))
            .filter(|&(x, z)| fits(x, cells[0]) && fits(z, cells[2]))
            .min_by_key(|(x, z)| (x * cells[2] + z * cells[0], *z))
            .ok_or(Error::TooManyRanks { ranks, cells })?;
        Ok(Self { cells, x: cuts(cells[0], x, unevenness), z: cuts(cells[2], z, 1.0) })
    }

    /// Blocks along x and z.
    pub fn shape(&self) -> [usize; 2] {
        [self.x.len() - 1, self.z.len() - 1]
    }

    /// The cells of a rank's block.
    pub fn extent(&self, rank: usize) -> Extent {
        let [_, along_z] = self.shape();
        let (x, z) = (rank / along_z, rank % along_z);
        Extent {
            start: [self.x[x], 0, self.z[z]],
            lengths: [self.x[x + 1] - self.x[x], self.cells[1], self.z[z + 1] - self.z[z]],
        }
    }

    /// The ranks before and after a rank along x (0) or z (2), with the two ends joined if
    /// `periodic`.
    pub fn neighbours(&self, rank: usize, axis: usize, periodic: bool) -> [Option<usize>; 2] {
        let [along_x, along_z] = self.shape();
        let (at, count, stride) = if axis == 0 {
            (rank / along_z, along_x, along_z)
        } else {
            (rank % along_z, along_z, 1)
        };
        let first = rank - at * stride;
        let place = |place: usize| first + place * stride;
        let before = if at > 0 { Some(at - 1) } else { periodic.then_some(count - 1) };
        let after = if at + 1 < count { Some(at + 1) } else { periodic.then_some(0) };
        [before.map(place), after.map(place)]
    }
}

/// The beginnings of `parts` parts of `length`, and the end of the last one; each has at least
/// [`GHOSTS`] cells if there are several.
fn cuts(length: usize, parts: usize, unevenness: f64) -> Vec<usize> {
    let weight = |part: usize| {
        let share = if parts > 1 { part as f64 / (parts - 1) as f64 } else { 0.0 };
        1.0 + (unevenness - 1.0) * share
    };
    let total: f64 = (0..parts).map(weight).sum();
    let mut at = vec![0];
    let mut sum = 0.0;
    for part in 0..parts - 1 {
        sum += weight(part);
        let wanted = (sum / total * length as f64).round() as usize;
        let least = at[part] + GHOSTS;
        let most = length - (parts - 1 - part) * GHOSTS;
        at.push(wanted.clamp(least, most));
    }
    at.push(length);
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_each_column_once() {
        for (ranks, unevenness) in [(1, 1.0), (2, 5.0), (6, 1.0), (7, 3.0), (12, 20.0), (15, 1.0)] {
            let cells = [40, 5, 14];
            let blocks = Blocks::new(ranks, cells, unevenness).unwrap();
            let mut covered = vec![0; cells[0] * cells[2]];
            for rank in 0..ranks {
                let Extent { start, lengths } = blocks.extent(rank);
                assert_eq!(lengths[1], 5);
                for z in start[2]..start[2] + lengths[2] {
                    for x in start[0]..start[0] + lengths[0] {
                        covered[z * cells[0] + x] += 1;
                    }
                }
            }
            assert!(covered.iter().all(|times| *times == 1), "{ranks} ranks");
        }
    }

    #[test]
    fn the_last_block_is_longer_by_the_unevenness() {
        let blocks = Blocks::new(5, [300, 1, 1], 4.0).unwrap();
        let first = blocks.extent(0).lengths[0] as f64;
        let last = blocks.extent(4).lengths[0] as f64;
        assert!((last / first - 4.0).abs() < 0.2, "{first} and {last}");
    }

    #[test]
    fn neighbours_see_each_other() {
        let blocks = Blocks::new(12, [40, 5, 14], 1.0).unwrap();
        assert!(blocks.shape()[1] > 1);
        for axis in [0, 2] {
            for periodic in [false, true] {
                let mut ends = 0;
                for rank in 0..12 {
                    let [before, after] = blocks.neighbours(rank, axis, periodic);
                    ends += usize::from(before.is_none()) + usize::from(after.is_none());
                    if let Some(before) = before {
                        assert_eq!(blocks.neighbours(before, axis, periodic)[1], Some(rank));
                    }
                }
                let [x, z] = blocks.shape();
                let expected = if periodic { 0 } else { 2 * if axis == 0 { z } else { x } };
                assert_eq!(ends, expected);
            }
        }
    }

    #[test]
    fn blocks_too_short_to_lend_ghost_cells_are_refused() {
        assert!(Blocks::new(10, [20, 1, 1], 1.0).is_ok());
        let error = Blocks::new(11, [20, 1, 1], 1.0).unwrap_err();
        assert_eq!(error, Error::TooManyRanks { ranks: 11, cells: [20, 1, 1] });
    }
}
