//! Packets for ranks that are not here yet.

use rustc_hash::FxHashMap;

use crate::net::Packet;
use crate::pe::unexpected::UnexpectedPayload;

/// What has come for ranks that are on their way here, by rank.
pub(super) type Coming = FxHashMap<u32, Vec<Stray>>;

#[derive(Debug)]
pub(super) enum Stray {
    Message(Packet, UnexpectedPayload),
    /// An answer, a part of a message or a packet for an extension.
    Other(StrayPacket),
}

/// A packet, with the bytes beside it.
#[derive(Debug)]
pub(super) struct StrayPacket {
    pub(super) packet: Packet,
    pub(super) payload: Vec<u8>,
}

impl StrayPacket {
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    pub(super) unsafe fn of(packet: &Packet, payload: *const u8) -> StrayPacket {
        let payload = match packet.payload() {
            0 => Vec::new(),
            // SAFETY: as the caller promises.
            len => unsafe { std::slice::from_raw_parts(payload, len) }.to_vec(),
        };
        StrayPacket { packet: *packet, payload }
    }
}
