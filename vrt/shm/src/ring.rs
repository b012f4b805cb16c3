//! A single-producer single-consumer ring of messages between two processes.
//!
//! A message is one 64-byte *cell*: a sequence word and 60 bytes. One cache line carries a small
//! message as a whole, which makes it cheap: the consumer polls the line that will contain the
//! data, and no index is shared on the way. A longer payload is in the *byte ring* next to the
//! cells, contiguous, written before its cell is published and freed in the order of the cells.
//!
//! ```text
//! producer                               consumer
//!   head, bytes_head (private)             tail, bytes_tail (private)
//!   write payload into bytes               cell[tail % C].sequence == tail + 1 ?  (Acquire)
//!   write cell[head % C].data              read data, payload
//!   cell.sequence = head + 1 (Release) --> tail += 1, bytes_tail += used
//!   sees room through `consumed` (Acquire) <-- consumed, consumed_bytes = ... (Release)
//! ```
//!
//! Invariants: `head - consumed <= C` and `bytes_head - consumed_bytes <= B`, so the producer never
//! writes what the consumer may still read; a cell's sequence word grows by `C` from lap to lap, so
//! a stale cell is never mistaken for a new one. The consumer returns room in batches (a quarter of
//! the ring) or on request ([`Consumer::release`]).

use crate::sync::{AtomicU32, AtomicU64, Ordering, UnsafeCell};

/// Bytes of a cell that a message may use.
pub const CELL_PAYLOAD: usize = 60;

/// The part of a cell that belongs to the message: 4-byte aligned, so that a struct of words fits.
#[derive(Debug)]
#[repr(C, align(4))]
pub struct CellData(pub [u8; CELL_PAYLOAD]);

/// Payloads in the byte ring begin at multiples of this many bytes.
const ALIGN: u64 = 64;

/// One cache line of a [`Ring`].
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Cell {
    sequence: AtomicU32,
    data: UnsafeCell<CellData>,
}

/// What the consumer has returned, on a separate cache line.
#[derive(Debug)]
#[repr(C, align(128))]
struct Consumed {
    cells: AtomicU64,
    bytes: AtomicU64,
}

/// The shared part: `CELLS` cells and `BYTES` bytes of payload space, both powers of two.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Ring<const CELLS: usize, const BYTES: usize> {
    cells: [Cell; CELLS],
    // In front of the cells it would save a page of memory, and cost messages 3% of their time.
    consumed: Consumed,
    bytes: std::cell::UnsafeCell<[u8; BYTES]>,
    /// Represents the byte ring, line by line, for the model checker.
    #[cfg(loom)]
    lines: Vec<UnsafeCell<()>>,
}

// SAFETY: the byte and cell contents are handed from producer to consumer by the Release store of
// a sequence word and back by the Release store of `consumed`; `Producer::new` and `Consumer::new`
// demand that there is one of each.
unsafe impl<const C: usize, const B: usize> Sync for Ring<C, B> {}

impl<const C: usize, const B: usize> Ring<C, B> {
    const SIZES_ARE_POWERS_OF_TWO: () = assert!(C.is_power_of_two() && B.is_power_of_two());

    /// An empty ring. (In a shared mapping, zeroed memory is one too.)
    #[cfg(loom)]
    pub fn new() -> Self {
        let () = Self::SIZES_ARE_POWERS_OF_TWO;
        Ring {
            cells: std::array::from_fn(|_| Cell {
                sequence: AtomicU32::new(0),
                data: UnsafeCell::new(CellData([0; CELL_PAYLOAD])),
            }),
            consumed: Consumed { cells: AtomicU64::new(0), bytes: AtomicU64::new(0) },
            bytes: std::cell::UnsafeCell::new([0; B]),
            lines: (0..B / ALIGN as usize).map(|_| UnsafeCell::new(())).collect(),
        }
    }

    /// The bytes at `at`, about to be written (or read) for `_len` bytes.
    #[inline(always)]
    fn bytes_at(&self, at: usize, _len: usize, _write: bool) -> *mut u8 {
        #[cfg(loom)]
        for line in &self.lines[at / ALIGN as usize..(at + _len).div_ceil(ALIGN as usize)] {
            if _write { line.with_mut(|_| ()) } else { line.with(|_| ()) }
        }
        // SAFETY: callers pass an offset inside the ring.
        unsafe { self.bytes.get().cast::<u8>().add(at) }
    }
}

#[cfg(loom)]
impl<const C: usize, const B: usize> Default for Ring<C, B> {
    fn default() -> Self {
        Self::new()
    }
}

/// The sending side's private state.
#[derive(Debug)]
pub struct Producer<'a, const C: usize, const B: usize> {
    ring: &'a Ring<C, B>,
    head: u64,
    bytes_head: u64,
    consumed: u64,
    consumed_bytes: u64,
}

impl<'a, const C: usize, const B: usize> Producer<'a, C, B> {
    /// # Safety
    /// The ring is empty and zeroed, and this is its only producer.
    pub unsafe fn new(ring: &'a Ring<C, B>) -> Self {
        let () = Ring::<C, B>::SIZES_ARE_POWERS_OF_TWO;
        Producer { ring, head: 0, bytes_head: 0, consumed: 0, consumed_bytes: 0 }
    }

    /// The longest payload that [`send`](Self::send) accepts: half of the byte ring, so that one
    /// always fits into an empty ring wherever its end is.
    pub const MAX_PAYLOAD: usize = B / 2;

    /// Sends one message, or returns false if there is no room now.
    ///
    /// `write` fills the cell; `payload` (may be empty, at most [`Self::MAX_PAYLOAD`] bytes) goes
    /// into the byte ring.
    #[inline]
    pub fn send(&mut self, write: impl FnOnce(&mut CellData), payload: &[u8]) -> bool {
        let skip = self.skip_for(payload.len());
        let used = if payload.is_empty() { 0 } else { skip + round_up(payload.len() as u64) };
        if !self.has_room(used) {
            return false;
        }
        if !payload.is_empty() {
            debug_assert!(payload.len() <= Self::MAX_PAYLOAD);
            let at = ((self.bytes_head + skip) % B as u64) as usize;
            let to = self.ring.bytes_at(at, payload.len(), true);
            // SAFETY: [at, at + len) does not wrap (`skip_for`) and is free: `has_room` saw that
            // the consumer has given back everything that lay there.
            unsafe { std::ptr::copy_nonoverlapping(payload.as_ptr(), to, payload.len()) };
            self.bytes_head += used;
        }
        let cell = &self.ring.cells[(self.head % C as u64) as usize];
        // SAFETY: the cell is free (`has_room`), and only this producer writes cells.
        cell.data.with_mut(|data| write(unsafe { &mut *data }));
        self.head += 1;
        // The sequence is 32 bits wide: a stale value is C laps-of-cells away, never 2^32.
        cell.sequence.store(self.head as u32, Ordering::Release);
        true
    }

    /// Bytes to leave unused so that a payload of `len` bytes does not wrap around the end.
    fn skip_for(&self, len: usize) -> u64 {
        let at = self.bytes_head % B as u64;
        if at + len as u64 > B as u64 { B as u64 - at } else { 0 }
    }

    #[inline]
    fn has_room(&mut self, bytes: u64) -> bool {
        let room = |p: &Self| {
            p.head - p.consumed < C as u64 && p.bytes_head - p.consumed_bytes + bytes <= B as u64
        };
        if !room(self) {
            self.consumed = self.ring.consumed.cells.load(Ordering::Acquire);
            self.consumed_bytes = self.ring.consumed.bytes.load(Ordering::Acquire);
        }
        room(self)
    }
}

/// The receiving side's private state.
#[derive(Debug)]
pub struct Consumer<'a, const C: usize, const B: usize> {
    ring: &'a Ring<C, B>,
    tail: u64,
    bytes_tail: u64,
    released: u64,
    released_bytes: u64,
}

impl<'a, const C: usize, const B: usize> Consumer<'a, C, B> {
    /// # Safety
    /// The ring is empty and zeroed, and this is its only consumer.
    pub unsafe fn new(ring: &'a Ring<C, B>) -> Self {
        Consumer { ring, tail: 0, bytes_tail: 0, released: 0, released_bytes: 0 }
    }

    /// Whether a message is waiting.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        let cell = &self.ring.cells[(self.tail % C as u64) as usize];
        cell.sequence.load(Ordering::Acquire) == (self.tail + 1) as u32
    }

    /// Takes the next message, if there is one. `read` gets the cell and the payload, of which it
    /// must take exactly the length that was sent.
    #[inline]
    pub fn receive<R>(
        &mut self,
        read: impl FnOnce(&CellData, &mut Payload<'_, C, B>) -> R,
    ) -> Option<R> {
        if !self.is_ready() {
            return None;
        }
        let cell = &self.ring.cells[(self.tail % C as u64) as usize];
        let mut payload = Payload { ring: self.ring, at: self.bytes_tail };
        // SAFETY: the sequence word says that the producer has published this cell, and it will
        // not write it again before `release`.
        let result = cell.data.with(|data| read(unsafe { &*data }, &mut payload));
        self.bytes_tail = payload.at;
        self.tail += 1;
        if self.tail - self.released >= (C / 4).max(1) as u64
            || self.bytes_tail - self.released_bytes >= (B / 4) as u64
        {
            self.release();
        }
        Some(result)
    }

    /// Returns everything taken to the producer now.
    pub fn release(&mut self) {
        if self.released != self.tail {
            self.released = self.tail;
            self.released_bytes = self.bytes_tail;
            self.ring.consumed.bytes.store(self.bytes_tail, Ordering::Release);
            self.ring.consumed.cells.store(self.tail, Ordering::Release);
        }
    }
}

/// The payload of the message that is being read.
#[derive(Debug)]
pub struct Payload<'a, const C: usize, const B: usize> {
    ring: &'a Ring<C, B>,
    at: u64,
}

impl<const C: usize, const B: usize> Payload<'_, C, B> {
    /// The address of its `len` bytes, valid until the reader returns.
    #[inline(always)]
    pub fn take(&mut self, len: usize) -> *const u8 {
        if len == 0 {
            return std::ptr::NonNull::dangling().as_ptr();
        }
        let at = self.at % B as u64;
        let skip = if at + len as u64 > B as u64 { B as u64 - at } else { 0 };
        let start = ((self.at + skip) % B as u64) as usize;
        self.at += skip + round_up(len as u64);
        self.ring.bytes_at(start, len, false).cast_const()
    }
}

fn round_up(len: u64) -> u64 {
    len.next_multiple_of(ALIGN)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    type Small = Ring<8, 1024>;

    fn zeroed() -> Box<Small> {
        // SAFETY: a ring is valid when zeroed.
        unsafe { Box::<Small>::new_zeroed().assume_init() }
    }

    /// The two ends of a fresh ring.
    fn ends(ring: &Small) -> (Producer<'_, 8, 1024>, Consumer<'_, 8, 1024>) {
        // SAFETY: `zeroed` has just made the ring; this is its only producer.
        let producer = unsafe { Producer::new(ring) };
        // SAFETY: and this its only consumer.
        (producer, unsafe { Consumer::new(ring) })
    }

    #[test]
    fn payloads_of_every_length_arrive_in_order_and_whole() {
        let ring = zeroed();
        let (mut tx, mut rx) = ends(&ring);
        let (mut sent, mut got) = (0u32, 0u32);
        // An interpreter takes a thousand times as long.
        let messages = if cfg!(miri) { 200 } else { 20_000 };
        while got < messages {
            let len = (sent as usize * 37) % (Producer::<8, 1024>::MAX_PAYLOAD + 1);
            let payload: Vec<u8> = (0..len).map(|i| (i as u32 + sent) as u8).collect();
            let ok = tx.send(
                |cell| {
                    cell.0[..4].copy_from_slice(&sent.to_le_bytes());
                    cell.0[4..8].copy_from_slice(&(len as u32).to_le_bytes());
                },
                &payload,
            );
            if ok {
                sent += 1;
                if sent % 3 != 0 {
                    continue;
                }
            }
            while let Some((n, bytes)) = rx.receive(|cell, payload| {
                let n = u32::from_le_bytes(cell.0[..4].try_into().unwrap());
                let len = u32::from_le_bytes(cell.0[4..8].try_into().unwrap()) as usize;
                let p = payload.take(len);
                // SAFETY: the ring says where `len` bytes lie.
                (n, unsafe { std::slice::from_raw_parts(p, len) }.to_vec())
            }) {
                assert_eq!(n, got);
                assert!(bytes.iter().enumerate().all(|(i, b)| *b == (i as u32 + n) as u8));
                got += 1;
            }
            rx.release();
        }
        assert!(sent >= got);
    }

    #[test]
    fn a_full_ring_refuses_and_recovers() {
        let ring = zeroed();
        let (mut tx, mut rx) = ends(&ring);
        for _ in 0..8 {
            assert!(tx.send(|c| c.0[0] = 7, &[]));
        }
        assert!(!tx.send(|c| c.0[0] = 8, &[]));
        assert_eq!(rx.receive(|c, _| c.0[0]), Some(7));
        rx.release();
        assert!(tx.send(|c| c.0[0] = 8, &[]));
        assert!(!tx.send(|c| c.0[0] = 9, &[0; 600]), "no cell free");
        while rx.receive(|_, _| ()).is_some() {}
        rx.release();
        assert!(tx.send(|c| c.0[0] = 9, &[0; 500]));
    }
}
