//! The events of a PE in memory: written by its thread, taken by the thread that writes the file.
//!
//! The words of a record are plain atomics, so that no unsafe code is needed: on the processors that `vrt` runs on, a
//! relaxed store is an ordinary store. `head` counts records written, `tail` records taken; the writer owns the places
//! `tail + ROOM > place >= head`, the taker the other ones. Each side learns the other's progress by an acquire load of
//! the count that the other stores with release.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::format::{RECORD, Record};

/// Capacity in records: 4 MiB.
pub(crate) const ROOM: u64 = 1 << 17;

#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[[AtomicU64; 4]]>,
    head: AtomicU64,
    tail: AtomicU64,
    /// Number of dropped events.
    pub(crate) dropped: AtomicU64,
    /// Nothing is taken any more.
    pub(crate) closed: AtomicBool,
    /// The PE has ended: what remains must be written.
    pub(crate) over: AtomicBool,
}

impl Ring {
    pub(crate) fn new() -> Ring {
        let word = || [0; 4].map(AtomicU64::new);
        Ring {
            words: std::iter::repeat_with(word).take(ROOM as usize).collect(),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Puts a record at `head`, the writer's count; there must be room.
    #[inline(always)]
    pub(crate) fn put(&self, head: u64, record: Record) {
        let place = &self.words[(head % ROOM) as usize];
        for (word, value) in place.iter().zip(record) {
            word.store(value, Ordering::Relaxed);
        }
        self.head.store(head + 1, Ordering::Release);
    }

    /// The position up to which the writer may write now.
    pub(crate) fn end_of_room(&self) -> u64 {
        self.tail.load(Ordering::Acquire) + ROOM
    }

    /// Takes at most `most` of the records put, and appends their bytes.
    pub(crate) fn take(&self, most: u64, bytes: &mut Vec<u8>) {
        let tail = self.tail.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Acquire).min(tail + most);
        for at in tail..head {
            let words = &self.words[(at % ROOM) as usize];
            let mut record = [0; RECORD];
            for (bytes, word) in record.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            bytes.extend_from_slice(&record);
        }
        self.tail.store(head, Ordering::Release);
    }
}
