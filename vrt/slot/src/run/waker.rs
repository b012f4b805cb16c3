//! Wakers of ranks.
//!
//! A waker is just a rank's number: it needs no memory, and it means the same in every PE. `vrt`'s
//! own operations never clone it. Code that does (a tokio timer, a socket, a channel) waits for
//! something outside, so the number of live clones shows whether the rank is pinned. While it is, it stays
//! on its PE, so a PE's number of such ranks changes only with the first and the last clone of one.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::arena::{Arena, SlotHeader};
use crate::heap_word;

/// Numbers of PEs that are told apart here: a process that runs more of them, as threads, may hold some to wait for
/// something outside that do not.
const PES: usize = 1024;

/// Number of ranks with live clones, by the PE that they are on.
static PINNED: [AtomicU32; PES] = [const { AtomicU32::new(0) }; PES];

/// In [`SlotHeader::wakers`]: its rank has ended, and is not counted any more.
const ENDED: u32 = 1 << 31;

/// How many ranks of a PE of this process, by its unique number, may be woken by something outside `vrt` that has their
/// wakers; while there are none tokio gets no turns. Who sees that there are none sees whom they have woken, too, if it
/// is an acquiring look.
pub fn wait_for_outside(pe: u32) -> &'static AtomicU32 {
    &PINNED[pe as usize % PES]
}

/// A rank has ended, or is abandoned: whoever still has wakers of it wakes nobody. Returns whether there are any.
pub fn give_up_wakers(slot: &SlotHeader) -> bool {
    let owner = slot.owner.load(Ordering::Relaxed);
    let give_up = |wakers: u32| (wakers != 0).then_some(wakers | ENDED);
    match slot.wakers.fetch_update(Ordering::AcqRel, Ordering::Relaxed, give_up) {
        Ok(wakers) if wakers & ENDED == 0 => uncount(owner),
        Ok(_) => {}
        Err(_) => return false,
    }
    true
}

/// Whether somebody holds wakers of a rank, which may have ended.
pub fn has_wakers(slot: &SlotHeader) -> bool {
    slot.wakers.load(Ordering::Acquire) & !ENDED != 0
}

fn uncount(pe: u32) {
    PINNED[pe as usize % PES].fetch_sub(1, Ordering::Release);
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_clone);

/// A waker that is not counted, for use only as a reference.
pub struct RankWaker(ManuallyDrop<Waker>);

impl Deref for RankWaker {
    type Target = Waker;

    #[inline(always)]
    fn deref(&self) -> &Waker {
        &self.0
    }
}

/// The waker of the rank that runs on this thread.
#[inline]
pub fn rank_waker() -> RankWaker {
    let slot = heap_word::heap_in_use();
    // SAFETY: the functions of the table take any address, and keep no state but counters: `header`.
    RankWaker(ManuallyDrop::new(unsafe { Waker::new(slot.cast_const().cast(), &VTABLE) }))
}

/// Whether a waker is one of these.
#[inline]
pub(crate) fn is_of_rank(waker: &Waker) -> bool {
    std::ptr::eq(waker.vtable(), &VTABLE)
}

/// # Safety
/// The slot is that of a waker of this table, as for all of its functions.
unsafe fn clone(slot: *const ()) -> RawWaker {
    if let Some(header) = header(slot) {
        // The first one: cloned by the rank itself, on its PE.
        if header.wakers.fetch_add(1, Ordering::Relaxed) == 0 {
            let owner = header.owner.load(Ordering::Relaxed);
            PINNED[owner as usize % PES].fetch_add(1, Ordering::Relaxed);
        }
    }
    RawWaker::new(slot, &VTABLE)
}

/// # Safety
/// As for [`clone`].
unsafe fn wake(slot: *const ()) {
    // SAFETY: the slot of a waker of this table, says the caller.
    unsafe {
        wake_by_ref(slot);
        drop_clone(slot);
    }
}

/// # Safety
/// As for [`clone`].
unsafe fn wake_by_ref(slot: *const ()) {
    if let (Some(slot), Some(runtime)) = (header(slot), crate::runtime::RUNTIME.get()) {
        (runtime.wake)(slot.owner.load(Ordering::Acquire), slot.rank.get());
    }
}

/// # Safety
/// As for [`clone`].
unsafe fn drop_clone(slot: *const ()) {
    if let Some(slot) = header(slot) {
        // It cannot move before the last one is gone.
        let owner = slot.owner.load(Ordering::Relaxed);
        // Released, as in `uncount`: who sees that there is none any more sees whom they have woken, too.
        if slot.wakers.fetch_sub(1, Ordering::Release) == 1 {
            uncount(owner);
        }
    }
}

fn header(slot: *const ()) -> Option<&'static SlotHeader> {
    // SAFETY: S1: `rank_waker` has taken it from this arena, or an earlier one that lay there: then it is memory of this
    // one, of which atomics and a number are read. A slot is retired while wakers of its rank are alive.
    Arena::contains(slot as usize).then(|| unsafe { &*slot.cast::<SlotHeader>() })
}
