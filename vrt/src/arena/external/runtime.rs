//! What ranks hold of their PE's tokio runtime: tasks that they have spawned, timers, sockets,
//! handles.
//!
//! A task's memory is its rank's, but the runtime of the PE goes on with it, and each of these
//! things has a reference to that runtime, which is counted. On another PE the runtime is another
//! one, at the same address perhaps: there the reference would be given back to the wrong one, which
//! would be dropped while it runs.
//!
//! So a rank stays while its memory refers to the runtime. That is looked for only while the
//! runtime's count of references is higher than it was when nobody had any: then the live blocks of
//! the rank's heap and its stack are searched for the runtime's address.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;

use crate::arena::SlotHeader;
use crate::arena::live::{self, Part};
use crate::rank::Body;

const WORD: usize = size_of::<usize>();

thread_local! {
    /// The address of the count, which is that of the runtime's shared part, and the count without
    /// anybody's references. 0: not known.
    static RUNTIME: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// This thread's PE has this runtime from now on, and nobody holds anything of it.
pub(crate) fn watch(handle: &Handle) {
    let at = count_of(handle);
    // SAFETY: the count of a runtime that lives.
    let without = if at == 0 { 0 } else { unsafe { load(at) } };
    RUNTIME.set((at, without));
}

/// The runtime of this thread's PE is about to go.
pub(crate) fn forget() {
    RUNTIME.set((0, 0));
}

/// Why the rank of a slot stays, if it holds something of the runtime.
///
/// # Safety
/// The slot is of a rank of this thread's PE.
pub(crate) unsafe fn pin(slot: *mut SlotHeader) -> Option<&'static str> {
    let (runtime, without) = RUNTIME.get();
    // SAFETY: the runtime lives until `forget`; the slot is as the caller promises.
    let holds = runtime != 0 && unsafe { load(runtime) > without && refers_to(slot, runtime) };
    holds.then_some("it holds something of tokio: a task, a timer, a socket or a handle")
}

/// # Safety
/// The address of a count.
unsafe fn load(count: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { (*(count as *const AtomicUsize)).load(Ordering::Relaxed) }
}

/// Where the references to a handle's runtime are counted, or 0. A handle is a tag and a counted
/// pointer, whose count grows when the handle is cloned.
fn count_of(handle: &Handle) -> usize {
    let words = std::ptr::from_ref(handle).cast::<usize>();
    (0..size_of::<Handle>() / WORD)
        // SAFETY: inside the handle. A tag may be followed by bytes that are not initialised, in a
        // word that has a small value then, or none that grows.
        .map(|i| unsafe { words.add(i).read_volatile() })
        .filter(|word| *word > 1 << 16 && word.is_multiple_of(align_of::<usize>()))
        .find(|word| {
            // SAFETY: the only words of a handle that are addresses are those of what it refers to.
            unsafe {
                let before = load(*word);
                let clone = handle.clone();
                let with_clone = load(*word);
                drop(clone);
                with_clone == before + 1 && load(*word) == before
            }
        })
        .unwrap_or(0)
}

/// Whether the live memory of a rank has a word of this value.
///
/// # Safety
/// As [`pin`].
unsafe fn refers_to(slot: *mut SlotHeader, value: usize) -> bool {
    // SAFETY: as the caller promises: nobody else uses the slot.
    unsafe {
        let stack = Body::live_stack(slot);
        let mut found = contains(stack.start, stack.end, value);
        for used in (*(*slot).heap.get()).used() {
            live::parts(used, |part| match part {
                Part::Chunk { at, size, in_use: true } => {
                    found |= contains(at + 16, at + size + 8, value);
                }
                Part::Unknown { at, end } => found |= contains(at, end, value),
                Part::Chunk { .. } | Part::Mark(_) => {}
            });
        }
        found
    }
}

/// # Safety
/// The range is readable.
unsafe fn contains(start: usize, end: usize, value: usize) -> bool {
    (start.next_multiple_of(WORD)..end.saturating_sub(WORD - 1))
        .step_by(WORD)
        // SAFETY: in the range.
        .any(|at| unsafe { (at as *const usize).read_volatile() } == value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    /// It depends on how tokio's handles are made.
    #[test]
    fn references_to_a_runtime_are_counted() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let at = count_of(runtime.handle());
        assert_ne!(at, 0, "tokio's handle has changed: look at `count_of`");
        // SAFETY: the runtime lives.
        let now = || unsafe { load(at) };
        let none = now();
        let task = runtime.spawn(async { 5 });
        assert!(now() > none, "a task refers to the runtime");
        assert_eq!(runtime.block_on(task).unwrap(), 5);
        assert_eq!(now(), none, "what has ended does not");
        let timer = {
            let _entered = runtime.enter();
            tokio::time::sleep(std::time::Duration::from_secs(1))
        };
        assert!(now() > none, "a timer refers to the runtime");
        drop(timer);
        assert_eq!(now(), none);
    }
}
