//! Defines the format of a trace file: blocks, and the records in them.
//!
//! A file is a sequence of *blocks*. Each consists of a header of [`HEADER`] bytes and records; it is appended to the
//! file by one system call, so that many PEs can write to one file, and a file that a crash has cut off is valid up to
//! its last complete block. Files of one job can be concatenated with `cat`.
//!
//! | bytes of the header | content |
//! |---|---|
//! | 0..8 | [`MAGIC`], which includes the format's version |
//! | 8..12, 12..16 | number of the PE; the block's content ([`Kind`]) |
//! | 16..24 | index of the block among the PE's blocks |
//! | 24..28, 28..32 | bytes after the header; their CRC-32 |
//! | 32..40, 40..48 | the cycle counter when the block was written, and nanoseconds since 1970 then |
//! | 48..56 | events that the PE has dropped so far |
//! | 56..60, 60..64 | how long the PE has waited for a core so far, in units of 100 us; CRC-32 of the preceding bytes |
//!
//! A *record* is four words of 64 bits: the time (cycles of the PE's counter), the kind and the rank, and two words
//! that depend on the kind; [`code`] lists the kinds. All numbers are little-endian.

/// The first bytes of each block.
pub(crate) const MAGIC: [u8; 8] = *b"vrtrace1";
/// Length of a block's header in bytes.
pub(crate) const HEADER: usize = 64;
/// Length of a record in bytes.
pub(crate) const RECORD: usize = 32;
/// The unit of [`Header::preempted`], in nanoseconds.
pub(crate) const PREEMPTED: u64 = 100_000;
/// The length of the longest name that is recorded in full, in bytes.
pub(crate) const LONGEST_NAME: usize = 255;

/// A record's words.
pub(crate) type Record = [u64; 4];

/// The kinds of records: the lowest byte of the second word. The next 24 bits are a rank; `other` is the upper half.
/// "Name" stands for the number of a name in the lower 16 bits of `other`.
pub(crate) mod code {
    /// A rank ran until this time; name of the call, [`then`](super::then) above it; cycles; partner.
    pub(crate) const RAN: u8 = 1;
    /// The PE was idle until this time; cycles.
    pub(crate) const IDLE: u8 = 2;
    /// Sender; receiver, and the kind of context above it; bytes; sequence, tag.
    pub(crate) const SENT: u8 = 3;
    /// Receiver; sender, and the kind of context above it; bytes; sequence, tag.
    pub(crate) const MATCHED: u8 = 4;
    /// A matched message became unmatched again.
    pub(crate) const PUT_BACK: u8 = 5;
    /// Name of the call; context.
    pub(crate) const COLLECTIVE_BEGINS: u8 = 6;
    /// The same.
    pub(crate) const COLLECTIVE_ENDS: u8 = 7;
    /// Destination PE, how it moves above it; bytes.
    pub(crate) const LEAVES: u8 = 8;
    /// Source PE.
    pub(crate) const COMES: u8 = 9;
    /// Name of the reason.
    pub(crate) const STAYS: u8 = 10;
    /// Name of the strategy; number of the step; number of [`PLACED`] records that follow.
    pub(crate) const STEP: u8 = 11;
    /// 12 bits of the current PE, 12 of the new PE, the highest bit: pinned; seconds; bytes.
    pub(crate) const PLACED: u8 = 12;
    /// Name of the region.
    pub(crate) const REGION_BEGINS: u8 = 13;
    /// Nothing.
    pub(crate) const REGION_ENDS: u8 = 14;
    /// Cycles run; switches.
    pub(crate) const OVER: u8 = 15;
    /// Messages sent by a rank that has ended; bytes in them.
    pub(crate) const OVER_SENT: u8 = 16;
    /// As [`SENT`], for a message that was matched at once.
    pub(crate) const SENT_AND_MATCHED: u8 = 18;
    /// Number of a name, its length above that; the text is in the following records.
    pub(crate) const NAME: u8 = 17;
}

/// What a rank does after it has stopped running.
pub(crate) mod then {
    pub(crate) const READY: u32 = 0;
    pub(crate) const LOOKS: u32 = 1;
    pub(crate) const WAITS: u32 = 2;
    pub(crate) const OVER: u32 = 3;
}

/// In place of a partner: the call has none.
pub(crate) const NO_PARTNER: i32 = i32::MIN;

/// What a block contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Records.
    Records,
    /// Lines `key=value` about the job; the first block of each PE.
    Job,
    /// Nothing: the PE's trace is complete.
    End,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) pe: u32,
    pub(crate) kind: Kind,
    pub(crate) number: u64,
    pub(crate) len: u32,
    pub(crate) crc: u32,
    pub(crate) stamp: u64,
    pub(crate) nanoseconds: u64,
    pub(crate) dropped: u64,
    pub(crate) preempted: u32,
}

impl Header {
    pub(crate) fn write(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let kind: u32 = match self.kind {
            Kind::Records => 0,
            Kind::Job => 1,
            Kind::End => 2,
        };
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.pe.to_le_bytes());
        bytes[12..16].copy_from_slice(&kind.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.len.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.crc.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.stamp.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.nanoseconds.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.dropped.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.preempted.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header at the beginning of these bytes, if there is one.
    #[cfg(feature = "tools")]
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.get(..HEADER)?;
        let word = |at: usize| {
            let word: [u8; 4] = bytes[at..at + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(word)
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes[..8] != MAGIC || crc32fast::hash(&bytes[..60]) != word(60) {
            return None;
        }
        let kind = match word(12) {
            0 => Kind::Records,
            1 => Kind::Job,
            2 => Kind::End,
            _ => return None,
        };
        let (pe, number, len, crc) = (word(8), long(16), word(24), word(28));
        let (stamp, nanoseconds, dropped) = (long(32), long(40), long(48));
        let preempted = word(56);
        Some(Header { pe, kind, number, len, crc, stamp, nanoseconds, dropped, preempted })
    }
}

/// The second word of a record.
#[inline(always)]
pub(crate) fn what(code: u8, rank: u32, other: u32) -> u64 {
    u64::from(code) | u64::from(rank & 0xff_ffff) << 8 | u64::from(other) << 32
}

#[cfg(all(test, feature = "tools"))]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = Header {
            pe: 3,
            kind: Kind::End,
            number: 7 << 33,
            len: 640,
            crc: 0xdead_beef,
            stamp: u64::MAX - 5,
            nanoseconds: 1,
            dropped: 12,
            preempted: 77,
        };
        let mut bytes = header.write();
        assert_eq!(Header::read(&bytes), Some(header));
        bytes[40] ^= 1;
        assert_eq!(Header::read(&bytes), None);
        assert_eq!(Header::read(&bytes[..HEADER - 1]), None);
    }
}
