//! Recording: turns a PE's notifications of its observer into records in a ring.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Thread;

use rustc_hash::FxHashMap;
use vrt_core::pe::{By, Envelope, Event, Observer, Placed, Then, cycle_counter};

use crate::format::{LONGEST_NAME, NO_PARTNER, RECORD, Record, code, then, what};
use crate::ring::{ROOM, Ring};

/// The observer of a PE whose events go to a file.
///
/// If the writing thread does not keep up, the PE waits for it: events are dropped only beyond the limit, and then only
/// the frequent kinds (runs, messages, collective operations, regions).
#[derive(Debug)]
pub struct Recorder {
    ring: Arc<Ring>,
    writer: Thread,
    /// Number of records written so far, and the position up to which there is room.
    head: u64,
    room: u64,
    /// The number of records after which only rare events are recorded.
    limit: u64,
    /// The call that was named last, and the names of all calls.
    last_call: (&'static str, u16),
    names: FxHashMap<Box<str>, u16>,
}

impl Recorder {
    /// A recorder that may record this many bytes.
    pub(crate) fn new(ring: Arc<Ring>, writer: Thread, limit: u64) -> Recorder {
        Recorder {
            ring,
            writer,
            head: 0,
            room: ROOM,
            limit: limit / RECORD as u64,
            last_call: ("", 0),
            names: FxHashMap::default(),
        }
    }

    /// Records a frequent event.
    #[inline(always)]
    fn put(&mut self, record: Record) {
        if self.head >= self.limit {
            return self.drop_one();
        }
        self.put_anyway(record);
    }

    #[inline(always)]
    fn put_anyway(&mut self, record: Record) {
        if self.head == self.room && !self.wait_for_room() {
            return self.drop_one();
        }
        self.ring.put(self.head, record);
        self.head += 1;
        if self.head.is_multiple_of(ROOM / 4) {
            self.writer.unpark();
        }
    }

    #[cold]
    fn drop_one(&self) {
        // Only this thread writes it.
        let dropped = self.ring.dropped.load(Ordering::Relaxed);
        self.ring.dropped.store(dropped + 1, Ordering::Relaxed);
    }

    /// Returns false if there will never be room.
    #[cold]
    fn wait_for_room(&mut self) -> bool {
        loop {
            self.room = self.ring.end_of_room();
            if self.head < self.room {
                return true;
            }
            if self.ring.closed.load(Ordering::Acquire) {
                return false;
            }
            self.writer.unpark();
            std::thread::yield_now();
        }
    }

    /// The number of a call's name; 0 means no name.
    #[inline(always)]
    fn call(&mut self, call: &'static str) -> u32 {
        if !std::ptr::eq(self.last_call.0, call) {
            self.last_call = (call, self.name(call));
        }
        u32::from(self.last_call.1)
    }

    #[inline(never)]
    fn name(&mut self, name: &str) -> u16 {
        if name.is_empty() {
            return 0;
        }
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let Ok(number) = u16::try_from(self.names.len() + 1) else { return 0 };
        self.names.insert(name.into(), number);
        let text = name.as_bytes();
        let other = u32::from(number) | (text.len() as u32) << 16;
        self.put_anyway([0, what(code::NAME, 0, other), 0, 0]);
        for part in text.chunks(RECORD) {
            let mut bytes = [0; RECORD];
            bytes[..part.len()].copy_from_slice(part);
            let mut record = [0; 4];
            for (word, bytes) in record.iter_mut().zip(bytes.chunks(8)) {
                *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            }
            self.put_anyway(record);
        }
        number
    }

    #[inline(always)]
    fn message(&mut self, code: u8, rank: u32, other: u32, message: &Envelope) {
        let Envelope { sequence, context, tag, bytes, .. } = *message;
        // Contexts of a communicator come in fours: messages, operations, exchanges, theirs.
        let other = other | (context % 4) << 24;
        let last = u64::from(sequence) | u64::from(tag as u32) << 32;
        self.put([cycle_counter(), what(code, rank, other), bytes, last]);
    }

    fn step(&mut self, number: u32, strategy: &str, ranks: &[Placed]) {
        let name = u32::from(self.name(strategy));
        let now = cycle_counter();
        let of_step = what(code::STEP, 0, name);
        self.put_anyway([now, of_step, u64::from(number), ranks.len() as u64]);
        for Placed { rank, at, to, seconds, bytes, pinned } in ranks.iter().copied() {
            let other = (at & 0xfff) | (to & 0xfff) << 12 | u32::from(pinned) << 31;
            self.put_anyway([now, what(code::PLACED, rank, other), seconds.to_bits(), bytes]);
        }
    }
}

impl Observer for Recorder {
    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Ran { rank, from, to, then } => {
                let (then, call, partner) = match then {
                    Then::Ready => (then::READY, "", None),
                    Then::Looks => (then::LOOKS, "", None),
                    Then::Waits { call, partner } => (then::WAITS, call, partner),
                    Then::Over => (then::OVER, "", None),
                };
                let other = self.call(call) | then << 16;
                let partner = partner.unwrap_or(NO_PARTNER);
                let cycles = to.wrapping_sub(from);
                self.put([to, what(code::RAN, rank, other), cycles, u64::from(partner as u32)]);
            }
            Event::Idle { from, to } => {
                self.put([to, what(code::IDLE, 0, 0), to.wrapping_sub(from), 0]);
            }
            Event::Sent(message) => {
                self.message(code::SENT, message.from, message.to, &message);
            }
            Event::SentAndMatched(message) => {
                self.message(code::SENT_AND_MATCHED, message.from, message.to, &message);
            }
            Event::Matched(message) => {
                self.message(code::MATCHED, message.to, message.from, &message);
            }
            Event::PutBack { rank } => {
                self.put([cycle_counter(), what(code::PUT_BACK, rank, 0), 0, 0]);
            }
            Event::CollectiveBegins { rank, context, call } => {
                let what = what(code::COLLECTIVE_BEGINS, rank, self.call(call));
                self.put([cycle_counter(), what, u64::from(context), 0]);
            }
            Event::CollectiveEnds { rank, context, call } => {
                let what = what(code::COLLECTIVE_ENDS, rank, self.call(call));
                self.put([cycle_counter(), what, u64::from(context), 0]);
            }
            Event::Leaves { rank, to, bytes, by } => {
                let by = match by {
                    By::HandOver => 0,
                    By::Memory => 1,
                    By::State => 2,
                };
                let what = what(code::LEAVES, rank, to | by << 24);
                self.put_anyway([cycle_counter(), what, bytes, 0]);
            }
            Event::Comes { rank, from } => {
                self.put_anyway([cycle_counter(), what(code::COMES, rank, from), 0, 0]);
            }
            Event::Stays { rank, why } => {
                let name = u32::from(self.name(why));
                self.put_anyway([cycle_counter(), what(code::STAYS, rank, name), 0, 0]);
            }
            Event::Step { number, strategy, ranks } => self.step(number, strategy, ranks),
            Event::RegionBegins { rank, name } => {
                let name = u32::from(self.name(name));
                self.put([cycle_counter(), what(code::REGION_BEGINS, rank, name), 0, 0]);
            }
            Event::RegionEnds { rank } => {
                self.put([cycle_counter(), what(code::REGION_ENDS, rank, 0), 0, 0]);
            }
            Event::Over { rank, run, switches, messages, bytes } => {
                let now = cycle_counter();
                self.put_anyway([now, what(code::OVER, rank, 0), run, switches]);
                self.put_anyway([now, what(code::OVER_SENT, rank, 0), messages, bytes]);
            }
        }
    }
}
