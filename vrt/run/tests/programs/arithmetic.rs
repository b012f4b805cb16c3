//! Sums and products of numbers that programs pass.

use crate::program::Program;

const ARITHMETIC: Program = Program::new("arithmetic.c");

in_places! { ARITHMETIC, 6, |_| (); still, between_nodes }
