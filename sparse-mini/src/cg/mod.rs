//! Conjugate gradients on a sparse matrix in blocks of rows (the paper's section 5.3).
//!
//! In each product with the matrix every rank sends the elements of the vector that others need, by
//! a sparse exchange: ranks need not know which ranks will send to them.

mod matrix;

pub use matrix::{Matrix, MatrixError, Stored};

use mpi::Rank;
use mpi::collective::SystemOperation;
use mpi::exchange::SparseExchange;
use mpi::traits::*;
use serde::{Deserialize, Serialize};

/// A rank's rows of a matrix, and the elements of its part of the vector that others need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    begins: Vec<usize>,
    /// Columns: the rank's own ones, followed by those of others in the order of their numbers.
    columns: Vec<u32>,
    values: Vec<f64>,
    remote: usize,
    /// Which ranks need which elements.
    serves: Vec<(Rank, Vec<u32>)>,
}

impl Rows {
    /// A rank's rows. Collective.
    pub fn new(comm: &impl Communicator, matrix: &Matrix) -> Rows {
        let me = comm.rank() as usize;
        let firsts = matrix.balanced(comm.size() as usize);
        let own = firsts[me]..firsts[me + 1];
        let mut needed = Vec::new();
        for row in own.clone() {
            matrix.row(row, |column, _| {
                if !own.contains(&column) {
                    needed.push(column);
                }
            });
        }
        needed.sort_unstable();
        needed.dedup();
        let (mut begins, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in own.clone() {
            matrix.row(row, |column, value| {
                let place = match needed.binary_search(&column) {
                    Ok(remote) => own.len() + remote,
                    Err(_) => column - own.start,
                };
                columns.push(place as u32);
                values.push(value);
            });
            begins.push(columns.len());
        }
        // Owners hear what is needed of them.
        let owner = |column: usize| firsts.partition_point(|first| *first <= column) - 1;
        let wishes: Vec<(Rank, Vec<u32>)> = needed
            .chunk_by(|a, b| owner(*a) == owner(*b))
            .map(|same| {
                let owner = owner(same[0]);
                let places = same.iter().map(|column| (column - firsts[owner]) as u32);
                (owner as Rank, places.collect())
            })
            .collect();
        let serves = comm.sparse_exchange(&wishes);
        Rows { begins, columns, values, remote: needed.len(), serves }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of ranks to which this one sends.
    pub fn neighbors(&self) -> usize {
        self.serves.len()
    }

    /// The product with a vector, of which this rank has its part. Collective.
    ///
    /// # Panics
    /// If the part's length is not the number of rows.
    pub fn product(&self, comm: &impl Communicator, vector: &[f64]) -> Vec<f64> {
        assert_eq!(vector.len(), self.len(), "one element of the vector for each row");
        let pick = |places: &[u32]| places.iter().map(|at| vector[*at as usize]).collect();
        let messages: Vec<(Rank, Vec<f64>)> =
            self.serves.iter().map(|(rank, places)| (*rank, pick(places))).collect();
        let mut all = Vec::with_capacity(vector.len() + self.remote);
        all.extend_from_slice(vector);
        // Columns of others are in the order of their owners, and so are messages.
        for (_, elements) in comm.sparse_exchange(&messages) {
            all.extend(elements);
        }
        let row = |range: &[usize]| {
            let range = range[0]..range[1];
            let columns = &self.columns[range.clone()];
            columns.iter().zip(&self.values[range]).map(|(c, v)| v * all[*c as usize]).sum()
        };
        self.begins.windows(2).map(row).collect()
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// The residual must become this many times smaller than the right-hand side.
    pub tolerance: f64,
    /// The greatest number of iterations.
    pub iterations: u32,
}

/// A solver between two iterations. It can be encoded, and continued elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solver {
    /// The rank's rows.
    pub rows: Rows,
    right: Vec<f64>,
    /// The solution so far.
    pub solution: Vec<f64>,
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// Square of the residual's norm.
    rho: f64,
    first: f64,
    /// Number of iterations.
    pub iterations: u32,
}

fn dot(comm: &impl Communicator, a: &[f64], b: &[f64]) -> f64 {
    let mine: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let mut all = 0.0;
    comm.all_reduce_into(&mine, &mut all, SystemOperation::sum());
    all
}

impl Solver {
    /// A solver of the system whose solution is all ones. Collective.
    pub fn new(comm: &impl Communicator, matrix: &Matrix) -> Solver {
        let rows = Rows::new(comm, matrix);
        let right = rows.product(comm, &vec![1.0; rows.len()]);
        let rho = dot(comm, &right, &right);
        Solver {
            solution: vec![0.0; rows.len()],
            residual: right.clone(),
            direction: right.clone(),
            right,
            rows,
            rho,
            first: rho,
            iterations: 0,
        }
    }

    /// Whether the solver is done.
    pub fn is_done(&self, until: &Until) -> bool {
        let limit = until.tolerance * until.tolerance * self.first;
        self.rho <= limit || self.iterations >= until.iterations || self.rho == 0.0
    }

    /// One iteration (Hestenes and Stiefel 1952). Collective.
    pub fn iterate(&mut self, comm: &impl Communicator) {
        let product = self.rows.product(comm, &self.direction);
        let alpha = self.rho / dot(comm, &self.direction, &product);
        for (x, p) in self.solution.iter_mut().zip(&self.direction) {
            *x += alpha * p;
        }
        for (r, q) in self.residual.iter_mut().zip(&product) {
            *r -= alpha * q;
        }
        let before = std::mem::replace(&mut self.rho, dot(comm, &self.residual, &self.residual));
        let beta = self.rho / before;
        for (p, r) in self.direction.iter_mut().zip(&self.residual) {
            *p = r + beta * *p;
        }
        self.iterations += 1;
    }

    /// The norm of the true residual over that of the right-hand side, and the largest error of an
    /// element of the solution. Collective.
    pub fn check(&self, comm: &impl Communicator) -> (f64, f64) {
        let product = self.rows.product(comm, &self.solution);
        let residual: Vec<f64> = self.right.iter().zip(&product).map(|(b, q)| b - q).collect();
        let relative = (dot(comm, &residual, &residual) / self.first).sqrt();
        let error = self.solution.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
        let mut largest = 0.0;
        comm.all_reduce_into(&error, &mut largest, SystemOperation::max());
        (relative, largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_solved_on_any_number_of_ranks() {
        let until = Until { tolerance: 1e-10, iterations: 1000 };
        for matrix in [Matrix::Laplace2d(20), Matrix::Laplace3d(8), Matrix::Box3d(6)] {
            for ranks in [1, 2, 7, 64] {
                mpi::run_local(ranks, |world| {
                    let mut solver = Solver::new(world, &matrix);
                    let expected = matrix.neighbors(ranks as usize)[world.rank() as usize];
                    assert_eq!(solver.rows.neighbors(), expected);
                    while !solver.is_done(&until) {
                        solver.iterate(world);
                    }
                    let (residual, error) = solver.check(world);
                    assert!(solver.iterations < 1000);
                    assert!(residual < 1e-9 && error < 1e-8, "{matrix:?}: {residual:e} {error:e}");
                });
            }
        }
    }

    #[test]
    fn products_are_those_of_the_whole_matrix() {
        let matrix = Matrix::Laplace3d(5);
        let vector: Vec<f64> = (0..125).map(|i| f64::from(i * i % 17)).collect();
        let whole: Vec<f64> = (0..125)
            .map(|row| {
                let mut sum = 0.0;
                matrix.row(row, |column, value| sum += value * vector[column]);
                sum
            })
            .collect();
        mpi::run_local(6, |world| {
            let firsts = matrix.balanced(6);
            let me = world.rank() as usize;
            let own = firsts[me]..firsts[me + 1];
            let rows = Rows::new(world, &matrix);
            assert_eq!(rows.product(world, &vector[own.clone()]), whole[own]);
        });
    }
}
