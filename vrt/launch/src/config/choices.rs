//! Values of options that no other module defines.

use vrt_core::choices;

choices! {
    /// What core files of crashed PEs contain in addition to the usual contents.
    pub enum Core {
        /// The stack and heap of the rank that crashed
        Rank = "rank",
    }
}

choices! {
    /// What carries messages between PEs.
    pub enum Net {
        /// Shared memory; this process starts the PEs
        Local = "local",
        /// MPI, and shared memory inside a machine; a launcher has started the PEs
        Mpi = "mpi",
    }
}
