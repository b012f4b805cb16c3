//! The events of a PE in memory: written by its thread, taken by the one that writes the file.
//!
//! The words of a record are plain atomics, so that there is nothing unsafe in it: on the processors that
//! `vrt` runs on, a relaxed store is a store. `head` counts records written, `tail` those taken; the
//! writer owns the places `tail + ROOM > place >= head`, the taker those in between, and each learns what
//! the other has done by an acquiring load of what that has stored with release.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::format::{RECORD, Record};

/// Records that there is room for: 4 MiB.
pub(crate) const ROOM: u64 = 1 << 17;

#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[[AtomicU64; 4]]>,
    head: AtomicU64,
    tail: AtomicU64,
    /// Events left out.
    pub(crate) dropped: AtomicU64,
    /// Nobody takes anything any more.
    pub(crate) closed: AtomicBool,
    /// The PE is over: what is there is to be written.
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

    /// Puts a record where `head`, the writer's count, says; there has to be room.
    #[inline(always)]
    pub(crate) fn put(&self, head: u64, record: Record) {
        let place = &self.words[(head % ROOM) as usize];
        for (word, value) in place.iter().zip(record) {
            word.store(value, Ordering::Relaxed);
        }
        self.head.store(head + 1, Ordering::Release);
    }

    /// The place up to which the writer may go now.
    pub(crate) fn end_of_room(&self) -> u64 {
        self.tail.load(Ordering::Acquire) + ROOM
    }

    /// Appends the bytes of what has been put and not taken, at most `most` records, and takes it.
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
