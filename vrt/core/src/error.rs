//! Wrong use by a program, as a value, with its place.
//!
//! The engine refuses wrong use with an [`Error`]; each language binding decides how to report it: the Rust API adds the
//! rank, the call and its line, and panics with that or returns it; the C binding returns the number of the error's
//! [`Class`]. Faults of the engine itself or of the system are not `Error`s: they end the job.

use std::fmt;
use std::panic::Location;

use crate::layout::Signature;
use crate::{Count, Rank, Tag};
use vrt_slot::report::count;

/// The call in which an operation was started, and its place if known: for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[non_exhaustive]
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
    /// A tag that no message can have.
    #[error("tag {tag} is out of range: 0 to {} are allowed", Tag::MAX)]
    TagOutOfRange {
        /// The tag.
        tag: Tag,
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
    /// A message is shorter than the one value that its receive is for.
    #[error(
        "the message from rank {source_rank} with tag {tag} has {}, one value has {value}",
        count(*bytes, "byte")
    )]
    NotOneValue {
        /// Who sent it.
        source_rank: Rank,
        /// Its tag.
        tag: Tag,
        /// Its length.
        bytes: u64,
        /// The length of a value.
        value: usize,
    },
    /// A message does not consist of whole values.
    #[error(
        "the message from rank {source_rank} with tag {tag} has {}, no multiple of a value's {value}",
        count(*bytes, "byte")
    )]
    NotWholeValues {
        /// Who sent it.
        source_rank: Rank,
        /// Its tag.
        tag: Tag,
        /// Its length.
        bytes: u64,
        /// The length of a value.
        value: usize,
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
    /// A buffer of a collective operation does not have the length that the call's other arguments
    /// demand.
    #[error("the {what} has {} instead of {expected}", count(*bytes, "byte"))]
    BufferLength {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The length that it has to have.
        expected: usize,
    },
    /// A buffer has not one part for each rank.
    #[error("the {what} has {}, the communicator {}", count(*parts, "part"), count(*ranks, "rank"))]
    Parts {
        /// Which buffer.
        what: &'static str,
        /// The number of its parts.
        parts: usize,
        /// The number of ranks.
        ranks: Rank,
    },
    /// A buffer has not one part for each neighbour.
    #[error("the {what} has {} for {}", count(*parts, "part"), count(*neighbors, "neighbour"))]
    NeighborParts {
        /// Which buffer.
        what: &'static str,
        /// The number of its parts.
        parts: usize,
        /// The number of neighbours.
        neighbors: usize,
    },
    /// A buffer cannot be divided equally among the neighbours.
    #[error("the {what} has {}, no multiple of {neighbors} neighbours", count(*bytes, "byte"))]
    NotDivisible {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The number of neighbours.
        neighbors: usize,
    },
    /// A count of elements that is negative, or too many bytes.
    #[error("a part of {elements} elements of {each} bytes")]
    PartLength {
        /// The count.
        elements: Count,
        /// The bytes of an element.
        each: usize,
    },
    /// The root calls what is for the other ranks, or another rank what is for the root.
    #[error("{}: rank {rank} called it, the root is {root}", for_whom(*for_root))]
    Root {
        /// Who called it.
        rank: Rank,
        /// The root.
        root: Rank,
        /// The call is for the root.
        for_root: bool,
    },
    /// An operation among neighbours on a communicator without any.
    #[error("the communicator is no grid and no graph")]
    NoNeighbors,
    /// A result of a reduction does not fit the integers that it is to be converted to.
    #[error("the result {value} does not fit an element of the receive buffer")]
    ResultOverflow {
        /// The result, in decimal.
        value: String,
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
    /// An operation between two groups on a communicator of one.
    #[error("the communicator has one group only")]
    OneGroup,
    /// There is no memory for what an operation needs.
    #[error("there are no {bytes} bytes left for this rank")]
    NoMemory {
        /// The bytes it needs.
        bytes: usize,
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
    /// Values that do not lie in a rank's part of a window.
    #[error(
        "{} from {at} on, not inside the window of rank {rank}, which has {len}",
        count(*values, "value")
    )]
    WindowPlace {
        /// Whose part of the window.
        rank: Rank,
        /// Where they begin.
        at: usize,
        /// How many they are.
        values: usize,
        /// The length of the part.
        len: usize,
    },
    /// Ranks make a window of values of different types.
    #[error(
        "the window's values are {own} ({own_signature}, {own_bytes} bytes each) here, but {signature} \
         ({bytes} bytes each) on rank {rank}"
    )]
    WindowTypes {
        /// The type here.
        own: &'static str,
        /// The datatype here.
        own_signature: Signature,
        /// Bytes of a value here.
        own_bytes: i32,
        /// The other rank's datatype.
        signature: Signature,
        /// Bytes of a value there.
        bytes: i32,
        /// The other rank.
        rank: Rank,
    },
    /// What the epoch of a window does not allow.
    #[error("{why}")]
    Epoch {
        /// What is not allowed, and in which epoch.
        why: String,
    },
    /// As many values as there are to be folded do not have room for what was there before.
    #[error("{}, but room for {}", count(*values, "value"), count(*results, "result"))]
    ResultRoom {
        /// The number of values.
        values: usize,
        /// Room for so many.
        results: usize,
    },
    /// Values that are too long to be compared and swapped, or have gaps.
    #[error("{}", incomparable(what, *bytes, *gaps))]
    Incomparable {
        /// Their type.
        what: &'static str,
        /// The bytes of each.
        bytes: usize,
        /// How many of these belong to no field.
        gaps: usize,
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

fn for_whom(root: bool) -> &'static str {
    if root { "for the root only" } else { "for all ranks but the root" }
}

fn incomparable(what: &str, bytes: usize, gaps: usize) -> String {
    match gaps {
        0 => format!("values of {bytes} bytes cannot be compared and swapped"),
        _ => format!("{what} cannot be compared and swapped: {gaps} of its {bytes} bytes are gaps"),
    }
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
    /// `MPI_ERR_COMM`
    Comm,
    /// `MPI_ERR_NO_MEM`
    NoMemory,
    /// `MPI_ERR_COUNT`
    Count,
    /// `MPI_ERR_TYPE`
    Type,
    /// `MPI_ERR_TAG`
    Tag,
    /// `MPI_ERR_RANK`
    Rank,
    /// `MPI_ERR_ROOT`
    Root,
    /// `MPI_ERR_TOPOLOGY`
    Topology,
    /// `MPI_ERR_GROUP`
    Group,
    /// `MPI_ERR_OP`
    Op,
    /// `MPI_ERR_TRUNCATE`
    Truncate,
    /// `MPI_ERR_REQUEST`
    Request,
    /// `MPI_ERR_RMA_SYNC`
    RmaSync,
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
            Error::TagOutOfRange { .. } => Class::Tag,
            Error::Root { .. } => Class::Root,
            Error::NoNeighbors => Class::Topology,
            Error::OneGroup => Class::Comm,
            Error::NoMemory { .. } => Class::NoMemory,
            Error::Truncated { .. } => Class::Truncate,
            Error::MessageType { .. }
            | Error::BufferTypes { .. }
            | Error::WindowTypes { .. }
            | Error::Incomparable { .. }
            | Error::ContributionType { .. } => Class::Type,
            Error::ContributionLength { .. }
            | Error::NotOneValue { .. }
            | Error::ResultRoom { .. }
            | Error::NotWholeValues { .. }
            | Error::BufferLength { .. }
            | Error::Parts { .. }
            | Error::NeighborParts { .. }
            | Error::NotDivisible { .. }
            | Error::PartLength { .. } => Class::Count,
            Error::OpOnStruct { .. } | Error::OpOnScalar { .. } => Class::Op,
            Error::NotInCommunicator { .. } => Class::Group,
            Error::ForeignRequest { .. } => Class::Request,
            Error::WindowRange { .. } | Error::WindowPlace { .. } => Class::RmaRange,
            Error::Epoch { .. } => Class::RmaSync,
            Error::Disagreement { .. }
            | Error::UserOperation { .. }
            | Error::ResultOverflow { .. }
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

    /// Results with an error are returned by what sends and receives.
    #[test]
    fn an_error_is_short() {
        assert!(size_of::<Error>() <= 2 * size_of::<String>(), "{}", size_of::<Error>());
    }

    #[test]
    fn a_site_may_have_no_line() {
        let site = Site { call: "MPI_Send", location: None };
        assert_eq!(site.to_string(), "MPI_Send");
    }
}
