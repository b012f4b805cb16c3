//! The boundary values, the exact solution, and which of its cells are costly.

use std::str::FromStr;

/// Laplace's equation on a cube of `size` cells a side, with the boundary
/// values of a solution that is known: [`Problem::exact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Problem {
    /// Cells along each axis, without the boundary.
    pub size: usize,
}

impl Problem {
    /// The cells of the domain.
    pub fn cells(&self) -> usize {
        self.size.pow(3)
    }

    /// The solution at a node of the grid: a polynomial of degree two, which
    /// the seven-point stencil reproduces without a discretisation error.
    ///
    /// Nodes are numbered from 0 to `size + 1` along each axis, with the
    /// boundary at both ends.
    pub fn exact(&self, node: [usize; 3]) -> f64 {
        let spacing = 1.0 / (self.size + 1) as f64;
        let [x, y, z] = node.map(|n| n as f64 * spacing);
        x * x + y * y - 2.0 * z * z
    }

    /// The value at a node before the first iteration: the boundary value, or
    /// zero inside.
    pub(super) fn first_iterate(&self, node: [usize; 3]) -> f64 {
        if node.iter().all(|n| (1..=self.size).contains(n)) { 0.0 } else { self.exact(node) }
    }
}

/// The part of the domain whose cells cost more: the cells with the smallest
/// z are computed several times over, always with the same result.
///
/// Written `FRACTION:FACTOR`, as in `0.25:10`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costly {
    /// The share of the cells, from 0 to 1.
    pub fraction: f64,
    /// How often each of them is computed, at least once.
    pub factor: u32,
}

impl Costly {
    /// How often a cell is computed whose number along z is `z` of `size`.
    pub(super) fn times(&self, z: usize, size: usize) -> u32 {
        if (z as f64) < self.fraction * size as f64 { self.factor } else { 1 }
    }
}

impl FromStr for Costly {
    type Err = ParseCostlyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (fraction, factor) = text.split_once(':').ok_or(ParseCostlyError::NoColon)?;
        let fraction = (fraction.parse())
            .ok()
            .filter(|fraction| (0.0..=1.0).contains(fraction))
            .ok_or(ParseCostlyError::Fraction)?;
        let factor = (factor.parse())
            .ok()
            .filter(|factor| (1..=Self::MAX_FACTOR).contains(factor))
            .ok_or(ParseCostlyError::Factor)?;
        Ok(Self { fraction, factor })
    }
}

impl Costly {
    /// The largest factor that is accepted.
    pub const MAX_FACTOR: u32 = 1_000_000;
}

/// Why a text is not a [`Costly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseCostlyError {
    /// The two numbers are not there.
    #[error("expected FRACTION:FACTOR, as in 0.25:10")]
    NoColon,
    /// The fraction is not one.
    #[error("FRACTION must be a number from 0 to 1")]
    Fraction,
    /// The factor is not one.
    #[error("FACTOR must be a whole number from 1 to {}", Costly::MAX_FACTOR)]
    Factor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_solution_is_a_fixed_point_of_the_stencil() {
        let problem = Problem { size: 11 };
        let [x, y, z] = [3, 7, 11];
        let sum = problem.exact([x - 1, y, z])
            + problem.exact([x + 1, y, z])
            + problem.exact([x, y - 1, z])
            + problem.exact([x, y + 1, z])
            + problem.exact([x, y, z - 1])
            + problem.exact([x, y, z + 1]);
        assert!((sum / 6.0 - problem.exact([x, y, z])).abs() < 1e-14);
    }

    #[test]
    fn the_costly_share_has_the_size_asked_for() {
        for (fraction, planes) in [(0.0, 0), (0.25, 25), (0.5, 50), (1.0, 100)] {
            let costly = Costly { fraction, factor: 9 };
            let found = (0..100).filter(|z| costly.times(*z, 100) == 9).count();
            assert_eq!(found, planes);
        }
    }

    #[test]
    fn costly_is_parsed_and_errors_say_what_is_allowed() {
        let costly = Costly { fraction: 0.25, factor: 10 };
        assert_eq!("0.25:10".parse(), Ok(costly));
        for (text, error) in [
            ("0.25", ParseCostlyError::NoColon),
            ("1.5:10", ParseCostlyError::Fraction),
            ("NaN:10", ParseCostlyError::Fraction),
            ("0.5:0", ParseCostlyError::Factor),
            ("0.5:2.5", ParseCostlyError::Factor),
        ] {
            assert_eq!(text.parse::<Costly>(), Err(error), "{text}");
        }
    }
}
