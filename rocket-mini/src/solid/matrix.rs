//! A sparse matrix of blocks that couple nodes, row by row.

use serde::{Deserialize, Serialize};

use super::element::{Coupling, Vector};

/// The matrix. Rows are stored contiguously, so that a product passes over memory once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Matrix {
    /// Where each row begins, and where the last one ends.
    starts: Vec<usize>,
    columns: Vec<u32>,
    couplings: Vec<Coupling>,
}

impl Matrix {
    /// The matrix with these rows, each of which lists the nodes coupled with its node, and the
    /// couplings.
    pub(super) fn new(rows: Vec<Vec<(usize, Coupling)>>) -> Self {
        let count = rows.iter().map(Vec::len).sum();
        let mut matrix = Self {
            starts: Vec::with_capacity(rows.len() + 1),
            columns: Vec::with_capacity(count),
            couplings: Vec::with_capacity(count),
        };
        for mut row in rows {
            row.sort_unstable_by_key(|(column, _)| *column);
            matrix.starts.push(matrix.columns.len());
            matrix.columns.extend(row.iter().map(|(column, _)| *column as u32));
            matrix.couplings.extend(row.into_iter().map(|(_, coupling)| coupling));
        }
        matrix.starts.push(matrix.columns.len());
        matrix
    }

    /// The couplings of a node.
    pub(super) fn row(&self, node: usize) -> impl Iterator<Item = (usize, &Coupling)> {
        let row = self.starts[node]..self.starts[node + 1];
        let columns = self.columns[row.clone()].iter().map(|column| *column as usize);
        columns.zip(&self.couplings[row])
    }

    /// The product with a vector.
    pub(super) fn multiply(&self, vector: &[Vector], product: &mut [Vector]) {
        for (node, product) in product.iter_mut().enumerate() {
            let mut sum = [0.0; 3];
            for (column, coupling) in self.row(node) {
                let v = vector[column];
                for (sum, k) in sum.iter_mut().zip(coupling) {
                    *sum += k[0] * v[0] + k[1] * v[1] + k[2] * v[2];
                }
            }
            *product = sum;
        }
    }
}
