//! What is wrong with the arguments of a collective operation is said before it begins.

use crate::Rank;
use crate::collective::call::Caller;
use crate::datatype::wire::{Incoming, Outgoing};
use crate::operation::{OrRefuse, Site};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::bytes;
use vrt_slot::report::count;

/// Checks that a buffer has the length that the other one asks for.
#[inline]
pub(super) fn expect_bytes(what: &str, got: usize, expected: usize, site: &Site) {
    if got != expected {
        refuse_bytes(what, got, expected, site);
    }
}

#[cold]
fn refuse_bytes(what: &str, got: usize, expected: usize, site: &Site) -> ! {
    let rank = vrt_core::pe::current_rank().unwrap_or_default();
    let got = count(got, "byte");
    panic!("rank {rank} in {site}: the {what} has {got} instead of {expected}");
}

/// Checks that a call for (or not for) the root is made by the right rank.
#[inline]
pub(super) fn expect_root(comm: &CommunicatorHandle, at: Rank, root: bool, site: &Site) {
    if (comm.rank == at) != root {
        refuse_root(comm.rank, at, root, site);
    }
}

#[cold]
fn refuse_root(rank: Rank, at: Rank, root: bool, site: &Site) -> ! {
    let only = if root { "for the root only" } else { "for all ranks but the root" };
    panic!("{site} is {only}: rank {rank} called it, the root is {at}");
}

impl Caller<'_> {
    /// Checks that a buffer has the length that the other one asks for.
    #[inline]
    pub(super) fn expect_bytes(&self, what: &str, got: usize, expected: usize) {
        expect_bytes(what, got, expected, &self.site);
    }

    /// Checks that what all contribute fits a buffer.
    #[inline]
    pub(super) fn expect_gathered(&self, from: usize, to: usize) {
        self.expect_bytes("receive buffer", to, from.saturating_mul(self.comm.size as usize));
    }

    /// Checks that buffers have an equal part for each rank.
    #[inline]
    pub(super) fn expect_equal_parts(&self, from: usize, to: usize) {
        self.expect_bytes("receive buffer", to, from);
        let size = self.comm.size as usize;
        self.expect_bytes("send buffer", from, from / size * size);
    }

    /// Checks that there is a part for each rank.
    pub(super) fn expect_parts(&self, what: &str, parts: usize) {
        let (comm, site) = (self.comm, self.site);
        if parts != comm.size as usize {
            panic!(
                "rank {} in {site}: the {what} has {}, the communicator {}",
                comm.rank,
                count(parts, "part"),
                count(comm.size, "rank")
            );
        }
    }

    /// Checks that `bytes` bytes of what is sent become what the receive buffer has.
    #[inline]
    pub(super) fn expect_type(&self, from: &Outgoing, to: &Incoming, bytes: usize) {
        bytes::expect_type(from.signature, to.signature, bytes).or_refuse(self.site);
    }

    /// The same for the result of a reduction: other integers are converted.
    #[inline]
    pub(super) fn expect_result_type(&self, from: &Outgoing, to: &Incoming, bytes: usize) {
        if !(from.signature.is_integer() && to.signature.is_integer()) {
            self.expect_type(from, to, bytes);
        }
    }

    /// Checks that the result of a reduction has room in the receive buffer, and is of its type. The
    /// buffer may be longer: the contributions say how long the result is.
    #[inline]
    pub(super) fn expect_result(&self, from: &Outgoing, to: &Incoming) {
        if to.len < from.len {
            self.expect_bytes("receive buffer", to.len, from.len);
        }
        self.expect_result_type(from, to, from.len);
    }
}
