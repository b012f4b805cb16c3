//! Wakers of ranks.
//!
//! A waker is just a rank's number: it needs no memory, and it means the same in every PE. `vrt`'s
//! own operations never clone it. Code that does (a tokio timer, a socket, a channel) waits for
//! something outside, so the number of live clones shows whether the rank is pinned.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::arena::{Arena, SlotHeader};
use crate::heap_word;

/// Number of live clones in this process, over all ranks; while it is zero tokio gets no turns.
static CLONES: AtomicI64 = AtomicI64::new(0);

/// Number of wakers of ranks that are held outside `vrt`.
pub fn foreign_wakers() -> i64 {
    CLONES.load(Ordering::Relaxed)
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
    // SAFETY: the functions of the table only look at the address, which stays mapped.
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
    count(slot, 1);
    RawWaker::new(slot, &VTABLE)
}

/// # Safety
/// As for [`clone`].
unsafe fn wake(slot: *const ()) {
    // SAFETY: the same contract.
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
    count(slot, -1);
}

fn count(slot: *const (), by: i64) {
    CLONES.fetch_add(by, Ordering::Relaxed);
    if let Some(slot) = header(slot) {
        // Released: who sees that there is none any more sees whom they have woken, too.
        slot.wakers.fetch_add(by as i32, Ordering::Release);
    }
}

fn header(slot: *const ()) -> Option<&'static SlotHeader> {
    // SAFETY: a slot header of the arena, or of an earlier one that lay there: memory of this one, from which atomics and
    // a number are read. A slot is not reused while wakers of its rank are alive (it is retired then).
    Arena::contains(slot as usize).then(|| unsafe { &*slot.cast::<SlotHeader>() })
}
