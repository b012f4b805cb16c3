//! Identifies a small collective operation, and detects whether two ranks mean the same one.
//!
//! Ranks of a PE compare whole [`Spec`]s; between PEs the few words of a [`Disagreement`] are sent with the
//! contributions, so that ranks that differ learn about each other instead of folding data that does not match.

use serde::{Deserialize, Serialize};

use crate::comm::operator::{Op, Operator};
use crate::error::Error;
use crate::layout::{Scalar, Signature};
use crate::net::Packet;
use crate::net::local::MAX_PAYLOAD;
use crate::pe::{Completion, RequestEnd};

/// Low bits of an operation's number: steps of one operation, and windows of its data, that are combined one
/// after the other.
pub(super) const PHASE_BITS: u32 = 12;
/// Bytes in front of each part in a packet: start and level.
pub(super) const PART_HEADER: usize = 8;

/// Longest contribution that is kept until all are there. Longer ones are folded as they come.
pub(super) const MAX_UNIT: usize = 4 << 10;
const _: () = assert!(MAX_UNIT + PART_HEADER <= MAX_PAYLOAD);

/// What an operation does with the contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// Fold them.
    Reduce(Operator),
    /// Lay them side by side in rank order.
    Concatenate,
    /// Only the root contributes; every rank gets its data.
    Broadcast,
    /// Each contribution has a part for every rank; a rank gets its parts, in rank order.
    Exchange,
}

/// A length in 32 bits: itself, if it is not longer; of longer ones two of different lengths are hardly ever taken
/// for each other.
#[cfg_attr(not(test), expect(clippy::cast_possible_truncation, reason = "both halves count"))]
fn folded(length: usize) -> u32 {
    let length = length as u64;
    length as u32 ^ ((length >> 32) as u32).rotate_right(8)
}

/// Kinds of operations that are no reductions.
const OTHERS: u32 = 3;

impl What {
    /// A number of ten bits, of each kind of operation and each operator another one.
    fn number(self) -> u32 {
        #[cfg_attr(
            not(test),
            expect(clippy::cast_possible_truncation, reason = "there are few scalars")
        )]
        const SCALARS: u32 = Scalar::ALL.len() as u32;
        const OPERATORS: u32 = (Op::Nothing as u32 + 1) * SCALARS;
        const { assert!(OTHERS + OPERATORS <= 1 << 10, "operators have ten bits") };
        match self {
            What::Exchange => 0,
            What::Concatenate => 1,
            What::Broadcast => 2,
            What::Reduce(Operator { op, scalar }) => {
                let operator = (op as u32).saturating_mul(SCALARS).saturating_add(scalar as u32);
                OTHERS.saturating_add(operator)
            }
        }
    }
}

/// A small collective operation of one rank.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub what: What,
    /// The rank that gets the result (or, in a broadcast, that contributes); `None`: every rank.
    pub root: Option<u32>,
    pub context: u32,
    /// The rank in the communicator, the communicator's size and its first rank in the job, which the others follow; or
    /// [`REGISTERED`](super::groups::REGISTERED).
    pub rank: u32,
    pub size: u32,
    pub first: u32,
    /// Bytes of a contribution.
    pub unit: usize,
    /// Bytes of the whole contribution of which this is a window; all of it, if there is only one window.
    pub whole: usize,
    /// Its element type.
    pub signature: Signature,
}

impl Spec {
    /// Whether both mean the same operation.
    #[inline]
    pub(super) fn agrees_with(&self, other: &Spec) -> bool {
        let same = match (self.what, other.what) {
            (What::Reduce(one), What::Reduce(other)) => {
                one.op == other.op && one.scalar == other.scalar
            }
            (one, other) => std::mem::discriminant(&one) == std::mem::discriminant(&other),
        };
        same && self.unit == other.unit
            && self.whole == other.whole
            && self.signature == other.signature
            && self.root == other.root
    }

    /// What all ranks have to agree about, in short.
    pub(super) fn disagreement(&self) -> Disagreement {
        let root = self.root.map_or(0, |root| (root & 0x1f_ffff).saturating_add(1));
        let fingerprint = (self.what.number() << 22) | root;
        Disagreement { fingerprint, unit: folded(self.whole), signature: self.signature }
    }

    /// Whether contributions are folded as they come instead of being kept side by side.
    #[inline(always)]
    pub(super) fn is_long(&self) -> bool {
        self.whole > MAX_UNIT
    }

    /// Whether the root alone waits for the result. All wait for that of a long window, so that a PE has to keep
    /// no more than one window that the root has not come to.
    #[inline(always)]
    pub(super) fn is_rooted(&self) -> bool {
        self.root.is_some() && !matches!(self.what, What::Broadcast) && !self.is_long()
    }

    /// Whether PEs pass it along a tree where they are many: all of them get all, folded or side by side.
    pub(super) fn is_relayed(&self) -> bool {
        let is_for_all = matches!(self.what, What::Reduce(_) | What::Concatenate);
        is_for_all && !self.is_long() && !self.is_rooted()
    }

    /// Bytes of the result.
    pub(super) fn result_len(&self) -> usize {
        if matches!(self.what, What::Concatenate) {
            self.unit.saturating_mul(self.size as usize)
        } else {
            self.unit
        }
    }
}

/// A rank that wants the result.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) rank: u32,
    /// Its rank in the communicator.
    pub(super) place: u32,
    pub(super) request: u32,
    /// Where the result goes; null if it only waits until it is there.
    #[serde(with = "crate::net::address")]
    pub(super) out: *mut u8,
}

/// What somebody else says about an operation that this rank takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disagreement {
    fingerprint: u32,
    /// Bytes of the whole contribution.
    pub(super) unit: u32,
    pub(super) signature: Signature,
}

impl Disagreement {
    /// What a packet says of its operation.
    pub(super) fn of(packet: &Packet) -> Disagreement {
        Disagreement {
            fingerprint: packet.tag.cast_unsigned(),
            unit: packet.request,
            signature: packet.signature,
        }
    }

    /// How a request ends of a rank that means another operation.
    pub(super) fn outcome(self) -> Completion {
        Completion {
            bytes: u64::from(self.unit),
            tag: i32::from(self.signature.number()),
            ended: RequestEnd::Cancelled,
            ..Completion::default()
        }
    }

    /// Says it in a packet.
    pub(super) fn write_to(self, packet: &mut Packet) {
        packet.tag = self.fingerprint as i32;
        packet.request = self.unit;
        packet.signature = self.signature;
    }
}

#[inline]
pub(super) fn check_agreement(outcome: &Completion, spec: &Spec) -> Result<(), Error> {
    if outcome.is_cancelled() { Err(disagreement(outcome, spec)) } else { Ok(()) }
}

#[cold]
#[cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the tag of such an end is a signature's number"
    )
)]
fn disagreement(theirs: &Completion, own: &Spec) -> Error {
    Error::Disagreement {
        own_bytes: own.whole,
        own: own.signature,
        bytes: theirs.bytes,
        theirs: Signature::from_number(theirs.tag as u16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_a_number_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for what in [What::Exchange, What::Concatenate, What::Broadcast] {
            assert!(seen.insert(what.number()), "{what:?}");
        }
        let ops = [
            Op::Max,
            Op::Min,
            Op::Sum,
            Op::Product,
            Op::LogicalAnd,
            Op::BitwiseAnd,
            Op::LogicalOr,
            Op::BitwiseOr,
            Op::LogicalXor,
            Op::BitwiseXor,
            Op::MaxLocation,
            Op::MinLocation,
            Op::Replace,
            Op::Nothing,
        ];
        for op in ops {
            for scalar in Scalar::ALL {
                assert!(
                    seen.insert(What::Reduce(Operator { op, scalar }).number()),
                    "{op:?} {scalar:?}"
                );
            }
        }
        assert_eq!(folded(12_345), 12_345);
        assert_ne!(folded(1 << 32 | 8), 8);
        assert!(seen.iter().all(|number| *number < 1 << 10));
    }
}
