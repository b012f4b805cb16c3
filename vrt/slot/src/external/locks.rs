//! Locks of pthread (and C11) that ranks have taken: mutexes, read-write locks, spin locks, streams.
//!
//! A rank that holds one is pinned: its waiters wait in this process. Waiting for a condition
//! releases a mutex and takes it again, so it changes nothing here.
//!
//! Taking an uncontended lock costs a few nanoseconds, so the accounting consists of a few plain
//! stores: a slot has a short list of the locks that its rank holds, which only the rank's thread
//! adds to. A table by address names the slot that last took a lock with such an address; through
//! it another rank or thread that releases a lock finds the list that contains it. Before a slot's
//! name there is overwritten, its lock is moved from its list to the register; so are locks for
//! which a full list has no room. Nothing is lost, and only such locks cost more.
//!
//! The lists are in memory that the PEs share, and addresses differ between them: a list is valid
//! only in the process that wrote it, which it names.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arena::SlotHeader;
use crate::heap_word::running;
use crate::held::Kind;
use crate::owner::held_by;
use crate::{forked, register};

const BUCKETS: usize = 1 << 12;

/// The slot, plus 1, that last took a lock of a bucket.
static LAST: [AtomicU32; BUCKETS] = [const { AtomicU32::new(0) }; BUCKETS];
/// This process.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Sets this process.
pub(super) fn begin() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

#[inline(always)]
fn this_process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

#[inline(always)]
fn bucket(address: usize) -> usize {
    (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - BUCKETS.ilog2())
}

/// The call returns 0 if it has taken a lock (or `EOWNERDEAD`, for one whose owner has died).
#[inline(always)]
pub(crate) fn locks<T>(lock: *mut T, call: impl FnOnce() -> c_int) -> c_int {
    let status = call();
    if matches!(status, 0 | libc::EOWNERDEAD)
        && let Some(slot) = running()
    {
        taken(slot, lock as usize);
    }
    status
}

/// The call takes a lock.
pub(crate) fn locks_surely<T>(lock: *mut T, call: impl FnOnce()) {
    locks(lock, || {
        call();
        0
    });
}

/// The call releases a lock, and returns 0 if it was locked.
#[inline(always)]
pub(crate) fn unlocks<T>(lock: *mut T, call: impl FnOnce() -> c_int) -> c_int {
    let address = lock as usize;
    let slot = running();
    // Before, because whoever waits for it may take it at once.
    let held_here = slot.is_some_and(|slot| slot.held.locks.remove(address));
    if !held_here {
        given_back(address);
    }
    let status = call();
    // It was not the caller's.
    if status != 0
        && held_here
        && let Some(slot) = slot
    {
        taken(slot, address);
    }
    status
}

/// The call releases a lock.
pub(crate) fn unlocks_surely<T>(lock: *mut T, call: impl FnOnce()) {
    unlocks(lock, || {
        call();
        0
    });
}

#[inline(always)]
fn taken(slot: &SlotHeader, address: usize) {
    let locks = &slot.held.locks;
    let Some(place) = locks.free_place() else {
        return register::add(Kind::Lock, address, 0, slot.id().0);
    };
    let name = slot.id().0 + 1;
    let last = &LAST[bucket(address)];
    let before = last.load(Ordering::Relaxed);
    if before != name {
        if before != 0 {
            make_room(before - 1, bucket(address));
        }
        last.store(name, Ordering::Relaxed);
    }
    locks.put(place, address, this_process());
}

/// Moves the locks of a bucket that a slot's rank holds to the register.
#[cold]
fn make_room(slot: u32, wanted: usize) {
    let Some(locks) = held_by(slot).map(|held| &held.locks) else { return };
    if !locks.are_of(this_process()) || forked::is_copy() {
        return;
    }
    for lock in &locks.addresses {
        let address = lock.load(Ordering::Acquire);
        if address != 0 && bucket(address) == wanted {
            register::add(Kind::Lock, address, 0, slot);
            lock.store(0, Ordering::Release);
        }
    }
}

/// A lock that is not in the running rank's list has been released.
#[inline]
fn given_back(address: usize) {
    let last = LAST[bucket(address)].load(Ordering::Relaxed);
    let others = last.checked_sub(1).and_then(held_by).map(|held| &held.locks);
    let was_there = others.is_some_and(|locks| {
        locks.are_of(this_process()) && !forked::is_copy() && locks.remove(address)
    });
    if !was_there {
        register::take(Kind::Lock, address);
    }
}
