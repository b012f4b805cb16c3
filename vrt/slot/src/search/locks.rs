//! Whether a static is a lock of the standard library that is locked.
//!
//! A guard refers to its lock, and lies on the stack of the rank that holds it: a `MutexGuard`, a
//! guard of an `RwLock`, the lock of a standard stream, whoever fills a `OnceLock`. The lock begins
//! with the word that its waiters wait for, so its state can be read where a word of the stack points
//! to. What else has such a value there (a counter that is 1 or 2, whose address the stack has) is
//! taken for a lock: a rank stays then, until the word is gone.
//!
//! | lock | where the state is | held |
//! |---|---|---|
//! | `Mutex`, and with it `Barrier`, `mpsc`, standard input | its first word | locked; locked, and others wait |
//! | `RwLock` | its first word | readers or a writer, below the bits that say who waits |
//! | `Once`, and with it `OnceLock`, `LazyLock` | its word, to which whoever runs it refers | running; running, and others wait |
//! | `Condvar` | | never: who waits has given the mutex back |
//! | the lock of standard output and of standard error, which its thread may take again | the first word that says so | not 0 |
//!
//! A guard of `parking_lot`'s refers to its lock, too, where the program is not optimised; see [`Form`].
//!
//! Which values these are, another version of the standard library may say otherwise, so `vrt-core`
//! locks some of each kind when a PE begins, and [`know`]s. Until then, and where it could not find it
//! out, every word that is not 0 is held.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the words of the standard library's locks are while somebody has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockStates {
    /// A mutex: locked; locked, and others wait.
    pub mutex: [u32; 2],
    /// A `Once`: it runs; it runs, and others wait.
    pub once: [u32; 2],
    /// A read-write lock with one reader.
    pub reader: u32,
    /// A read-write lock with a writer, which has all bits that count readers; the others say who waits.
    pub writer: u32,
    /// The locks of standard output and of standard error: where each begins, and the word of it that is 0
    /// while nobody has it.
    pub streams: [(usize, usize); 2],
}

static STATES: OnceLock<LockStates> = OnceLock::new();

/// Tells what locks look like, if nobody has done so.
pub fn know(states: LockStates) {
    let _: &LockStates = STATES.get_or_init(|| states);
}

/// Whether it is known what locks look like.
pub fn is_known() -> bool {
    STATES.get().is_some()
}

/// A read-write lock: its state, a word for writers, whether it is poisoned, and then, up to so many
/// bytes from its begin, what it protects. Bytes between are zero in a static.
const POISONED: usize = 8;
const TO_DATA: std::ops::RangeInclusive<usize> = POISONED + 1..=32;

/// Whether what begins at an address is locked, as far as its state tells. Of many readers only
/// [`is_read_by`] tells.
///
/// # Safety
/// Four bytes are readable there.
pub unsafe fn is_locked(address: usize) -> bool {
    // SAFETY: as the caller promises.
    let Some(state) = (unsafe { state(address) }) else { return false };
    let Some(known) = STATES.get() else { return state != 0 };
    let of_rwlock = state & known.writer;
    let is_stream = |(lock, word): &(usize, usize)| {
        // SAFETY: a word of a lock that lives as long as the process.
        *lock == address && unsafe { self::state(*word) } != Some(0)
    };
    known.mutex.contains(&state)
        || known.once.contains(&state)
        || [known.reader, 2 * known.reader, known.writer].contains(&of_rwlock)
        || known.streams.iter().any(is_stream)
}

/// Whether it is a read-write lock with readers whose guard consists of these two words. A vector in a
/// cell that is filled once looks similar, but has an address where the lock has nothing.
///
/// # Safety
/// Memory is readable from there to `data`, if that is not far behind.
pub(super) unsafe fn is_read_by(data: usize, address: usize) -> bool {
    let to_data = data.wrapping_sub(address);
    // SAFETY: as the caller promises; others change it atomically, so these are only numbers.
    let byte = |i: usize| unsafe { ((address + i) as *const u8).read_volatile() };
    TO_DATA.contains(&to_data)
        && byte(POISONED) <= 1
        && (POISONED + 1..to_data.min(2 * POISONED)).all(|i| byte(i) == 0)
        // SAFETY: as above.
        && unsafe { state(address) }
            .is_some_and(|state| (1..readers()).contains(&(state & readers())))
}

/// Whether a lock is locked, or has readers.
///
/// # Safety
/// As [`is_locked`].
pub(super) unsafe fn is_taken(lock: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { state(lock) }.is_some_and(|state| state & readers() != 0)
}

/// What the program may lock, by its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A word, as the standard library's locks are.
    Word,
    /// A byte, of which the lowest bit says that it is locked: a mutex of `parking_lot`'s.
    Byte,
    /// 64 bits, of which the lower two say who waits, and the others who has it: a read-write lock of
    /// `parking_lot`'s.
    Wide,
}

impl Form {
    /// Of the lock that is the first argument of a function, by the name of that.
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
        // SAFETY: as the caller promises; others change it atomically, so these are only numbers.
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

/// A read-write lock of `parking_lot`'s, or what is not one: it would have more readers than any.
const MOST_READERS: u64 = 1 << 20;

/// Whether what begins at an address may be a lock of `parking_lot`'s that is taken: a mutex or what is done once,
/// with or without others that wait, or a read-write lock.
///
/// # Safety
/// Eight bytes are readable there.
pub(super) unsafe fn may_be_taken(address: usize) -> bool {
    const MUTEX: [u8; 2] = [1, 3];
    const ONCE: [u8; 2] = [4, 12];
    // SAFETY: as the caller promises; others change it atomically, so these are only numbers.
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
/// As [`is_locked`].
unsafe fn state(address: usize) -> Option<u32> {
    // SAFETY: as the caller promises; others change it atomically.
    address
        .is_multiple_of(align_of::<AtomicU32>())
        .then(|| unsafe { (*(address as *const AtomicU32)).load(Ordering::Relaxed) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::sync::{Mutex, OnceLock, RwLock};

    use super::*;

    /// What `vrt-core` finds out; see there.
    fn know_locks() {
        let (mutex, once) = ([1, 2], [1, 5]);
        know(LockStates { mutex, once, reader: 1, writer: (1 << 30) - 1, streams: [(0, 0); 2] });
    }

    static MUTEX: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    static LOCK: RwLock<u8> = RwLock::new(7);
    static ONCE: OnceLock<u64> = OnceLock::new();

    fn words<T>(of: &T) -> impl Iterator<Item = usize> {
        let first = std::ptr::from_ref(of).cast::<usize>();
        // SAFETY: inside the value.
        (0..size_of::<T>() / size_of::<usize>())
            .map(move |i| unsafe { first.add(i).read_volatile() })
    }

    /// It depends on how the standard library's locks are made.
    #[test]
    fn guards_refer_to_what_is_locked() {
        know_locks();
        let (mutex, lock) = (&raw const MUTEX as usize, &raw const LOCK as usize);
        // SAFETY: statics.
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
        // SAFETY: as above.
        assert!(unsafe { is_read_by(of_guard[0], of_guard[1]) }, "{of_guard:x?}");
        // SAFETY: as above.
        assert!(unsafe { is_taken(lock) && !is_taken(mutex) });
        drop(guards);
        assert!(!locked(mutex) && !locked(lock));
        // SAFETY: as above.
        assert!(unsafe { !is_taken(lock) });
        // SAFETY: as above.
        assert!(!unsafe { is_read_by(of_guard[0], of_guard[1]) });
    }

    #[test]
    fn a_vector_in_a_cell_is_not_taken_for_a_lock_that_is_read() {
        know_locks();
        static CELL: OnceLock<Vec<u64>> = OnceLock::new();
        CELL.get_or_init(|| Vec::with_capacity(160));
        let first = &raw const CELL as usize;
        // The vector's address and length, and the cell's own state, lie behind its capacity.
        for end in (first..first + size_of_val(&CELL)).step_by(8).skip(2) {
            // SAFETY: inside the static, which begins with the vector.
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
        // SAFETY: a static.
        let locked = || parts().filter(|at| unsafe { is_locked(*at) }).count();
        ONCE.get_or_init(|| {
            assert_eq!(locked(), 1);
            7
        });
        assert_eq!(locked(), 0);
    }
}
