//! The relation of a communicator's ranks: a grid, or a graph (MPI-4.1 chapter 8).

use serde::{Deserialize, Serialize};

use crate::comm::CommunicatorHandle;
use crate::{Count, Rank};

/// The relation of a communicator's ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Shape {
    /// None that the communicator knows.
    Plain,
    /// A grid (MPI-4.1 section 8.5.1).
    Cartesian(Grid),
    /// A graph that every rank was given as a whole (section 8.5.3).
    Graph(Neighbors),
    /// A graph of which each rank knows its own edges (section 8.5.4).
    DistributedGraph(Neighbors),
}

/// A grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grid {
    /// Number of ranks along each dimension; in rank order the last coordinate varies fastest.
    pub dims: Vec<Count>,
    /// For each dimension, whether it is periodic: its last rank is a neighbour of its first one.
    pub periods: Vec<bool>,
}

/// The ranks from which a rank receives and to which it sends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Neighbors {
    /// The ranks from which it receives, in the order of its receive buffers.
    pub sources: Vec<Edge>,
    /// The ranks to which it sends, in the order of its send buffers.
    pub destinations: Vec<Edge>,
}

/// A neighbour, or a missing one. The label distinguishes several edges between two ranks; edges with equal labels are
/// matched in order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// The neighbour in the communicator; `None` beyond the border of an open dimension.
    pub rank: Option<Rank>,
    /// Identifies the edge: both ends of an edge have the same label.
    pub label: u32,
}

/// The neighbourhood that a shape defines.
pub fn neighbors(comm: &CommunicatorHandle) -> Option<Neighbors> {
    match &comm.shape {
        Shape::Plain => None,
        Shape::Cartesian(grid) => Some(neighbors_in(grid, comm.rank)),
        Shape::Graph(neighbors) | Shape::DistributedGraph(neighbors) => Some(neighbors.clone()),
    }
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
}

/// For each dimension the neighbours below and above (section 8.6), with labels that distinguish the two if they are
/// the same rank.
#[cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "a grid has few dimensions"
    )
)]
fn neighbors_in(grid: &Grid, rank: Rank) -> Neighbors {
    let (mut sources, mut destinations) = (Vec::new(), Vec::new());
    for d in 0..grid.dims.len() {
        for (by, sent, received) in [(-1, 2 * d, 2 * d + 1), (1, 2 * d + 1, 2 * d)] {
            let rank = grid.shifted(rank, d, by);
            destinations.push(Edge { rank, label: sent as u32 });
            sources.push(Edge { rank, label: received as u32 });
        }
    }
    Neighbors { sources, destinations }
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
}
