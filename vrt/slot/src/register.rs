//! The register of what ranks hold: kind, key (an address or a number), length, and the slot.
//!
//! It grows by chunks and never shrinks. An entry changes from free to busy (whichever thread makes
//! that step may write it), from busy to taken, and back to free by one compare-and-exchange, which
//! only one thread can succeed in.

use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::forked;
use crate::heap_word::{running, runtime_heap};
use crate::held::Kind;
use crate::owner::{held_by, owner};

const FREE: u64 = 0;
const BUSY: u64 = 1;
const PER_CHUNK: usize = 64;

/// The state of an entry: the kind and the slot plus 1.
const fn state(kind: Kind, slot: u32) -> u64 {
    ((kind as u64 + 1) << 32) | (slot as u64 + 1)
}

struct Entry {
    state: AtomicU64,
    key: AtomicUsize,
    len: AtomicUsize,
}

struct Chunk {
    entries: [Entry; PER_CHUNK],
    next: AtomicPtr<Chunk>,
}

impl Chunk {
    fn new() -> Chunk {
        let empty = || Entry {
            state: AtomicU64::new(FREE),
            key: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
        };
        Chunk {
            entries: std::array::from_fn(|_| empty()),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }
}

/// The first chunk. Not part of the program's data: that is searched for references to slots when ranks leave a node,
/// and some keys are addresses in a rank's heap.
static FIRST: AtomicPtr<Chunk> = AtomicPtr::new(std::ptr::null_mut());
/// Number of entries of each kind.
static HELD: [AtomicUsize; Kind::ALL.len()] = [const { AtomicUsize::new(0) }; Kind::ALL.len()];

/// Something that was in the register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) key: usize,
    pub(crate) len: usize,
    pub(crate) slot: u32,
}

/// The chunk behind a pointer, if there is one.
fn existing(at: &AtomicPtr<Chunk>) -> Option<&'static Chunk> {
    // SAFETY: null, or a chunk that `chunk_at` has published: it is never freed.
    unsafe { at.load(Ordering::Acquire).as_ref() }
}

/// The chunk behind a pointer, created if there is none.
fn chunk_at(at: &AtomicPtr<Chunk>) -> &'static Chunk {
    if let Some(known) = existing(at) {
        return known;
    }
    let new = runtime_heap(|| Box::leak(Box::new(Chunk::new())));
    let none = std::ptr::null_mut();
    if let Err(other) = at.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: nobody has seen ours; the other one is as in `existing`.
        unsafe {
            runtime_heap(|| drop(Box::from_raw(new)));
            return &*other;
        }
    }
    new
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    std::iter::successors(existing(&FIRST), |chunk| existing(&chunk.next))
        .flat_map(|chunk| chunk.entries.iter())
}

/// The rank of a slot has created something.
pub(crate) fn add(kind: Kind, key: usize, len: usize, slot: u32) {
    if forked::is_copy() {
        return;
    }
    if let Some(held) = held_by(slot) {
        held.more(kind);
    }
    enter(kind, key, len, slot);
}

/// The rank of a slot has arrived from another process with something that it holds.
pub(crate) fn move_in(kind: Kind, key: usize, slot: u32) {
    enter(kind, key, 0, slot);
}

fn enter(kind: Kind, key: usize, len: usize, slot: u32) {
    let mut chunk = chunk_at(&FIRST);
    let entry = loop {
        let free = chunk.entries.iter().find(|entry| {
            entry.state.load(Ordering::Relaxed) == FREE
                && entry
                    .state
                    .compare_exchange(FREE, BUSY, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
        });
        match free {
            Some(entry) => break entry,
            None => chunk = chunk_at(&chunk.next),
        }
    };
    entry.key.store(key, Ordering::Relaxed);
    entry.len.store(len, Ordering::Relaxed);
    HELD[kind as usize].fetch_add(1, Ordering::Relaxed);
    entry.state.store(state(kind, slot), Ordering::Release);
}

/// Sets the length of an entry, if it still exists. Only the thread that has added it does so, and the key is not used
/// again.
pub(crate) fn set_len(kind: Kind, key: usize, len: usize, slot: u32) {
    let wanted = state(kind, slot);
    let entry = entries().find(|entry| {
        entry.state.load(Ordering::Acquire) == wanted && entry.key.load(Ordering::Relaxed) == key
    });
    if let Some(entry) = entry {
        entry.len.store(len, Ordering::Release);
    }
}

/// The first result of `f` (key, length, slot) over the entries of a kind.
pub(crate) fn find_map<R>(
    kind: Kind,
    mut f: impl FnMut(usize, usize, u32) -> Option<R>,
) -> Option<R> {
    entries().find_map(|entry| {
        let seen = entry.state.load(Ordering::Acquire);
        let (key, len) = (entry.key.load(Ordering::Relaxed), entry.len.load(Ordering::Acquire));
        (seen >> 32 == kind as u64 + 1)
            .then(|| f(key, len, (seen as u32).wrapping_sub(1)))
            .flatten()
    })
}

/// Sets the lengths of entries of a kind to the result of `f` (key, length, slot), if any. It may be called in a signal
/// handler.
pub(crate) fn set_lens(kind: Kind, mut f: impl FnMut(usize, usize, u32) -> Option<usize>) {
    for entry in entries() {
        let seen = entry.state.load(Ordering::Acquire);
        let (key, len) = (entry.key.load(Ordering::Relaxed), entry.len.load(Ordering::Acquire));
        if seen >> 32 == kind as u64 + 1
            && let Some(len) = f(key, len, (seen as u32).wrapping_sub(1))
        {
            entry.len.store(len, Ordering::Release);
        }
    }
}

/// Takes an entry that is in a given state. False: another thread has taken it.
fn take_entry(entry: &Entry, seen: u64) -> Option<Taken> {
    entry.state.compare_exchange(seen, BUSY, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    let taken = Taken {
        key: entry.key.swap(0, Ordering::Relaxed),
        len: entry.len.load(Ordering::Relaxed),
        slot: (seen as u32).wrapping_sub(1),
    };
    HELD[(seen >> 32) as usize - 1].fetch_sub(1, Ordering::Relaxed);
    entry.state.store(FREE, Ordering::Release);
    Some(taken)
}

/// Takes all entries of a kind for which `wanted` (key, length, slot).
pub(crate) fn take_all(kind: Kind, wanted: impl Fn(usize, usize, u32) -> bool) -> Vec<Taken> {
    let mut all = Vec::new();
    if HELD[kind as usize].load(Ordering::Relaxed) == 0 || forked::is_copy() {
        return all;
    }
    for entry in entries() {
        if let Some(taken) = take_if(entry, kind, &wanted) {
            all.push(taken);
        }
    }
    all
}

fn take_if(
    entry: &Entry,
    kind: Kind,
    wanted: &impl Fn(usize, usize, u32) -> bool,
) -> Option<Taken> {
    let seen = entry.state.load(Ordering::Acquire);
    let (key, len) = (entry.key.load(Ordering::Relaxed), entry.len.load(Ordering::Acquire));
    let slot = (seen as u32).wrapping_sub(1);
    if seen >> 32 != kind as u64 + 1 || !wanted(key, len, slot) {
        return None;
    }
    let taken = take_entry(entry, seen)?;
    if let Some(held) = held_by(taken.slot) {
        held.less(kind);
    }
    Some(taken)
}

/// Something ends: takes one entry for it, the running rank's if that has one.
pub(crate) fn take(kind: Kind, key: usize) -> Option<Taken> {
    if HELD[kind as usize].load(Ordering::Relaxed) == 0 || forked::is_copy() {
        return None;
    }
    let mine = owner();
    let own = |k: usize, _: usize, slot: u32| k == key && Some(slot) == mine;
    entries()
        .find_map(|entry| take_if(entry, kind, &own))
        .or_else(|| entries().find_map(|entry| take_if(entry, kind, &|k, _, _| k == key)))
}

/// The running rank holds something, if it did not before.
pub(crate) fn hold(kind: Kind, key: usize) {
    let Some(slot) = running().map(|slot| slot.id().0) else { return };
    let wanted = state(kind, slot);
    let is_known = entries().any(|entry| {
        entry.state.load(Ordering::Acquire) == wanted && entry.key.load(Ordering::Relaxed) == key
    });
    if !is_known {
        add(kind, key, 0, slot);
    }
}

/// The keys of what the rank of a slot holds of a kind.
pub(crate) fn keys_of(kind: Kind, slot: u32) -> Vec<usize> {
    let wanted = state(kind, slot);
    let of_slot = entries().filter(|entry| entry.state.load(Ordering::Acquire) == wanted);
    of_slot.map(|entry| entry.key.load(Ordering::Relaxed)).collect()
}

/// The rank of a slot continues to hold what it has of a kind, in another process.
pub(crate) fn move_out(kind: Kind, slot: u32) {
    let wanted = state(kind, slot);
    for entry in entries().filter(|entry| entry.state.load(Ordering::Acquire) == wanted) {
        let _ = take_entry(entry, wanted);
    }
}

/// A rank has ended: forgets what it holds.
pub(crate) fn forget_of(slot: u32) {
    for entry in entries() {
        let seen = entry.state.load(Ordering::Acquire);
        if seen > BUSY && seen as u32 == slot + 1 {
            let _ = take_entry(entry, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_taken_once_and_forgotten_with_its_slot() {
        // More than one chunk, of slots that no other test has.
        for key in 0..200 {
            add(Kind::Catalogue, 1 << 20 | key, 0, 7_000_000 + (key as u32 & 1));
        }
        assert_eq!(take(Kind::Catalogue, 1 << 20 | 2).map(|taken| taken.slot), Some(7_000_000));
        assert!(take(Kind::Catalogue, 1 << 20 | 2).is_none());
        assert!(take(Kind::Mapping, 1 << 20 | 4).is_none(), "another kind");
        forget_of(7_000_000);
        assert!(take(Kind::Catalogue, 1 << 20 | 4).is_none());
        let of_the_other = take_all(Kind::Catalogue, |_, _, slot| slot == 7_000_001);
        assert_eq!(of_the_other.len(), 100);
        // Two at once for the same key are two.
        add(Kind::Catalogue, 5, 0, 7_000_000);
        add(Kind::Catalogue, 5, 0, 7_000_001);
        assert!(take(Kind::Catalogue, 5).is_some());
        assert!(take(Kind::Catalogue, 5).is_some());
        assert!(take(Kind::Catalogue, 5).is_none());
    }
}
