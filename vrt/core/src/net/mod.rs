//! Packets between PEs, and the shared memory that carries them.
//!
//! A [`Packet`] is one cell of a ring. Every packet down to `Finished` is addressed to a *rank*, so
//! that it can be forwarded if the rank has moved.
//!
//! | kind | meaning | answered by |
//! |---|---|---|
//! | `Eager` | a message with its data (in the packet up to 24 bytes, following it otherwise) | `Finished` if synchronous |
//! | `Rendezvous` | a message whose data lies in the arena at an address; the sender waits | `Finished` |
//! | `Staged` | a message whose data lies outside the arena; the sender waits | `ClearToSend` |
//! | `ClearToSend` | the receive for a staged message has been posted | `Chunk`s |
//! | `Chunk` | a part of a staged message | - |
//! | `Access` | a one-sided access to the memory of a window's rank, from another node | `Chunk`s or `Finished` |
//! | `Finished` | the receiver has matched (and copied) a message: the sender's request is done | - |
//! | `Collective` | contributions that PEs combine | - |
//! | `Parcel` | bytes of any length for a PE itself, in pieces (see [`parcel`]) | - |
//! | `Coming` | a rank is about to be shipped to this PE: hold packets for it | - |
//! | `Memory` | a piece of the memory of a rank that is being shipped | - |
//! | `Moved` | news: the new PE of a rank | - |
//! | `CountUp` | adds to a counter of a rank | `Finished` |
//! | `Hold` | news: senders to a rank are to keep the data, or not any more | - |
//! | `Withdraw` | withdraws an earlier message of its pair | `Finished`, if no receive had it |
//! | `Help` | the sending PE is copying a long message from a rank of this PE | - |

pub mod address;
mod clocked;
pub(crate) mod link;
pub mod local;
pub mod parcel;
pub(crate) mod receivers;
pub mod remote;
pub(crate) mod rings;
pub mod shared;
pub mod view;

use std::fmt;
use std::mem::offset_of;

use serde::{Deserialize, Serialize};
use vrt_shm::{CELL_PAYLOAD, CellData};
use vrt_slot::report;

use crate::layout::Signature;

/// Data that travels inside a packet.
pub(crate) const INLINE: usize = 24;

/// The distance between packets that lie in a row, in bytes.
pub const CELL: usize = 64;

/// The meaning of a packet; see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// A message with its data.
    Eager = 1,
    /// A message whose data the receiver copies out of the arena.
    Rendezvous,
    /// A message whose sender waits until the data is requested.
    Staged,
    /// Requests the data of a `Staged` message.
    ClearToSend,
    /// A part of the requested data.
    Chunk,
    /// The request of the addressee is done.
    Finished,
    /// Contributions of a PE's ranks to a collective operation.
    Collective,
    /// A piece of a parcel for the PE.
    Parcel,
    /// A rank is about to arrive from another node.
    Coming,
    /// A piece of that rank's memory.
    Memory,
    /// The new PE of a rank.
    Moved,
    /// A one-sided access from another node.
    Access,
    /// Adds to a counter of a sparse exchange.
    CountUp,
    /// Whether senders are to keep the data of messages to a rank.
    Hold,
    /// Withdraws an earlier message of its pair, unless a receive has it.
    Withdraw,
    /// A copy is in progress with which this PE can help.
    Help,
}

/// Numbers below this are those of kinds.
pub(crate) const KINDS: usize = Kind::Help as usize + 1;

/// One cell of a ring; 60 bytes without padding.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C)]
pub struct Packet {
    /// What it says, and so what its other fields mean.
    pub(crate) kind: Kind,
    /// The sender waits for `Finished` (synchronous and rendezvous sends).
    pub(crate) wants_finish: bool,
    /// The element type of a message, or of a contribution.
    pub signature: Signature,
    /// Context of the communicator.
    pub context: u32,
    /// Tag of a message; a `Collective` packet has bits of its operation here.
    pub(crate) tag: i32,
    /// Destination rank (of the job).
    pub to: u32,
    /// Source rank (of the job).
    pub from: u32,
    /// Number of the message between these two ranks.
    pub sequence: u32,
    /// The sender's rank in the communicator.
    pub source: i32,
    /// Bytes in `data` or, above `INLINE`, after the packet.
    pub len: u32,
    pub(crate) data: Data,
    /// The request concerned: the sender's in a message, the addressee's in an answer. It is not read in a message
    /// whose sender waits for nothing.
    pub request: u32,
}

/// 24 bytes: payload, or up to three words (address, length, number).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(transparent)]
pub(crate) struct Data(pub [u8; INLINE]);

impl Data {
    #[inline(always)]
    pub(crate) fn words(words: [u64; 3]) -> Data {
        let mut data = Data([0; INLINE]);
        data.set_word(0, words[0]);
        data.set_word(1, words[1]);
        data.set_word(2, words[2]);
        data
    }

    #[inline(always)]
    pub(crate) fn set_word(&mut self, i: usize, word: u64) {
        self.0[8 * i..8 * i + 8].copy_from_slice(&word.to_ne_bytes());
    }

    #[inline(always)]
    pub(crate) fn word(&self, i: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[8 * i..8 * i + 8]);
        u64::from_ne_bytes(word)
    }
}

const _: () =
    assert!(size_of::<Packet>() == CELL_PAYLOAD && align_of::<Packet>() <= align_of::<CellData>());

const _: () = assert!(offset_of!(Packet, kind) == 0 && offset_of!(Packet, wants_finish) == 1);

/// Whether the first two bytes of a cell, as a number, are those of a packet: its kind, and above it a flag.
#[inline(always)]
fn is_packet(start: u16) -> bool {
    ((start & !0x100).wrapping_sub(Kind::Eager as u16) as usize) < KINDS - Kind::Eager as usize
}

#[cold]
#[inline(never)]
fn no_packet(start: u16) -> ! {
    let [kind, wants_finish] = start.to_le_bytes();
    damaged(format_args!("a packet of kind {kind} ({wants_finish})"))
}

/// Ends the job: what has come is nothing that a PE sends.
#[cold]
pub(crate) fn damaged(what: fmt::Arguments<'_>) -> ! {
    report::say(format_args!(
        "{what} has come, which no PE sends: memory that PEs share was damaged"
    ));
    report::end_job(report::STATUS_RUNTIME)
}

impl Packet {
    /// A packet with nothing but its kind and its two ranks; all else is 0.
    #[inline(always)]
    pub(crate) fn new(kind: Kind, from: u32, to: u32) -> Packet {
        Packet {
            kind,
            wants_finish: false,
            signature: Signature::ANY,
            context: 0,
            tag: 0,
            to,
            from,
            sequence: 0,
            source: 0,
            len: 0,
            data: Data([0; INLINE]),
            request: 0,
        }
    }

    /// Bytes of the message that a first packet announces.
    pub(crate) fn message_len(&self) -> u64 {
        match self.kind {
            Kind::Rendezvous | Kind::Staged => self.data.word(1),
            _ => u64::from(self.len),
        }
    }

    #[inline(always)]
    pub(crate) fn write_to(&self, cell: &mut CellData) {
        // SAFETY: a packet is `CELL_PAYLOAD` bytes of plain data without padding, and a cell is
        // aligned as a packet is.
        unsafe { cell.0.as_mut_ptr().cast::<Packet>().write(*self) };
    }

    /// The packet in a cell. What is none ends the job: other processes can write there.
    #[inline(always)]
    pub(crate) fn in_cell(cell: &CellData) -> &Packet {
        let packet = cell.0.as_ptr().cast::<Packet>();
        // SAFETY: a cell has these two bytes, and is aligned as a packet is.
        let start = u16::from_le(unsafe { packet.cast::<u16>().read() });
        if !is_packet(start) {
            no_packet(start);
        }
        // SAFETY: its kind and its flag are such, and the rest of it are numbers.
        unsafe { &*packet }
    }

    /// The number of its bytes that carry information.
    #[inline(always)]
    pub fn significant(&self) -> usize {
        if self.kind == Kind::Eager && !self.wants_finish && self.payload() == 0 {
            offset_of!(Packet, data) + self.len as usize
        } else {
            size_of::<Packet>()
        }
    }

    /// Bytes that follow the packet.
    #[inline(always)]
    pub fn payload(&self) -> usize {
        if self.len as usize > INLINE { self.len as usize } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_packet_is_not_taken_for_one() {
        let packet = Packet::new(Kind::Help, 1, 2);
        let mut cell = CellData([0; CELL_PAYLOAD]);
        packet.write_to(&mut cell);
        assert_eq!((Packet::in_cell(&cell).kind, Packet::in_cell(&cell).to), (Kind::Help, 2));
        for start in 0..=u16::MAX {
            let [kind, wants_finish] = start.to_le_bytes();
            let kinds = Kind::Eager as u8..KINDS as u8;
            assert_eq!(is_packet(start), kinds.contains(&kind) && wants_finish <= 1, "{start}");
        }
    }
}
