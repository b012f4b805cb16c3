//! Messages that have no receive yet: where their data is, and what they take.

use serde::{Deserialize, Serialize};

use crate::mailbox::Unexpected;
use crate::net::Packet;

/// The current place of an arriving message's data.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// In the packet.
    Inline,
    /// At an address that is valid only during the call.
    Here(*const u8),
    /// In a block of some PE's pool that is the message's.
    Pool(*mut u8),
    /// In the arena, in the buffer of a waiting sender. (Which may have left the node by now, with its memory.)
    InArena(*mut u8),
    /// With a sender that waits until the data is requested.
    Staged,
}

/// The place of the data of a message that waits for its receive.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum UnexpectedPayload {
    /// In its packet.
    Inline,
    /// A block of some PE's pool.
    Pool(#[serde(with = "crate::net::address")] *mut u8),
    /// In the buffer of a waiting sender, at this address in the arena.
    InArena(#[serde(with = "crate::net::address")] *mut u8),
    /// With a sender that waits until the data is requested.
    Staged,
}

impl From<UnexpectedPayload> for Body {
    fn from(payload: UnexpectedPayload) -> Body {
        match payload {
            UnexpectedPayload::Inline => Body::Inline,
            UnexpectedPayload::Pool(block) => Body::Pool(block),
            UnexpectedPayload::InArena(data) => Body::InArena(data),
            UnexpectedPayload::Staged => Body::Staged,
        }
    }
}

/// The list of a rank's unexpected messages.
pub(super) type UnexpectedQueue = Unexpected<(Packet, UnexpectedPayload)>;

/// What unexpected messages of a rank take, beside their list.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// Bytes in pools.
    pub(crate) pooled: usize,
    /// The number of these at which the marks are set again.
    #[serde(skip)]
    pub(super) alarm: usize,
    pub held: bool,
    /// Nodes that were told.
    pub told: Vec<Told>,
}

/// A node that was told that a rank is held.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Told {
    /// The PE that sent the hint, and the one that received it.
    pub by: u32,
    pub pe: u32,
    /// Packets that have arrived from there since.
    pub since: u32,
}

/// When a PE looks whether memory of its pool can be given back.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Bytes in use above which it pays, and below which it does.
    pub(super) high: usize,
    pub(super) low: usize,
}

/// Counts what a kept message has in a pool.
pub(super) fn pooled(packet: &Packet, payload: UnexpectedPayload) -> usize {
    if matches!(payload, UnexpectedPayload::Pool(_)) { packet.message_len() as usize } else { 0 }
}
