//! For which rank the calling thread works, and so whose is what it creates.

use std::cell::Cell;

use crate::arena::{Arena, SlotHeader, SlotId};
use crate::heap_word::running;
use crate::held::Held;

/// The owner of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// None that is known here.
    Unknown,
    /// The PE's tokio runtime.
    Tokio,
    /// The rank in a slot that has started it, or has started the thread that did.
    Rank(u32),
}

thread_local! {
    static WHOSE: Cell<Whose> = const { Cell::new(Whose::Unknown) };
}

/// The slot of the rank that has started this thread, directly or through other threads.
pub(crate) fn starter() -> Option<u32> {
    match WHOSE.get() {
        Whose::Rank(slot) => Some(slot),
        Whose::Unknown | Whose::Tokio => None,
    }
}

/// The slot's header of the rank that has started this thread, directly or through other threads. It stays mapped, and
/// the rank does not move while the thread runs.
pub fn header_of_starter() -> Option<*mut SlotHeader> {
    Some(Arena::current()?.header(SlotId(starter()?)))
}

/// Whether this is a thread of the PE's tokio runtime.
pub(crate) fn is_tokios() -> bool {
    WHOSE.get() == Whose::Tokio
}

/// The calling thread was started by the rank of a slot.
pub(crate) fn set_starter(slot: u32) {
    WHOSE.set(Whose::Rank(slot));
}

/// The calling thread is one of the PE's tokio runtime.
pub(crate) fn set_tokios() {
    WHOSE.set(Whose::Tokio);
}

pub(crate) fn held_by(slot: u32) -> Option<&'static Held> {
    Some(&Arena::current()?.slot(slot)?.held)
}

/// The slot of the rank that owns what is created here: it runs here, or has started this thread.
pub(crate) fn owner() -> Option<u32> {
    running().map(|slot| slot.id().0).or_else(starter)
}
