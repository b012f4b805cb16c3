//! Wrong use by a program, as a value, with its place.
//!
//! The engine refuses wrong use with an [`Error`]; each language binding decides how to report it: the Rust API panics
//! with the rank, the call and its line, a C binding returns the number of the error's [`Class`]. Faults of the engine
//! itself or of the system are not `Error`s: they end the job.

use std::fmt;
use std::panic::Location;

use crate::layout::Signature;
use crate::{Rank, Tag};
use vrt_slot::report::count;

/// The call in which an operation was started, and its place if known: for messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    /// The call, or empty.
    pub call: &'static str,
    /// The line of the program that contains the call. Bindings whose language does not provide it
    /// have none.
    pub location: Option<&'static Location<'static>>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.call)?;
        match self.location {
            Some(location) => write!(f, " at {location}"),
            None => Ok(()),
        }
    }
}

/// Wrong use of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The rank does not exist.
    #[error("{what} {rank} is out of range: {}", Allowed(*size))]
    RankOutOfRange {
        /// What it is to the caller: a rank, a neighbour.
        what: &'static str,
        /// The given rank.
        rank: Rank,
        /// Number of ranks.
        size: usize,
    },
    /// A message is longer than the buffer of its receive.
    #[error(
        "the message from rank {source_rank} with tag {tag} has {}, the buffer only {capacity}",
        count(*bytes, "byte")
    )]
    Truncated {
        /// The sender.
        source_rank: Rank,
        /// Its tag.
        tag: Tag,
        /// Its length.
        bytes: u64,
        /// The buffer's length in bytes.
        capacity: u64,
    },
    /// The message's type differs from that of its receive.
    #[error(
        "the message from rank {source_rank} with tag {tag}, {}, was sent as {sent}, but is received as \
         {received}",
        count(*bytes, "byte")
    )]
    MessageType {
        /// The sender.
        source_rank: Rank,
        /// Its tag.
        tag: Tag,
        /// Its length.
        bytes: u64,
        /// The element type declared by the sender.
        sent: Signature,
        /// The element type of the receive.
        received: Signature,
    },
    /// The buffers of one call have different types.
    #[error("the send buffer is of type {sent}, the receive buffer of type {received}")]
    BufferTypes {
        /// The element type of the send buffer.
        sent: Signature,
        /// The element type of the receive buffer.
        received: Signature,
    },
    /// A rank contributes to a collective operation with another type than expected.
    #[error("rank {from} contributes {} of {sent}, but {expected} is expected", count(*bytes, "byte"))]
    ContributionType {
        /// The rank.
        from: usize,
        /// The length of its contribution.
        bytes: u64,
        /// Its element type.
        sent: Signature,
        /// The expected element type.
        expected: Signature,
    },
    /// A rank contributes to a collective operation with another length than expected.
    #[error("rank {from} contributed {}, rank {rank} expected {expected}", count(*bytes, "byte"))]
    ContributionLength {
        /// The rank.
        from: usize,
        /// The length of its contribution.
        bytes: u64,
        /// The rank that expects another length.
        rank: usize,
        /// The expected length in bytes.
        expected: usize,
    },
    /// Ranks of a communicator call different collective operations.
    #[error(
        "this rank contributes {} of {own}; another rank calls another operation, or with another {}",
        count(*own_bytes, "byte"),
        difference((*own_bytes as u64, *own), (*bytes, *theirs))
    )]
    Disagreement {
        /// The length of this rank's contribution.
        own_bytes: usize,
        /// Its element type.
        own: Signature,
        /// The length of the other rank's contribution.
        bytes: u64,
        /// Its element type.
        theirs: Signature,
    },
    /// A predefined operation was used on elements that are not a built-in type.
    #[error("{op} is defined for built-in types only; a struct needs a user operation")]
    OpOnStruct {
        /// The operation.
        op: String,
    },
    /// A predefined operation is not defined for a type.
    #[error("{op} is not defined for {scalar} (MPI-4.1 section 6.9.2)")]
    OpOnScalar {
        /// The operation.
        op: String,
        /// The type.
        scalar: String,
    },
    /// A user-defined operation failed.
    #[error("the user operation panicked on {}: {why}", count(*elements, "element"))]
    UserOperation {
        /// Number of elements that it was given.
        elements: usize,
        /// Its error.
        why: String,
    },
    /// A group contains a rank that is not in the communicator.
    #[error("the group has rank {rank} of the job, which is not in the communicator")]
    NotInCommunicator {
        /// That rank, as a rank of the job.
        rank: u32,
    },
    /// All numbers of communicators have been used.
    #[error("no more communicators: the numbers of this node's, up to {last}, have been given out")]
    NoMoreCommunicators {
        /// The last one.
        last: u32,
    },
    /// A rank uses a request of another rank.
    #[error("this is what rank {owner} has begun, its {begun}: only that rank can go on with it")]
    ForeignRequest {
        /// The owner of the request, as a rank of the job.
        owner: u32,
        /// The call with which the owner started it.
        begun: String,
    },
    /// A window does not contain the given place.
    #[error(
        "rank {rank} has no such place in a window: {} of {} from byte {offset} on",
        vrt_slot::report::count(*count, "element"),
        vrt_slot::report::count(*each, "byte")
    )]
    WindowRange {
        /// The owner of that part of the window, as a rank of the job.
        rank: u32,
        /// Number of elements.
        count: usize,
        /// Bytes per element.
        each: usize,
        /// Their offset.
        offset: usize,
    },
}

/// The numbers that ranks may have.
struct Allowed(usize);

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("there are no ranks"),
            size => write!(f, "0 to {} are allowed", size - 1),
        }
    }
}

/// The error classes of MPI that the engine uses (MPI-4.1 section 9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// `MPI_ERR_COUNT`
    Count,
    /// `MPI_ERR_TYPE`
    Type,
    /// `MPI_ERR_RANK`
    Rank,
    /// `MPI_ERR_GROUP`
    Group,
    /// `MPI_ERR_OP`
    Op,
    /// `MPI_ERR_TRUNCATE`
    Truncate,
    /// `MPI_ERR_REQUEST`
    Request,
    /// `MPI_ERR_RMA_RANGE`
    RmaRange,
    /// `MPI_ERR_OTHER`
    Other,
}

impl Error {
    /// The class of the error in MPI.
    pub fn class(&self) -> Class {
        match self {
            Error::RankOutOfRange { .. } => Class::Rank,
            Error::Truncated { .. } => Class::Truncate,
            Error::MessageType { .. }
            | Error::BufferTypes { .. }
            | Error::ContributionType { .. } => Class::Type,
            Error::ContributionLength { .. } => Class::Count,
            Error::OpOnStruct { .. } | Error::OpOnScalar { .. } => Class::Op,
            Error::NotInCommunicator { .. } => Class::Group,
            Error::ForeignRequest { .. } => Class::Request,
            Error::WindowRange { .. } => Class::RmaRange,
            Error::Disagreement { .. }
            | Error::UserOperation { .. }
            | Error::NoMoreCommunicators { .. } => Class::Other,
        }
    }
}

/// How what another rank calls may differ, by what both contribute: bytes and type.
fn difference(own: (u64, Signature), theirs: (u64, Signature)) -> String {
    match theirs {
        _ if own == theirs => "root or reduction: it contributes the same".to_owned(),
        (bytes, signature) => {
            let bytes = count(bytes, "byte");
            format!("root, operation, type or count: it contributes {bytes} of {signature}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_said() {
        let error = |size| Error::RankOutOfRange { what: "rank", rank: 4, size };
        assert_eq!(error(4).to_string(), "rank 4 is out of range: 0 to 3 are allowed");
        assert_eq!(error(0).to_string(), "rank 4 is out of range: there are no ranks");
        assert_eq!(error(4).class(), Class::Rank);
    }

    #[test]
    fn a_site_may_have_no_line() {
        let site = Site { call: "MPI_Send", location: None };
        assert_eq!(site.to_string(), "MPI_Send");
    }
}
