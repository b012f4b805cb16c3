//! The columns of a row-major matrix, packed one after another: by the datatype of a column, or by
//! a hand-written loop.

use std::hint::black_box;

use mpi::datatype::{UserDatatype, View};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::{Effort, Outcome, expect_value, outcome};
use crate::measure::repeat;

/// Seconds of packing one column of a square matrix of doubles.
///
/// # Errors
///
/// If a wrong value was packed.
pub fn pack(world: &SimpleCommunicator, size: usize, by_hand: bool, effort: Effort) -> Outcome {
    let matrix: Vec<f64> = (0..size * size).map(|i| i as f64).collect();
    let column_type =
        UserDatatype::vector(size as i32, 1, size as i32, &f64::equivalent_datatype());
    let mut packed = vec![0_u8; 8 * size];
    let mut column = 0;
    let seconds = repeat(effort.repetitions, f64::from(effort.operations), || {
        for _ in 0..effort.operations {
            column = (column + 1) % size;
            let from = black_box(&matrix[column..]);
            if by_hand {
                for (to, row) in packed.chunks_exact_mut(8).zip(from.chunks(size)) {
                    to.copy_from_slice(&row[0].to_ne_bytes());
                }
            } else {
                // SAFETY: the column has `size` numbers, the last of which lies in the last row.
                let view = unsafe { View::with_count_and_datatype(from, 1, &column_type) };
                world.pack_into(&view, &mut packed, 0);
            }
            black_box(&mut packed);
        }
    });
    let value = |row: usize| (row * size + column) as f64;
    let is_right =
        packed.chunks_exact(8).enumerate().all(|(row, bytes)| bytes == value(row).to_ne_bytes());
    expect_value(is_right, "pack", effort.repetitions)?;
    outcome(world, "pack", &seconds)
}
