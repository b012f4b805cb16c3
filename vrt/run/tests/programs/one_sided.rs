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
        #[ignore = "ranks of a communicator that share memory may leave the node"] between_nodes,
        on_one_pe,
    }
}
