//! The reference for the parallel solver, written for readability.
//!
//! It shares nothing with the parallel solver except the problem and the checksum: no blocks, no
//! ghost cells, no kernel.

use super::{Settings, Solution, cell_checksum};

/// Solves a problem on one grid.
pub fn solve_sequentially(settings: &Settings) -> Solution {
    let problem = settings.problem;
    let nodes = problem.size + 2;
    let at = |x: usize, y: usize, z: usize| (z * nodes + y) * nodes + x;
    let mut old = Vec::with_capacity(nodes.pow(3));
    for z in 0..nodes {
        for y in 0..nodes {
            old.extend((0..nodes).map(|x| problem.first_iterate([x, y, z])));
        }
    }
    let mut new = old.clone();
    let inside = 1..=problem.size;

    let mut residuals = Vec::new();
    let mut converged = false;
    let mut iterations = 0;
    let mut squares = 0.0;
    while iterations < settings.max_iterations && !converged {
        iterations += 1;
        for z in inside.clone() {
            for y in inside.clone() {
                for x in inside.clone() {
                    let plane = (old[at(x - 1, y, z)] + old[at(x + 1, y, z)])
                        + (old[at(x, y - 1, z)] + old[at(x, y + 1, z)]);
                    let column = old[at(x, y, z - 1)] + old[at(x, y, z + 1)];
                    new[at(x, y, z)] = (plane + column) * (1.0 / 6.0);
                }
            }
        }
        if settings.is_check(iterations) {
            let changes = || old.iter().zip(&new).map(|(old, new)| new - old);
            let residual = changes().map(f64::abs).fold(0.0, f64::max);
            squares = changes().map(|change| change * change).sum();
            residuals.push(residual);
            converged = residual < settings.tolerance;
        }
        std::mem::swap(&mut old, &mut new);
    }

    let mut error: f64 = 0.0;
    let mut checksum: u64 = 0;
    let mut number = 0;
    for z in inside.clone() {
        for y in inside.clone() {
            for x in inside.clone() {
                let value = old[at(x, y, z)];
                error = error.max((value - problem.exact([x, y, z])).abs());
                checksum = checksum.wrapping_add(cell_checksum(number, value));
                number += 1;
            }
        }
    }
    Solution {
        residuals,
        l2: (squares / problem.cells() as f64).sqrt(),
        cells: problem.cells(),
        iterations,
        converged,
        error,
        checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jacobi::{Cut, Problem};

    #[test]
    fn it_converges_to_the_exact_solution() {
        let solution = solve_sequentially(&Settings {
            problem: Problem { size: 12 },
            cut: Cut::Blocks,
            max_iterations: 5_000,
            tolerance: 1e-14,
            check_every: 7,
            migrate_every: 0,
        });
        assert!(solution.converged);
        assert_eq!(solution.iterations % 7, 0);
        assert_eq!(solution.residuals.len(), solution.iterations / 7);
        assert!(solution.error < 1e-12, "error {}", solution.error);
        assert!(solution.l2 <= solution.residual());
    }

    #[test]
    fn the_last_iteration_is_checked_though_it_is_no_multiple() {
        let solution = solve_sequentially(&Settings {
            problem: Problem { size: 6 },
            cut: Cut::Blocks,
            max_iterations: 25,
            tolerance: 0.0,
            check_every: 10,
            migrate_every: 0,
        });
        assert_eq!(solution.iterations, 25);
        assert_eq!(solution.residuals.len(), 3);
        assert!(!solution.converged);
        assert!(solution.residuals.is_sorted_by(|a, b| a > b));
    }
}
