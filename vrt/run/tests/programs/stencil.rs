//! A simulation whose result must be the same to the last digit.

use crate::places::{BETWEEN_NODES, MOVING, ON_ONE_PE, STILL};
use crate::program::Program;

const STENCIL: Program = Program::new("stencil.c");
const RANKS: usize = 12;

#[test]
fn sums_are_equal_to_the_last_digit() {
    let sum = |job: &vrt_tests::job::Job| {
        let line = job.out.lines().find(|line| line.starts_with("sum "));
        line.unwrap_or_else(|| panic!("no sum: {job}")).to_owned()
    };
    let still = sum(&STILL.run(&STENCIL, RANKS));
    for place in [ON_ONE_PE, MOVING, BETWEEN_NODES] {
        assert_eq!(sum(&place.run(&STENCIL, RANKS)), still);
    }
}
