//! Whether a static is a lock of the standard library that is locked.
//!
//! A guard refers to its lock, and lies on the stack of the rank that holds it: a `MutexGuard`, a
//! guard of an `RwLock`, the lock of a standard stream, whoever fills a `OnceLock`. The lock begins
//! with the word that its waiters wait for, so its state can be read where a word of the stack points
//! to. What else has such a value there (a counter that is 1 or 2, whose address the stack has) is
//! taken for a lock: a rank stays then, until the word is gone.

use std::sync::atomic::{AtomicU32, Ordering};

/// Of a mutex, or a `Once`: locked, and locked with others waiting.
const LOCKED: [u32; 2] = [1, 2];
/// Of a read-write lock: the number of readers, all bits of which mean a writer; the bits above say
/// that others wait.
const READERS: u32 = (1 << 30) - 1;
/// A read-write lock: its state, a word for writers, whether it is poisoned, and then, up to so many
/// bytes from its begin, what it protects. Bytes between are zero in a static.
const POISONED: usize = 8;
const TO_DATA: std::ops::RangeInclusive<usize> = POISONED + 1..=32;

/// Whether what begins at an address is locked, as far as its state tells.
///
/// # Safety
/// Four bytes are readable there.
pub(super) unsafe fn is_locked(address: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { state(address) }
        .is_some_and(|state| LOCKED.contains(&state) || matches!(state & READERS, 1 | 2 | READERS))
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
        && unsafe { state(address) }.is_some_and(|state| (1..READERS).contains(&(state & READERS)))
}

/// Whether a lock is locked, or has readers.
///
/// # Safety
/// As [`is_locked`].
pub(super) unsafe fn is_taken(lock: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { state(lock) }.is_some_and(|state| state & READERS != 0)
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
        let parts = || {
            let first = &raw const ONCE as usize;
            (first..first + size_of_val(&ONCE)).step_by(4)
        };
        // SAFETY: a static.
        let locked = || parts().filter(|at| unsafe { is_locked(*at) }).count();
        ONCE.get_or_init(|| {
            assert_eq!(locked(), 1);
            5
        });
        assert_eq!(locked(), 0);
    }
}
