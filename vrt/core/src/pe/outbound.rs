//! Messages to send: what they are, and how long those are that do not wait for their receives.

use crate::layout::Signature;
use crate::net::local::MAX_PAYLOAD;
use crate::net::shared::Shared;
use crate::net::{Kind, Packet};

/// MPI's send modes (MPI-4.1 section 3.4). A ready send is a standard one: its receive is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Done when the data is no longer needed, matched or not.
    Standard,
    /// A standard send whose data may disappear before it is done.
    Copied,
    /// Done when it has begun: the data was copied.
    Buffered,
    /// Done when its receive has begun.
    Synchronous,
    /// A synchronous send whose data may disappear before it is done.
    CopiedSynchronous,
}

impl Mode {
    #[inline(always)]
    pub(super) fn is_standard(self) -> bool {
        matches!(self, Mode::Standard | Mode::Copied)
    }

    #[inline(always)]
    pub(super) fn is_synchronous(self) -> bool {
        matches!(self, Mode::Synchronous | Mode::CopiedSynchronous)
    }

    /// Whether the data is only available when the send begins.
    #[inline(always)]
    pub fn copies(self) -> bool {
        matches!(self, Mode::Copied | Mode::CopiedSynchronous | Mode::Buffered)
    }
}

/// A message to send: bytes at an address that are stable until the send is done.
#[derive(Clone, Copy, Debug)]
pub struct Outbound {
    /// The context that its receive must ask for.
    pub context: u32,
    /// Destination rank of the job.
    pub to: u32,
    /// The sender's rank in the communicator.
    pub source: i32,
    /// The tag that its receive must ask for.
    pub tag: i32,
    /// The address of its bytes; may be null if there are none.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
    /// When the send is done.
    pub mode: Mode,
    /// Its element type.
    pub signature: Signature,
}

impl Outbound {
    /// Its packet, without data so far.
    #[inline(always)]
    pub(super) fn packet(&self, from: u32, sequence: u32) -> Packet {
        let mut packet = Packet::new(Kind::Eager, from, self.to);
        packet.context = self.context;
        packet.tag = self.tag;
        packet.source = self.source;
        packet.sequence = sequence;
        packet.signature = self.signature;
        packet
    }
}

/// Longest standard messages that are sent before their receives are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eager {
    /// To ranks of the same PE, and in collective operations, whose partners wait for each other anyway.
    pub(super) here: usize,
    /// From program to program, to another PE of the node.
    pub(super) near: usize,
}

impl Eager {
    /// `asked`: what the job's configuration says.
    ///
    /// A message that waits for its receive is copied once instead of twice, and where a PE has but one rank that is all.
    /// With several ranks, those whose messages to other PEs do not wait run ahead of their neighbours as far as these's
    /// messages let them, while what they work on is in the cache.
    pub(super) fn new(asked: Option<usize>, shared: Shared) -> Eager {
        let here = asked.unwrap_or(8 << 10);
        let is_alone = shared.ranks() <= shared.pes();
        let near = if is_alone { here } else { asked.unwrap_or(MAX_PAYLOAD) };
        Eager { here, near: near.min(MAX_PAYLOAD) }
    }

    /// The longest one to another PE.
    #[inline(always)]
    pub(super) fn to(&self, message: &Outbound, is_near: bool) -> usize {
        // Contexts come in fours, and the first of them is the program's.
        let is_of_program = message.context.is_multiple_of(4);
        if is_near && is_of_program { self.near } else { self.here.min(MAX_PAYLOAD) }
    }
}
