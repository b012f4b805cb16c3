//! Globals of C programs.

use crate::places::{BETWEEN_NODES, MOVING};
use crate::program::Program;

const GLOBALS: Program = Program::new("globals.c");

in_places! { GLOBALS, 8 }

/// Each of them has 64 MiB of zeros, of which it touches only a little.
#[test]
fn of_many_ranks() {
    let few_rounds = Program { arguments: "20", ..GLOBALS };
    for place in [MOVING, BETWEEN_NODES] {
        let _ = place.run(&few_rounds, 200);
    }
}
