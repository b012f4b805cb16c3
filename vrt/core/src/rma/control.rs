//! The words by which a rank's part of a window is locked. They lie in the rank's heap; other ranks of its node change
//! them by atomics, those of other nodes by messages.
//!
//! `lock`: the number of ranks that hold the lock, or `EXCLUSIVE`; and `WANTED`, set by a rank that
//! waits for exclusive access, so that no more ranks get shared access meanwhile.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "there are fewer who share a lock than bits for them"
    )
)]

use std::sync::atomic::{AtomicU32, Ordering};

/// How a rank's memory is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum LockKind {
    /// Together with other ranks that lock it the same way.
    Shared,
    /// Exclusively.
    Exclusive,
}

/// The words of a rank's window that other ranks change, besides its memory.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Control {
    /// Ranks that hold the lock, and the two bits below.
    lock: AtomicU32,
    /// Held while several elements are folded, or one that is not a word.
    elements: AtomicU32,
}

/// One rank has the lock alone.
const EXCLUSIVE: u32 = 1 << 31;
/// Somebody waits for that; nobody else gets a shared lock meanwhile.
const WANTED: u32 = 1 << 30;

/// Held while elements are folded.
pub(crate) struct ElementLock<'a>(&'a AtomicU32);

impl Drop for ElementLock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Control {
    /// Held while elements are folded, never across a suspension.
    pub(crate) fn lock_elements(&self) -> ElementLock<'_> {
        /// After so many looks the core is given away: whoever has the lock may wait for it.
        const LOOKS: u32 = 100;
        let mut looks = 0;
        while self.elements.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            looks += 1;
            match looks {
                ..LOOKS => std::hint::spin_loop(),
                _ => std::thread::yield_now(),
            }
        }
        ElementLock(&self.elements)
    }

    /// Takes the lock if possible, and returns whether it did; never waits. After an exclusive lock
    /// has been refused, no rank gets a shared one until one has been taken exclusively.
    pub fn try_lock(&self, kind: LockKind) -> bool {
        let change = |word: u32| match kind {
            LockKind::Exclusive if word & !WANTED == 0 => Some(EXCLUSIVE),
            LockKind::Exclusive => Some(word | WANTED),
            LockKind::Shared if word & (EXCLUSIVE | WANTED) == 0 => Some(word + 1),
            LockKind::Shared => None,
        };
        match self.lock.fetch_update(Ordering::AcqRel, Ordering::Relaxed, change) {
            Ok(word) => kind == LockKind::Shared || word & !WANTED == 0,
            Err(_) => false,
        }
    }

    /// Releases a lock of the kind that the caller holds.
    pub fn unlock(&self) {
        let release =
            |word: u32| Some(if word & EXCLUSIVE != 0 { word & !EXCLUSIVE } else { word - 1 });
        let _ = self.lock.fetch_update(Ordering::AcqRel, Ordering::Relaxed, release);
    }
}
