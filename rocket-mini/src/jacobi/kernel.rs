//! The arithmetic of one row of cells, in one fixed order.
//!
//! Every cell of every run is computed by the same operations in the same
//! order, so its bits do not depend on how the domain is cut.

/// The rows of neighbours of a row of cells, and the row itself.
pub(super) struct Stencil<'a> {
    /// The row with one more cell at either end.
    pub centre: &'a [f64],
    /// The row at y - 1.
    pub south: &'a [f64],
    /// The row at y + 1.
    pub north: &'a [f64],
    /// The row at z - 1.
    pub below: &'a [f64],
    /// The row at z + 1.
    pub above: &'a [f64],
}

impl Stencil<'_> {
    /// Writes the next iterate of the row to `new`: each cell becomes the mean
    /// of its neighbours.
    ///
    /// # Panics
    ///
    /// If a row of neighbours is too short for `new`.
    #[inline(always)]
    pub(super) fn relax(&self, new: &mut [f64]) {
        // Slices of one length leave no bounds checks in the loop.
        let n = new.len();
        let (west, east) = (&self.centre[..n], &self.centre[2..n + 2]);
        let (south, north) = (&self.south[..n], &self.north[..n]);
        let (below, above) = (&self.below[..n], &self.above[..n]);
        for i in 0..n {
            let in_plane = (west[i] + east[i]) + (south[i] + north[i]);
            new[i] = (in_plane + (below[i] + above[i])) * (1.0 / 6.0);
        }
    }
}

const LANES: usize = 8;

/// The changes of cells in an iteration.
///
/// The largest change does not depend on the order of the cells; the sum of squares does in its
/// last bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    largest: [f64; LANES],
    squares: [f64; LANES],
}

impl Change {
    /// Adds the cells of a row.
    ///
    /// # Panics
    ///
    /// If the rows differ in length.
    #[inline]
    pub(super) fn add_row(&mut self, old: &[f64], new: &[f64]) {
        assert_eq!(old.len(), new.len());
        let (old, new) = (old.chunks_exact(LANES), new.chunks_exact(LANES));
        let (old_rest, new_rest) = (old.remainder(), new.remainder());
        for (old, new) in old.zip(new) {
            self.add_lanes(old, new);
        }
        self.add_lanes(old_rest, new_rest);
    }

    /// The largest change of a cell.
    pub(super) fn largest(&self) -> f64 {
        self.largest.iter().copied().fold(0.0, f64::max)
    }

    /// The sum of the squares of all changes.
    pub(super) fn squares(&self) -> f64 {
        self.squares.iter().sum()
    }

    #[inline]
    fn add_lanes(&mut self, old: &[f64], new: &[f64]) {
        let lanes = self.largest.iter_mut().zip(&mut self.squares);
        for ((largest, squares), (old, new)) in lanes.zip(old.iter().zip(new)) {
            let change = (new - old).abs();
            *largest = if change > *largest { change } else { *largest };
            *squares += change * change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_rows_of_any_length_become_the_mean_of_their_neighbours() {
        for n in 1..20 {
            let row =
                |from: f64| -> Vec<f64> { (0..n + 2).map(|i| from + (i * i) as f64).collect() };
            let (centre, south, north) = (row(0.5), row(-7.0), row(100.0));
            let (below, above) = (row(1e3), row(-3e4));
            let stencil = Stencil {
                centre: &centre,
                south: &south,
                north: &north,
                below: &below,
                above: &above,
            };
            let mut new = vec![0.0; n];
            stencil.relax(&mut new);
            for i in 0..n {
                let plane = (centre[i] + centre[i + 2]) + (south[i] + north[i]);
                assert_eq!(new[i], (plane + (below[i] + above[i])) * (1.0 / 6.0));
            }
        }
    }

    #[test]
    fn changes_of_rows_of_any_length_are_all_seen() {
        for length in 1..40 {
            for place in 0..length {
                let old = vec![1.0; length];
                let mut new = old.clone();
                new[place] = -2.0;
                let mut change = Change::default();
                change.add_row(&old, &new);
                assert_eq!(change.largest(), 3.0);
                assert_eq!(change.squares(), 9.0);
            }
        }
    }
}
