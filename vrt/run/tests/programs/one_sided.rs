//! Memory of other ranks.

use crate::program::Program;

const ONE_SIDED: Program = Program::new("one_sided.c");

in_places! { ONE_SIDED, 6 }

/// Windows that the ranks of a node share.
mod shared {
    use super::*;

    const SHARED: Program = Program { arguments: "shared", ..ONE_SIDED };

    in_places! {
        SHARED, 6, |_| ();
        still,
        moving,
        between_nodes,
        on_one_pe,
    }
}
