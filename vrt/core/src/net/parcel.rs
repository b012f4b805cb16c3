//! Bytes of any length from one PE to another: ranks that move, and messages about balancing.
//!
//! A parcel is cut into pieces that fit into a packet or follow one. Rings keep their order, so the
//! pieces from a sender are reassembled as they arrive.

use serde::{Deserialize, Serialize};

use crate::encoding;
use crate::net::local::{MAX_PAYLOAD, Outgoing};
use crate::net::{INLINE, Kind, Packet, damaged};

/// The subject of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Topic {
    /// A rank that moves here.
    Rank = 1,
    /// A contribution to a collective operation, from a rank that lives elsewhere.
    Contribution,
    /// A step of the load balancer.
    Balance,
    /// A rank that lives elsewhere joins or leaves a group.
    Group,
    /// What the nodes of a job must agree on.
    Job,
}

/// Numbers below this are those of topics.
pub(crate) const TOPICS: usize = Topic::Job as usize + 1;

impl Topic {
    const ALL: [Topic; TOPICS - 1] =
        [Topic::Rank, Topic::Contribution, Topic::Balance, Topic::Group, Topic::Job];

    /// The topic with a number, if there is one.
    fn from_number(number: u32) -> Option<Topic> {
        Topic::ALL.into_iter().find(|topic| *topic as u32 == number)
    }
}

/// Sends a parcel to another PE; `contents` is the runtime's own data.
pub fn send<T: Serialize>(net: &mut Outgoing, me: u32, to: u32, topic: Topic, contents: &T) {
    debug_assert_ne!(me, to, "a PE needs no parcel to itself");
    let bytes = match encoding::encode(contents) {
        Ok(bytes) => bytes,
        Err(error) => unreachable!("plain numbers and bytes can be encoded: {error}"),
    };
    let mut rest = &bytes[..];
    loop {
        let (piece, after) = rest.split_at(rest.len().min(MAX_PAYLOAD));
        let mut packet = Packet::new(Kind::Parcel, me, to);
        packet.request = topic as u32;
        packet.wants_finish = !after.is_empty();
        packet.len = piece.len() as u32;
        if piece.len() <= INLINE {
            packet.data.0[..piece.len()].copy_from_slice(piece);
        }
        // SAFETY: `piece` is what lies beside the packet, if anything does.
        unsafe { net.send(to as usize, &packet, piece.as_ptr()) };
        rest = after;
        if rest.is_empty() {
            return;
        }
    }
}

/// Incomplete parcels, by sender.
#[derive(Debug, Default)]
pub struct Incoming {
    partial: Vec<Vec<u8>>,
}

impl Incoming {
    /// Takes a piece; calls `deliver(topic, bytes)` when the parcel is complete.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    pub unsafe fn take(&mut self, packet: &Packet, payload: *const u8) -> Option<Parcel> {
        let len = packet.len as usize;
        let data = if len <= INLINE { packet.data.0.as_ptr() } else { payload };
        // SAFETY: the packet's data, here or beside it, has this length.
        let piece = unsafe { std::slice::from_raw_parts(data, len) };
        let from = packet.from as usize;
        if self.partial.len() <= from {
            self.partial.resize_with(from + 1, Vec::new);
        }
        let partial = &mut self.partial[from];
        partial.extend_from_slice(piece);
        let more = packet.wants_finish;
        let Some(topic) = Topic::from_number(packet.request) else {
            damaged(format_args!("a parcel of topic {}", packet.request))
        };
        (!more).then(|| Parcel { topic, from: packet.from, bytes: std::mem::take(partial) })
    }
}

/// A complete parcel.
#[derive(Debug)]
pub struct Parcel {
    pub(crate) topic: Topic,
    /// The sending PE.
    pub from: u32,
    /// Its contents, encoded.
    pub(crate) bytes: Vec<u8>,
}

impl Parcel {
    /// Decodes its contents.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> T {
        match encoding::decode_borrowed(&self.bytes) {
            Ok(contents) => contents,
            Err(error) => unreachable!("a PE of this job has encoded it: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_its_number() {
        for topic in Topic::ALL {
            assert_eq!(Topic::from_number(topic as u32), Some(topic));
        }
        assert_eq!((Topic::from_number(0), Topic::from_number(TOPICS as u32)), (None, None));
    }
}
