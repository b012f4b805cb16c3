//! What can be wrong with the arguments of a collective operation.

use crate::Rank;
use crate::collective::caller::Caller;
use crate::datatype::wire::{Incoming, Outgoing};
use crate::error::ErrorKind;
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::bytes;

type Checked = Result<(), ErrorKind>;

/// Checks that a buffer has the length that the other one asks for.
#[inline]
pub(super) fn expect_bytes(what: &'static str, bytes: usize, expected: usize) -> Checked {
    if bytes == expected { Ok(()) } else { Err(ErrorKind::BufferLength { what, bytes, expected }) }
}

/// Checks that a call for (or not for) the root is made by the right rank.
#[inline]
pub(super) fn expect_root(comm: &CommunicatorHandle, root: Rank, for_root: bool) -> Checked {
    let rank = comm.rank;
    if (rank == root) == for_root { Ok(()) } else { Err(ErrorKind::Root { rank, root, for_root }) }
}

impl Caller<'_> {
    /// Checks that what all contribute fits a buffer.
    #[inline]
    pub(super) fn expect_gathered(&self, from: usize, to: usize) -> Checked {
        expect_bytes("receive buffer", to, from.saturating_mul(self.comm.size as usize))
    }

    /// Checks that buffers have an equal part for each rank.
    #[inline]
    pub(super) fn expect_equal_parts(&self, from: usize, to: usize) -> Checked {
        expect_bytes("receive buffer", to, from)?;
        let size = self.comm.size as usize;
        expect_bytes("send buffer", from, from / size * size)
    }

    /// Checks that there is a part for each rank.
    pub(super) fn expect_parts(&self, what: &'static str, parts: usize) -> Checked {
        let ranks = self.comm.size;
        if parts == ranks as usize { Ok(()) } else { Err(ErrorKind::Parts { what, parts, ranks }) }
    }

    /// Checks that the result of a reduction has room in the receive buffer, and is of its type. The
    /// buffer may be longer: the contributions say how long the result is.
    #[inline]
    pub(super) fn expect_result(&self, from: &Outgoing, to: &Incoming) -> Checked {
        if to.len < from.len {
            expect_bytes("receive buffer", to.len, from.len)?;
        }
        expect_result_type(from, to, from.len)
    }
}

/// Checks that `bytes` bytes of what is sent become what the receive buffer has.
#[inline]
pub(super) fn expect_type(from: &Outgoing, to: &Incoming, bytes: usize) -> Checked {
    bytes::expect_type(from.signature, to.signature, bytes)
}

/// The same for the result of a reduction: other integers are converted.
#[inline]
pub(super) fn expect_result_type(from: &Outgoing, to: &Incoming, bytes: usize) -> Checked {
    if from.signature.is_integer() && to.signature.is_integer() {
        return Ok(());
    }
    expect_type(from, to, bytes)
}
