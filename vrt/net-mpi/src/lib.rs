//! MPI under a job: the processes that a launcher has started, and the transport between them.
//!
//! [`Processes`] is what they tell each other before there are ranks; [`Processes::endpoint`] is a PE's
//! end of the transport ([`vrt_core::net::remote::Remote`]). This crate alone calls MPI, through symbols
//! bound to the MPI library when the program was linked, and exports no symbol of MPI's.
//!
//! MPI is initialised as for a process with one thread, though ranks may start threads of their own:
//! only the PE's thread calls MPI, and with more, Open MPI takes locks for each message (0.14 us).

mod endpoint;
mod processes;

pub use processes::{Processes, abort_unless_well};
