//! The result of a run, and its comparison with another one.

/// The result of a run: the same for every number of ranks, except for the last bits of `l2`.
///
/// The residual of an iteration is its change of the cells, which is the residual of the linear
/// system divided by its diagonal.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The residual at each check: the largest change of a cell.
    pub residuals: Vec<f64>,
    /// The root mean square of the changes in the last iteration.
    pub l2: f64,
    /// Number of cells in `l2`.
    pub cells: usize,
    /// Number of iterations.
    pub iterations: usize,
    /// Whether the last residual is below the tolerance.
    pub converged: bool,
    /// The greatest difference of a cell from the exact solution.
    pub error: f64,
    /// A checksum of the bits of all cells, see [`cell_checksum`](crate::jacobi::cell_checksum).
    pub checksum: u64,
}

impl Solution {
    /// The residual of the last iteration.
    pub fn residual(&self) -> f64 {
        self.residuals.last().copied().unwrap_or(f64::INFINITY)
    }

    /// How this solution differs from one that must be equal; `None` if it does not. The two `l2`
    /// may differ by the rounding of their sums.
    pub fn difference_from(&self, reference: &Self) -> Option<Difference> {
        let same_bits = |a: &f64, b: &f64| a.to_bits() == b.to_bits();
        let check = (self.residuals.iter())
            .zip(&reference.residuals)
            .position(|(ours, theirs)| !same_bits(ours, theirs));
        if let Some(check) = check {
            Some(Difference::Residual {
                check: check + 1,
                found: self.residuals[check],
                expected: reference.residuals[check],
            })
        } else if self.iterations != reference.iterations {
            Some(Difference::Iterations { found: self.iterations, expected: reference.iterations })
        } else if self.checksum != reference.checksum {
            Some(Difference::Cells { found: self.checksum, expected: reference.checksum })
        } else if !self.has_l2_of(reference) {
            Some(Difference::L2 { found: self.l2, expected: reference.l2 })
        } else {
            None
        }
    }

    /// Whether the two `l2` can be sums of the same terms, in any order.
    ///
    /// A sum of n terms of one sign is correct to a factor of 1 ± (n - 1) u, with u half of the
    /// machine epsilon, whatever its order (Higham, Accuracy and Stability of Numerical Algorithms,
    /// section 4.2). So two such sums differ by at most twice as much and their roots by half of
    /// that; the division and the root add a rounding each. n epsilons are more than all this
    /// together. Random rounding alone would give less, but near the end changes are a few units in
    /// the last place, and equal terms are rounded in the same direction repeatedly.
    fn has_l2_of(&self, reference: &Self) -> bool {
        let roundings = reference.cells as f64 * f64::EPSILON;
        let distance = (self.l2 - reference.l2).abs();
        self.cells == reference.cells && distance <= roundings * reference.l2
    }
}

/// Where a solution differs from the one it must equal.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Difference {
    /// The residual of a check.
    #[error(
        "the residual at check {check} is {found:e}, that of the sequential solver {expected:e}"
    )]
    Residual {
        /// The number of the check, from 1.
        check: usize,
        /// The residual of this solution.
        found: f64,
        /// The residual it must have.
        expected: f64,
    },
    /// The number of iterations.
    #[error("stopped after iteration {found}, the sequential solver after {expected}")]
    Iterations {
        /// The iterations of this solution.
        found: usize,
        /// The iterations it must have.
        expected: usize,
    },
    /// The cells.
    #[error(
        "the checksum of the cells is {found:016x}, that of the sequential solver {expected:016x}"
    )]
    Cells {
        /// The checksum of this solution.
        found: u64,
        /// The checksum it must have.
        expected: u64,
    },
    /// The root mean square of the changes.
    #[error("the L2 residual is {found:e}, that of the sequential solver {expected:e}")]
    L2 {
        /// The norm of this solution.
        found: f64,
        /// The norm it must have.
        expected: f64,
    },
}
