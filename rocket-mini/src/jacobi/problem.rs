//! The boundary values and the exact solution.

/// Laplace's equation on a cube with `size` cells per side, with the boundary values of a known
/// solution: [`Problem::exact`].
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
}
