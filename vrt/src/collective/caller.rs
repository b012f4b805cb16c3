//! What descriptions of operations know of a call beside its bytes.

use crate::Rank;
use crate::collective::buffers::NO_ELEMENTS;
use crate::datatype::{Datatype, DatatypeRef, UncommittedDatatype};
use vrt_core::comm::CommunicatorHandle;

/// What is known of a call beside its bytes.
#[derive(Clone, Copy)]
pub(super) struct Caller<'c> {
    pub(super) comm: &'c CommunicatorHandle,
    /// The datatype of what is sent.
    pub(super) elements: DatatypeRef<'c>,
}

impl<'c> Caller<'c> {
    #[inline(always)]
    pub(super) fn new(comm: &'c CommunicatorHandle, elements: &'c Option<impl Datatype>) -> Self {
        let elements = elements.as_ref().map_or(NO_ELEMENTS, UncommittedDatatype::datatype_ref);
        Caller { comm, elements }
    }

    /// Whether it is the root; without one, everybody is.
    #[inline(always)]
    pub(super) fn is(&self, root: Option<Rank>) -> bool {
        root.is_none_or(|root| root == self.comm.rank)
    }
}
