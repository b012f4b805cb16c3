//! Determines the contents of the standard library's locks while they are held, by locking some.
//!
//! The words of a lock show whether it is held, by numbers that another version of the standard library may choose
//! differently. So each kind of lock is taken here, and requested once more by the same thread, which then calls
//! `futex` like any waiting thread. There ([`is_answered`]) the lock's words are recorded, overwritten with those of a
//! free lock, and the wait ends at once: no other thread is needed, and it takes microseconds.
//!
//! | lock | is taken by | is requested by |
//! |---|---|---|
//! | `Mutex` | `lock` | `lock` |
//! | `RwLock` | `read`, twice; `write` | `write`; `read`, `write` |
//! | `Once` | `call_once` | `call_once` inside of it |
//! | standard output, standard error | `lock` | the same thread may take it again |
//!
//! If something differs from how the standard library's futex-based locks have always worked, nothing is known about
//! them.

use std::cell::Cell;
use std::io;
use std::mem::{self, size_of};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, RwLock};

use vrt_slot::search::LockStates;

/// Words of the longest lock that is looked at.
const WORDS: usize = 4;
/// Waits of one call after which the standard library does not wait as it is expected to.
const MOST_WAITS: u32 = 100;

/// The words of a lock; 0 behind its end.
type Words = [u32; WORDS];

/// What is protected. With it no lock here has bytes that mean nothing.
type Protected = [u8; 3];
const PROTECTED: Protected = [0; 3];

/// A lock that the calling thread is about to wait for.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    lock: &'a [AtomicU32],
    /// Its words when the wait ends.
    then: Words,
    /// Its words while the thread waited.
    seen: Option<Words>,
    waits: u32,
}

thread_local! {
    static WANTED: Cell<Option<Wanted<'static>>> = const { Cell::new(None) };
}

/// Whether the calling thread waits only for its lock to be looked at.
pub(super) fn is_answered() -> bool {
    let Some(mut wanted) = WANTED.get() else { return false };
    wanted.seen.get_or_insert(words(wanted.lock));
    wanted.waits += 1;
    WANTED.set(Some(wanted));
    for (word, then) in wanted.lock.iter().zip(wanted.then) {
        word.store(then, Ordering::SeqCst);
    }
    // The kernel's wait would never end.
    assert!(wanted.waits < MOST_WAITS, "the standard library waits for its locks in another way");
    true
}

/// A lock as words.
fn lock_of<T>(lock: &T) -> &[AtomicU32] {
    let count = (size_of::<T>() / size_of::<u32>()).min(WORDS);
    // SAFETY: locks are written while they are shared. Those that are passed are a `Once`, of one word, or locks of
    // `Protected`, which fills the place behind the byte for poison: aligned as a word, and without padding.
    unsafe { std::slice::from_raw_parts(ptr::from_ref(lock).cast(), count) }
}

fn words(lock: &[AtomicU32]) -> Words {
    let mut words = [0; WORDS];
    for (word, of_lock) in words.iter_mut().zip(lock) {
        *word = of_lock.load(Ordering::SeqCst);
    }
    words
}

/// The words of a lock while the thread waits in `want`, after which they are `then`.
fn while_wanted<T>(lock: &T, then: Words, want: impl FnOnce()) -> Option<Words> {
    let lock = lock_of(lock);
    // SAFETY: `WANTED` is emptied below, before the borrow ends; `want` does not unwind.
    let lock = unsafe { mem::transmute::<&[AtomicU32], &'static [AtomicU32]>(lock) };
    WANTED.set(Some(Wanted { lock, then, seen: None, waits: 0 }));
    want();
    WANTED.take()?.seen
}

/// The words of the standard library's locks while somebody has them, if they are what is expected: a word that
/// is 0 in a lock that nobody has.
pub(super) fn find() -> Option<LockStates> {
    let (reader, writer) = rwlock()?;
    let streams =
        [stream(&io::stdout(), io::Stdout::lock)?, stream(&io::stderr(), io::Stderr::lock)?];
    Some(LockStates { mutex: mutex()?, once: once()?, reader, writer, streams })
}

fn mutex() -> Option<[u32; 2]> {
    let lock = Mutex::new(PROTECTED);
    let free = words(lock_of(&lock));
    let guard = lock.lock();
    let locked = words(lock_of(&lock));
    let wanted = while_wanted(&lock, free, || drop(lock.lock()))?;
    mem::forget(guard);
    (free[0] == 0 && locked[0] != 0 && wanted[0] != 0).then_some([locked[0], wanted[0]])
}

/// A reader, and a writer.
fn rwlock() -> Option<(u32, u32)> {
    let new = || RwLock::new(PROTECTED);
    let state = |lock: &RwLock<Protected>| words(lock_of(lock))[0];
    let free = words(lock_of(&new()));
    let (read, written) = (new(), new());
    let write = |lock: &RwLock<Protected>| drop(lock.write());
    // Of none of these is unlocked what the other one has written.
    mem::forget(read.read());
    let one = state(&read);
    mem::forget(read.read());
    let two = state(&read);
    let two_wanted = while_wanted(&read, free, || write(&read))?[0];
    mem::forget(written.write());
    let writer = state(&written);
    let to_read = while_wanted(&written, free, || drop(written.read()))?[0];
    mem::forget(written.write());
    let to_write = while_wanted(&written, free, || write(&written))?[0];
    let is_expected = free[0] == 0
        && one != 0
        && two == 2 * one
        && writer & (one | two) == one | two
        && two_wanted & writer == two
        && to_read & writer == writer
        && to_write & writer == writer;
    is_expected.then_some((one, writer))
}

fn once() -> Option<[u32; 2]> {
    let (over, once) = (Once::new(), Once::new());
    over.call_once(|| {});
    let over = words(lock_of(&over));
    let (mut runs, mut wanted) = (0, None);
    once.call_once(|| {
        runs = words(lock_of(&once))[0];
        wanted = while_wanted(&once, over, || once.call_once(|| {}));
    });
    let wanted = wanted?[0];
    (over[0] == 0 && runs != 0 && wanted != 0).then_some([runs, wanted])
}

/// Where a stream's lock is, and the word of it that is 0 while nobody has it.
fn stream<'a, S, G>(stream: &'a S, lock: impl Fn(&'a S) -> G) -> Option<(usize, usize)> {
    if size_of::<S>() != size_of::<usize>() {
        return None;
    }
    // SAFETY: `stdout` and `stderr` give handles, which refer to what they are of; with this size they are a reference.
    let at = unsafe { ptr::from_ref(stream).cast::<usize>().read() };
    // SAFETY: such a lock has an owner of 64 bits, a count and a word that is waited for, and stays as long as the process.
    let words_of_lock = unsafe { &*(at as *const [AtomicU32; WORDS]) };
    let mut held = words(words_of_lock);
    // Somebody may have it for long, as those do who print a lot: then it looks so.
    if held == [0; WORDS] {
        let guard = lock(stream);
        held = words(words_of_lock);
        drop(guard);
    }
    let word = held.iter().position(|word| *word != 0)?;
    Some((at, at + word * size_of::<u32>()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::sync::OnceLock;
    use std::thread;

    use super::*;
    use crate::blocking::Futexes;
    use crate::pe::Locks;
    use vrt_slot::search;

    /// The toolchain that compiles the test, for who reads that it is not known.
    fn toolchain() -> String {
        let version = std::process::Command::new("rustc").arg("-V").output();
        version.map_or_else(|e| e.to_string(), |out| String::from_utf8_lossy(&out.stdout).into())
    }

    #[test]
    fn the_standard_library_is_known() {
        let states = find();
        assert!(
            states.is_some(),
            "vrt does not know the locks of this standard library: {}",
            toolchain()
        );
    }

    /// A thread that has the lock of a stream for long is not waited for.
    #[test]
    fn streams_that_are_held_are_known() {
        let before = find();
        let held = io::stderr().lock();
        let while_held = thread::spawn(find).join().unwrap();
        assert_eq!(while_held.map(|states| states.streams[1]), before.map(|of| of.streams[1]));
        drop(held);
    }

    /// Whether somebody has a lock. Its state is its first word.
    fn is_locked<T>(lock: &T) -> bool {
        Futexes.begin();
        assert!(search::is_known());
        // SAFETY: a lock has four bytes.
        unsafe { search::is_locked(ptr::from_ref(lock).addr()) }
    }

    /// Whether somebody fills a cell. Its state may be any word of it; what it is filled with is 0.
    fn is_being_filled<T>(cell: &T) -> bool {
        Futexes.begin();
        let first = ptr::from_ref(cell).addr();
        // SAFETY: four bytes of the cell.
        (first..first + size_of::<T>()).step_by(4).any(|at| unsafe { search::is_locked(at) })
    }

    /// Waits until the words of a lock change, as another thread begins to wait for it.
    fn until_changed<T>(lock: &T, from: Words) {
        while words(lock_of(lock)) == from {
            thread::yield_now();
        }
    }

    /// A lock that `take` takes is held until its guard is gone, with nobody who waits, and with a thread that
    /// waits for it.
    fn holds<'a, T: Sync, G: 'a, W>(
        lock: &'a T,
        take: impl Fn(&'a T) -> G,
        want: impl Fn(&'a T) -> W + Sync,
    ) {
        assert!(!is_locked(lock), "nobody has it");
        let guard = take(lock);
        assert!(is_locked(lock), "nobody waits");
        let before = words(lock_of(lock));
        thread::scope(|scope| {
            scope.spawn(|| drop(want(lock)));
            until_changed(lock, before);
            assert!(is_locked(lock), "somebody waits");
            drop(guard);
        });
        assert!(!is_locked(lock), "nobody has it any more");
    }

    #[test]
    fn mutexes_are_held() {
        holds(&Mutex::new(PROTECTED), |lock| lock.lock().unwrap(), |lock| lock.lock().unwrap());
        // Whatever they protect, their state is their first word.
        fn first<T>(of: T) {
            let mutex = Mutex::new(of);
            let guard = mutex.lock().unwrap();
            // SAFETY: a lock has four bytes.
            assert!(unsafe { search::is_locked((&raw const mutex).addr()) });
            drop(guard);
            let lock = RwLock::new(mutex.into_inner().unwrap());
            let guard = lock.write().unwrap();
            // SAFETY: a lock has four bytes.
            assert!(unsafe { search::is_locked((&raw const lock).addr()) });
            drop(guard);
        }
        first(());
        first(0u8);
        first([0u64; 5]);
        first(0u128);
        first(vec![String::new()]);
    }

    #[test]
    fn poisoned_locks_are_held_by_who_has_them() {
        fn poison(call: impl FnOnce() + Send) {
            thread::scope(|scope| assert!(scope.spawn(call).join().is_err()));
        }
        let mutex = Mutex::new(PROTECTED);
        poison(|| {
            let _guard = mutex.lock().unwrap();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(!is_locked(&mutex));
        let guard = mutex.lock().unwrap_err();
        assert!(is_locked(&mutex));
        drop(guard);
        let once = Once::new();
        poison(|| once.call_once(|| std::panic::resume_unwind(Box::new(()))));
        once.call_once_force(|_| assert!(is_locked(&once)));
        assert!(!is_locked(&once));
    }

    #[test]
    fn read_write_locks_are_held() {
        let new = || RwLock::new(PROTECTED);
        holds(&new(), |lock| lock.read().unwrap(), |lock| lock.write().unwrap());
        holds(&new(), |lock| [0; 2].map(|_| lock.read().unwrap()), |lock| lock.write().unwrap());
        holds(&new(), |lock| lock.write().unwrap(), |lock| lock.write().unwrap());
        holds(&new(), |lock| lock.write().unwrap(), |lock| lock.read().unwrap());
    }

    /// A cell is held by who fills it, with nobody who waits, and with a thread that waits for it. `fill` calls
    /// what it is given as its cell is being filled.
    fn fills<T: Sync>(cell: &'static T, fill: impl Fn(&'static T, &dyn Fn()) + Sync) {
        assert!(!is_being_filled(cell), "nobody fills it");
        thread::scope(|scope| {
            fill(cell, &|| {
                assert!(is_being_filled(cell), "nobody waits");
                let before = words(lock_of(cell));
                scope.spawn(|| fill(cell, &|| unreachable!("it is being filled")));
                until_changed(cell, before);
                assert!(is_being_filled(cell), "somebody waits");
            });
        });
        assert!(!is_being_filled(cell), "it is full");
    }

    #[test]
    fn cells_are_held_by_who_fills_them() {
        static ONCE: Once = Once::new();
        static CELL: OnceLock<u64> = OnceLock::new();
        static SMALL: OnceLock<u8> = OnceLock::new();
        fills(&ONCE, |once, run| once.call_once(run));
        fills(&CELL, |cell, run| _ = cell.get_or_init(|| filled(run)));
        fills(&SMALL, |cell, run| _ = cell.get_or_init(|| filled(run) as u8));
    }

    fn filled(run: &dyn Fn()) -> u64 {
        run();
        0
    }
}
