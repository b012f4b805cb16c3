//! Ranks as a grid (MPI-4.1 section 8.5).

use serde::{Deserialize, Serialize};

use crate::{Count, Rank};

/// A grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Number of ranks along each dimension; in rank order the last coordinate varies fastest.
    pub dims: Vec<Count>,
    /// For each dimension, whether it is periodic: its last rank is a neighbour of its first one.
    pub periods: Vec<bool>,
}

/// A rank's part of a grid that is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubGrid {
    /// The grid of the retained dimensions.
    pub grid: Grid,
    /// The number of the part: its coordinate in the others.
    pub color: u32,
    /// The rank's place in the part.
    pub key: Rank,
}

impl Grid {
    /// Writes the coordinates of a rank to `coords`, which is as long as the grid has dimensions.
    #[cfg_attr(
        not(test),
        expect(
            clippy::arithmetic_side_effects,
            reason = "no dimension of a grid with a rank is 0"
        )
    )]
    pub fn coordinates(&self, rank: Rank, coords: &mut [Count]) {
        let mut rest = rank;
        for (d, coord) in self.dims.iter().zip(coords).rev() {
            *coord = rest % d;
            rest /= d;
        }
    }

    /// The rank at coordinates; `None` outside of a non-periodic dimension.
    #[cfg_attr(
        not(test),
        expect(
            clippy::arithmetic_side_effects,
            reason = "a grid has as many places as ranks at most (`dims::places`)"
        )
    )]
    pub fn rank(&self, coords: &[Count]) -> Option<Rank> {
        let mut rank = 0;
        for ((d, periodic), coord) in self.dims.iter().zip(&self.periods).zip(coords) {
            let inside = if *periodic { coord.rem_euclid(*d) } else { *coord };
            if inside < 0 || inside >= *d {
                return None;
            }
            rank = rank * d + inside;
        }
        Some(rank)
    }

    /// The rank `by` steps further along a dimension; beyond an open border there is none.
    fn shifted(&self, rank: Rank, dimension: usize, by: i64) -> Option<Rank> {
        let mut coords = vec![0; self.dims.len()];
        self.coordinates(rank, &mut coords);
        // Neither is longer than 32 bits: the sum does not wrap.
        let place = i64::from(coords[dimension]).saturating_add(by);
        let (dim, periodic) = (i64::from(self.dims[dimension]), self.periods[dimension]);
        let inside = if periodic { place.checked_rem_euclid(dim)? } else { place };
        coords[dimension] = Count::try_from(inside).ok().filter(|coord| i64::from(*coord) < dim)?;
        self.rank(&coords)
    }

    /// The source and the destination of data that is moved `by` steps along a dimension (section 8.5.6): none beyond a
    /// non-periodic border.
    pub fn shift(&self, rank: Rank, dimension: usize, by: Count) -> (Option<Rank>, Option<Rank>) {
        let by = i64::from(by);
        (self.shifted(rank, dimension, by.saturating_neg()), self.shifted(rank, dimension, by))
    }

    /// The coordinates of a rank of the grid.
    pub fn coordinates_of(&self, rank: Rank) -> Vec<Count> {
        let mut coords = vec![0; self.dims.len()];
        self.coordinates(rank, &mut coords);
        coords
    }

    /// The part of the grid that has a rank and all those with the same coordinates in the dimensions that are not
    /// retained.
    #[cfg_attr(
        not(test),
        expect(
            clippy::arithmetic_side_effects,
            reason = "a grid has as many places as ranks at most (`dims::places`)"
        )
    )]
    pub fn sub(&self, retain: &[bool], rank: Rank) -> SubGrid {
        let mut part =
            SubGrid { grid: Grid { dims: Vec::new(), periods: Vec::new() }, color: 0, key: 0 };
        let places = self.dims.iter().zip(&self.periods).zip(self.coordinates_of(rank));
        for (((dim, periodic), coord), retained) in places.zip(retain) {
            if *retained {
                part.grid.dims.push(*dim);
                part.grid.periods.push(*periodic);
                part.key = part.key * dim + coord;
            } else {
                part.color = part.color * dim.unsigned_abs() + coord.unsigned_abs();
            }
        }
        part
    }

    /// The ranks beside a rank in each dimension: below and above.
    pub fn beside(&self, rank: Rank) -> impl Iterator<Item = [Option<Rank>; 2]> + '_ {
        (0..self.dims.len()).map(move |d| [self.shifted(rank, d, -1), self.shifted(rank, d, 1)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_of_any_length_find_the_neighbours() {
        let grid = Grid { dims: vec![3, 2], periods: vec![true, false] };
        for rank in 0..6 {
            let (row, column) = (i64::from(rank / 2), rank % 2);
            for by in [0, 1, -1, 2, 7, -7, Count::MAX, Count::MAX - 1, Count::MIN, Count::MIN + 1] {
                let at = |by: i64| Some((row + by).rem_euclid(3) as Rank * 2 + column);
                let by_rows = (at(-i64::from(by)), at(by.into()));
                assert_eq!(grid.shift(rank, 0, by), by_rows, "rank {rank} by {by} rows");
                let at =
                    |place: i64| (0..2).contains(&place).then(|| rank - column + place as Rank);
                let (column, by) = (i64::from(column), i64::from(by));
                let columns = (at(column - by), at(column + by));
                assert_eq!(
                    grid.shift(rank, 1, by as Count),
                    columns,
                    "rank {rank} by {by} columns"
                );
            }
        }
    }

    #[test]
    fn coordinates_of_closed_dimensions_may_be_any_numbers() {
        let grid = Grid { dims: vec![3, 2], periods: vec![true, false] };
        assert_eq!(grid.rank(&[Count::MIN, 1]), Some(Count::MIN.rem_euclid(3) * 2 + 1));
        assert_eq!(grid.rank(&[Count::MAX, 0]), Some(Count::MAX.rem_euclid(3) * 2));
        assert_eq!(grid.rank(&[0, Count::MAX]), None);
        assert_eq!(grid.rank(&[0, Count::MIN]), None);
    }

    /// The parts of a grid have each rank once, with the coordinates that are left.
    #[test]
    fn parts_of_a_grid_have_each_rank_once() {
        let grid = Grid { dims: vec![2, 3, 4], periods: vec![true, false, true] };
        let part = grid.sub(&[true, false, true], 2 * 4 + 1);
        let dims = Grid { dims: vec![2, 4], periods: vec![true, true] };
        assert_eq!(part, SubGrid { grid: dims, color: 2, key: 1 });
        let mut places: Vec<(u32, Rank)> = (0..24)
            .map(|rank| grid.sub(&[true, false, true], rank))
            .map(|part| (part.color, part.key))
            .collect();
        places.sort_unstable();
        let all = (0..3).flat_map(|color| (0..8).map(move |key| (color, key)));
        assert_eq!(places, Vec::from_iter(all));
    }
}
