//! What `scripts/bench` has to build before a tool runs, besides `vrt-bench` and `vrtrun`.

/// The C programs for Open MPI.
pub const OPEN_MPI: &str = "open-mpi";
/// The C program that copies without a runtime.
pub const COPY: &str = "copy";
/// `vrt-bench` with the MPI transport.
pub const ON_MPI: &str = "on-mpi";
/// The C programs for `vrtrun`.
pub const IMAGES: &str = "images";
/// The C programs for the builds of Adaptive MPI that CHARM names.
pub const ADAPTIVE_MPI: &str = "adaptive-mpi";
/// `vrt-bench` and `uts` without places that check for an observer.
pub const UNOBSERVED: &str = "unobserved";
/// The instruction counter.
pub const VALGRIND: &str = "valgrind";
