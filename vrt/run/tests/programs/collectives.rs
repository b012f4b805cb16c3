//! Collective operations, in all their forms.

use crate::program::Program;

const COLLECTIVES: Program = Program::new("collectives.c");

in_places! { COLLECTIVES, 7 }
