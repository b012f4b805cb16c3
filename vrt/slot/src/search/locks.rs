//! Whether a static is a locked lock of the standard library.
//!
//! A guard refers to its lock, and lies on the stack of the rank that holds it: a `MutexGuard`, a guard of an `RwLock`,
//! the lock of a standard stream, the state of code that fills a `OnceLock`. The lock begins with the word that its
//! waiters wait for, so its state can be read where a word of the stack points to. Anything else with such a value
//! there (a counter that is 1 or 2, whose address is on the stack) is taken for a lock: a rank stays then, until the
//! word is gone.
//!
//! | lock | position of the state | held |
//! |---|---|---|
//! | `Mutex`, and with it `Barrier`, `mpsc`, standard input | its first word | locked; locked, with waiters |
//! | `RwLock` | its first word | readers or a writer, below the bits for waiters |
//! | `Once`, and with it `OnceLock`, `LazyLock` | its word, to which the code that runs it refers | running; running, with waiters |
//! | `Condvar` | | never: a waiter has released the mutex |
//! | the lock of standard output and of standard error, which its thread may take again | the first word that shows it | not 0 |
//!
//! A guard of `parking_lot` refers to its lock, too, if the program is not optimised; see [`Form`].
//!
//! These values may differ in another version of the standard library, so `vrt-core` locks some of each kind when a PE
//! begins, and calls [`know`]. Until then, and if it could not determine the values, every word that is not 0 counts as
//! held.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The values of the standard library's locks while they are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockStates {
    /// A mutex: locked; locked, with waiters.
    pub mutex: [u32; 2],
    /// A `Once`: it runs; it runs, with waiters.
    pub once: [u32; 2],
    /// A read-write lock with one reader.
    pub reader: u32,
    /// A read-write lock with a writer: all bits that count readers are set; the other bits are for waiters.
    pub writer: u32,
    /// The locks of standard output and of standard error: the address of each, and of its word that is 0 while it is
    /// free.
    pub streams: [(usize, usize); 2],
}

static STATES: OnceLock<LockStates> = OnceLock::new();

/// Sets the values of held locks, if they are not known yet.
pub fn know(states: LockStates) {
    let _: &LockStates = STATES.get_or_init(|| states);
}

/// Whether the values of held locks are known.
pub fn is_known() -> bool {
    STATES.get().is_some()
}

/// A read-write lock: its state, a word for writers, whether it is poisoned, and then, within this many bytes from its
/// beginning, what it protects. Bytes in between are zero in a static.
const POISONED: usize = 8;
const TO_DATA: std::ops::RangeInclusive<usize> = POISONED + 1..=32;

/// Whether the lock at an address is locked, according to its state. If it has many readers, only [`is_read_by`] can
/// tell.
///
/// # Safety
/// Four bytes are readable there.
pub unsafe fn is_locked(address: usize) -> bool {
    // SAFETY: readable, says the caller.
    let Some(state) = (unsafe { state(address) }) else { return false };
    let Some(known) = STATES.get() else { return state != 0 };
    let of_rwlock = state & known.writer;
    let is_stream = |(lock, word): &(usize, usize)| {
        // SAFETY: a word of a standard stream's lock, which lives as long as the process: `know`.
        *lock == address && unsafe { self::state(*word) } != Some(0)
    };
    known.mutex.contains(&state)
        || known.once.contains(&state)
        || [known.reader, 2 * known.reader, known.writer].contains(&of_rwlock)
        || known.streams.iter().any(is_stream)
}

/// Whether it is a read-write lock with readers whose guard consists of these two words. A vector in a once-initialised
/// cell looks similar, but has an address where the lock has nothing.
///
/// # Safety
/// Memory is readable from there to `data`, if that is not far away.
pub(super) unsafe fn is_read_by(data: usize, address: usize) -> bool {
    let to_data = data.wrapping_sub(address);
    // SAFETY: `i` is less than `to_data`, which is near, and all up to there is readable, says the caller; R3.
    let byte = |i: usize| unsafe { ((address + i) as *const u8).read_volatile() };
    TO_DATA.contains(&to_data)
        && byte(POISONED) <= 1
        && (POISONED + 1..to_data.min(2 * POISONED)).all(|i| byte(i) == 0)
        // SAFETY: readable, says the caller.
        && unsafe { state(address) }
            .is_some_and(|state| (1..readers()).contains(&(state & readers())))
}

/// Whether a lock is locked, or has readers.
///
/// # Safety
/// As for [`is_locked`].
pub(super) unsafe fn is_taken(lock: usize) -> bool {
    // SAFETY: readable, says the caller.
    unsafe { state(lock) }.is_some_and(|state| state & readers() != 0)
}

/// The forms of locks that the program's code may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A word, like the standard library's locks.
    Word,
    /// A byte whose lowest bit means locked: a mutex of `parking_lot`.
    Byte,
    /// 64 bits, the lower two of which are for waiters, and the others for holders: a read-write lock of `parking_lot`.
    Wide,
}

impl Form {
    /// The form of the lock that is the first argument of a function, by the function's name.
    pub(super) fn of_argument(function: &str) -> Option<Form> {
        let is_method = |of: &str| function.contains(of) && function.contains("_slow");
        if is_method("parking_lot::raw_mutex::RawMutex") {
            Some(Form::Byte)
        } else {
            is_method("parking_lot::raw_rwlock::RawRwLock").then_some(Form::Wide)
        }
    }

    /// Whether a lock of this form is taken.
    ///
    /// # Safety
    /// It is readable.
    pub(super) unsafe fn is_taken(self, lock: usize) -> bool {
        // SAFETY: readable, says the caller; R3.
        unsafe {
            match self {
                Form::Word => is_taken(lock),
                Form::Byte => (lock as *const u8).read_volatile() & 1 != 0,
                Form::Wide => {
                    lock.is_multiple_of(align_of::<u64>())
                        && (lock as *const u64).read_volatile() & !3 != 0
                }
            }
        }
    }
}

/// Distinguishes a read-write lock of `parking_lot` from other data, which would have more readers than any lock.
const MOST_READERS: u64 = 1 << 20;

/// Whether an address may be that of a taken lock of `parking_lot`: a mutex or a once-cell, with or without waiters, or
/// a read-write lock.
///
/// # Safety
/// Eight bytes are readable there.
pub(super) unsafe fn may_be_taken(address: usize) -> bool {
    const MUTEX: [u8; 2] = [1, 3];
    const ONCE: [u8; 2] = [4, 12];
    // SAFETY: eight bytes are readable, says the caller; R3.
    unsafe {
        let byte = (address as *const u8).read_volatile();
        let is_wide = address.is_multiple_of(align_of::<u64>()) && {
            let state = (address as *const u64).read_volatile();
            (8..MOST_READERS).contains(&state)
        };
        MUTEX.contains(&byte) || ONCE.contains(&byte) || is_wide
    }
}

/// The bits that count the readers of a read-write lock.
fn readers() -> u32 {
    STATES.get().map_or(u32::MAX, |known| known.writer)
}

/// # Safety
/// As for [`is_locked`].
unsafe fn state(address: usize) -> Option<u32> {
    // SAFETY: four bytes are readable, says the caller, and aligned; R3.
    address
        .is_multiple_of(align_of::<AtomicU32>())
        .then(|| unsafe { (*(address as *const AtomicU32)).load(Ordering::Relaxed) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::sync::{Mutex, OnceLock, RwLock};

    use super::*;

    /// Determines what `vrt-core` determines in a job; see there.
    fn know_locks() {
        let (mutex, once) = ([1, 2], [1, 5]);
        know(LockStates { mutex, once, reader: 1, writer: (1 << 30) - 1, streams: [(0, 0); 2] });
    }

    static MUTEX: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    static LOCK: RwLock<u8> = RwLock::new(7);
    static ONCE: OnceLock<u64> = OnceLock::new();

    fn words<T>(of: &T) -> impl Iterator<Item = usize> {
        let first = std::ptr::from_ref(of).cast::<usize>();
        // SAFETY: words of the value.
        (0..size_of::<T>() / size_of::<usize>())
            .map(move |i| unsafe { first.add(i).read_volatile() })
    }

    /// Depends on the implementation of the standard library's locks.
    #[test]
    fn guards_refer_to_what_is_locked() {
        know_locks();
        let (mutex, lock) = (&raw const MUTEX as usize, &raw const LOCK as usize);
        // SAFETY: it is called with the addresses of two statics.
        let locked = |at| unsafe { is_locked(at) };
        assert!(!locked(mutex) && !locked(lock));
        let guard = MUTEX.lock().unwrap();
        assert!(words(&guard).any(|word| word == mutex) && locked(mutex));
        drop(guard);
        let guard = LOCK.write().unwrap();
        assert!(words(&guard).any(|word| word == lock) && locked(lock));
        drop(guard);
        let guards: Vec<_> = (0..5).map(|_| LOCK.read().unwrap()).collect();
        let of_guard: Vec<usize> = words(&guards[0]).collect();
        // SAFETY: addresses of the two statics, and words of a guard, which refer to one of them.
        let states =
            || unsafe { (is_read_by(of_guard[0], of_guard[1]), is_taken(lock), is_taken(mutex)) };
        assert_eq!(states(), (true, true, false), "{of_guard:x?}");
        drop(guards);
        assert!(!locked(mutex) && !locked(lock));
        assert_eq!(states(), (false, false, false));
    }

    #[test]
    fn a_vector_in_a_cell_is_not_taken_for_a_lock_that_is_read() {
        know_locks();
        static CELL: OnceLock<Vec<u64>> = OnceLock::new();
        CELL.get_or_init(|| Vec::with_capacity(160));
        let first = &raw const CELL as usize;
        // The vector's address and length, and the cell's own state, lie behind its capacity.
        for end in (first..first + size_of_val(&CELL)).step_by(8).skip(2) {
            // SAFETY: both addresses are inside the static.
            assert!(!unsafe { is_read_by(end, first) }, "{} bytes", end - first);
        }
    }

    #[test]
    fn who_fills_a_cell_has_it_locked() {
        know_locks();
        let parts = || {
            let first = &raw const ONCE as usize;
            (first..first + size_of_val(&ONCE)).step_by(4)
        };
        // SAFETY: four bytes inside the static.
        let locked = || parts().filter(|at| unsafe { is_locked(*at) }).count();
        ONCE.get_or_init(|| {
            assert_eq!(locked(), 1);
            7
        });
        assert_eq!(locked(), 0);
    }
}
