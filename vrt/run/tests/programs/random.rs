//! Random datatypes, and random access to the memory of other ranks, compared with explicit lists of their elements.
//! `scripts/test --all` runs many more of them.

use crate::program::Program;

mod types {
    use super::Program;

    const TYPES: Program = Program { arguments: "1 500", ..Program::new("random_types.c") };

    in_places! { TYPES, 5, |_| (); still, moving, between_nodes }
}

mod access {
    use super::Program;

    const ACCESS: Program = Program { arguments: "1 25", ..Program::new("random_access.c") };

    in_places! { ACCESS, 5, |_| (); still, moving, between_nodes }
}
