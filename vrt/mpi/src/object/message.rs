//! Messages of matched probes (MPI-4.1 section 3.8.2).

use std::cell::Cell;

use vrt_abi::types::*;

/// A message that was found and taken out of matching.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) number: u32,
    pub(crate) on: MPI_Comm,
    pub(crate) was_received: Cell<bool>,
}
