//! Counted objects of their PE that ranks hold: references to its tokio runtime (held by tasks, timers, sockets and
//! handles), handles of its thread (held by `std::thread::scope`), and clones of the `Arc`s that `main` has made.
//!
//! Each PE has such an object at the same address, with its own count. On another PE a rank's reference would be
//! released to the wrong object: that would be dropped while it is in use, and this one never. Moreover, a task's
//! memory is its rank's, but the runtime of the PE continues to use it.
//!
//! So a rank is pinned while its memory refers to such an object. This is checked only while the count is higher than
//! it was when the PE began: then the live blocks of the rank's heap and its stack are searched for the object's
//! address. The count may have been raised by something other than ranks, and what looks like an `Arc` may not be one:
//! for an estimate of which ranks will stay ([`known_pin`]), a rank is searched only if a count is higher than when
//! nothing was found in it.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;

use crate::arena::{SlotHeader, SlotId};
use crate::heap::chunk;
use crate::stack::live_stack;
use crate::sys::{self, PAGE, heap_end, stack_of_thread};

const WORD: usize = size_of::<usize>();
/// A number that is larger than this is not a count.
const MOST: usize = 1 << 20;
/// The range of addresses of programs' memory.
const ADDRESSES: Range<usize> = 1 << 16..1 << 47;
/// The greatest length of libc's heaps for other threads.
const HEAP: usize = 64 << 20;
/// How much of the stack of `main` is searched.
const STACK: usize = 256 << 10;

/// A counted object.
#[derive(Debug)]
struct Counted {
    /// The address of the count, to which references point.
    at: usize,
    /// The count without references of ranks.
    without: usize,
    /// Why a rank that refers to it is pinned.
    reason: &'static str,
    /// Whether there still is memory: what looked like an `Arc` of `main` may be something else, which is gone by now,
    /// with its pages.
    is_there: fn(usize) -> bool,
    /// The highest counts at which the memory of ranks did not refer to it.
    in_vain: FxHashMap<SlotId, usize>,
}

impl Counted {
    fn new(at: usize, reason: &'static str) -> Counted {
        Counted { at, without: 0, reason, is_there: |_| true, in_vain: FxHashMap::default() }
    }

    /// The count, if it is higher than without ranks.
    fn raised(&self) -> Option<usize> {
        // SAFETY: `is_there`; what `watch` was given lives as long as the PE.
        let count = (self.is_there)(self.at).then(|| unsafe { load(self.at) })?;
        (count > self.without).then_some(count)
    }
}

thread_local! {
    static COUNTED: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
}

/// The counts of handles of the runtime's own threads.
static LEFT_OUT: Mutex<Vec<usize>> = Mutex::new(Vec::new());

const OF_TOKIO: &str = "it holds something of tokio: a task, a timer, a socket or a handle";
const OF_THREAD: &str = "it holds a handle of its PE's thread, as std::thread::scope does";
const OF_MAIN: &str =
    "it holds a counted reference (a clone of an Arc) to what was made before there were ranks";

/// Handles of this thread are not watched: it is the runtime's, no rank holds one, and it has more of them itself when
/// it begins and while it is parked.
pub fn leave_out(thread: &Thread) {
    // Nothing is found while it takes or gives back one itself.
    let mut looks = (0..1000).map(|_| {
        std::thread::yield_now();
        // SAFETY: a handle of the standard library.
        unsafe { count_of(thread) }
    });
    let at = looks.find(|at| *at != 0);
    LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner).extend(at);
}

/// This thread's PE, which has this runtime, begins, and no rank holds references to it yet.
pub fn watch(handle: &Handle) {
    // The thread's handle is gone again when the count is read.
    // SAFETY: handles of tokio and of the standard library.
    let (tokio, thread) = unsafe { (count_of(handle), count_of(&std::thread::current())) };
    let (tokio, thread) = (Counted::new(tokio, OF_TOKIO), Counted::new(thread, OF_THREAD));
    let end = heap_end();
    // The process's heap ends at the break, which libc lowers when much is free there.
    let is_there: [fn(usize) -> bool; 2] = [|at| at < heap_end(), |at| read::<1>(at).is_some()];
    let of_main = arcs_of_main(end).into_iter().map(|at| Counted {
        is_there: is_there[usize::from(at >= end)],
        ..Counted::new(at, OF_MAIN)
    });
    let mut all: Vec<Counted> = [tokio, thread].into_iter().chain(of_main).collect();
    let left_out = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|counted| counted.at != 0 && !left_out.contains(&counted.at));
    for counted in &mut all {
        // SAFETY: what lives as long as the PE, or what `arcs_of_main` has just read.
        counted.without = unsafe { load(counted.at) };
    }
    COUNTED.set(all);
}

/// The runtime of this thread's PE is about to be dropped.
pub fn forget() {
    COUNTED.set(Vec::new());
}

/// Why the rank of a slot is pinned, if it holds one of these; `frame`: it runs, and its own stack ends there.
///
/// # Safety
/// The slot is of a rank of this thread's PE, which is suspended or is the caller.
pub unsafe fn pin(slot: *mut SlotHeader, frame: Option<usize>) -> Option<&'static str> {
    // SAFETY: the same promise.
    unsafe { held(slot, frame, |_| true) }
}

/// The same for a suspended rank, as far as known: one in which nothing was found is not searched again for as few
/// references.
///
/// # Safety
/// As for [`pin`].
pub unsafe fn known_pin(slot: *mut SlotHeader) -> Option<&'static str> {
    // SAFETY: S1.
    let id = unsafe { (*slot).id() };
    COUNTED.with_borrow_mut(|all| {
        all.iter_mut().find_map(|counted| {
            let count = counted.raised()?;
            let in_vain = counted.in_vain.entry(id).or_default();
            if count <= *in_vain {
                return None;
            }
            // SAFETY: a suspended rank of this PE, says the caller.
            if unsafe { search(slot, &[counted.at], None) } {
                return Some(counted.reason);
            }
            *in_vain = count;
            None
        })
    })
}

/// Whether the rank of a slot holds a handle of the PE's thread.
///
/// # Safety
/// As for [`pin`].
pub unsafe fn holds_thread(slot: *mut SlotHeader) -> bool {
    // SAFETY: the same promise.
    unsafe { held(slot, None, |reason| reason == OF_THREAD) }.is_some()
}

/// # Safety
/// As for [`pin`].
unsafe fn held(
    slot: *mut SlotHeader,
    frame: Option<usize>,
    is_asked_for: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    COUNTED.with_borrow(|all| {
        let holds = |counted: &&Counted| {
            // SAFETY: a rank of this PE, suspended or the caller, says the caller.
            counted.raised().is_some() && unsafe { search(slot, &[counted.at], frame) }
        };
        let mut asked = all.iter().filter(|counted| is_asked_for(counted.reason));
        asked.find(holds).map(|counted| counted.reason)
    })
}

/// The counts of the `Arc`s that `main` and its callees have on the calling thread's stack. An `Arc` points to two
/// counts, that of its owners and that of all references, at the beginning of a block of libc's.
fn arcs_of_main(heap_end: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let frame = 0usize;
    let begin = (&raw const frame as usize).next_multiple_of(WORD);
    let Some(stack) = stack_of_thread() else { return found };
    // The loop of a world of one has a stack of its own; its rank does not move.
    if !stack.contains(&begin) {
        return found;
    }
    let end = stack.end.min(begin + STACK);
    for at in (begin..end).step_by(WORD) {
        // SAFETY: on this thread's stack, above this frame: `stack_of_thread`.
        let word = unsafe { (at as *const usize).read_volatile() };
        if !ADDRESSES.contains(&word) || !word.is_multiple_of(2 * WORD) || found.contains(&word) {
            continue;
        }
        // A block of libc's begins behind a word of libc's own.
        let Some([header, strong, all]) = read(word - WORD) else { continue };
        let is_count = |count| (1..=MOST).contains(&count);
        if is_count(strong) && is_count(all) && is_block(word, header, heap_end) {
            found.push(word);
        }
    }
    found
}

/// Whether an allocated block of libc begins here, after this header word: the word contains the length, and in its
/// lowest bits where the block is. Many words on a stack are addresses of former blocks, or of something in the middle
/// of one.
fn is_block(block: usize, header: usize, heap_end: usize) -> bool {
    const OF_ITS_OWN: usize = 2;
    const OF_ANOTHER_HEAP: usize = 4;
    const PREVIOUS_IN_USE: usize = 1;
    let len = header & !7;
    // The header of the block behind says whether this one is in use.
    let is_in_use = || {
        let next = read(block + len - WORD);
        next.is_some_and(|[next]: [usize; 1]| next & PREVIOUS_IN_USE != 0)
    };
    let is_len = len >= 4 * WORD && len.is_multiple_of(2 * WORD);
    match header & (OF_ITS_OWN | OF_ANOTHER_HEAP) {
        0 => is_len && block < heap_end && len <= heap_end - block + 2 * WORD && is_in_use(),
        OF_ITS_OWN => len >= PAGE && len.is_multiple_of(PAGE) && block % PAGE == 2 * WORD,
        OF_ANOTHER_HEAP => is_len && len < HEAP && is_in_use(),
        _ => false,
    }
}

/// Words at an address, if they are readable.
fn read<const N: usize>(address: usize) -> Option<[usize; N]> {
    let mut words = [0; N];
    let bytes = size_of_val(&words);
    let to = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
    let from = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes };
    let process = std::process::id() as libc::pid_t;
    // SAFETY: the kernel copies to `words`, which are as long; what it cannot read is an error.
    let copied = unsafe { libc::process_vm_readv(process, &to, 1, &from, 1, 0) };
    if copied == bytes as isize {
        return Some(words);
    }
    let error = std::io::Error::last_os_error().raw_os_error();
    if error == Some(libc::EFAULT) || address + bytes > heap_end() || !is_mapped(address) {
        return None;
    }
    // The call is forbidden here, as in some containers. Below the break all that is mapped can be
    // read; a block there is aligned to 16 bytes, so its first words and the one before lie in two
    // pages at most, and libc's heap has no holes.
    // SAFETY: `is_mapped`, below the break.
    Some(unsafe { (address as *const [usize; N]).read_volatile() })
}

/// Whether there is memory at an address.
pub(super) fn is_mapped(address: usize) -> bool {
    sys::resident_pages(address & !(PAGE - 1), &mut [0])
}

/// # Safety
/// It is the address of a count, or of another aligned word that is readable.
unsafe fn load(count: usize) -> usize {
    // SAFETY: an aligned, readable word, says the caller.
    unsafe { (*(count as *const AtomicUsize)).load(Ordering::Relaxed) }
}

/// The address of the count of a handle's references, or 0. A handle is a counted pointer, perhaps with a tag; the
/// count grows when the handle is cloned.
///
/// # Safety
/// The only words of the handle that look like addresses are those of what it refers to.
pub(super) unsafe fn count_of<T: Clone>(handle: &T) -> usize {
    let words = std::ptr::from_ref(handle).cast::<usize>();
    (0..size_of::<T>() / WORD)
        // SAFETY: inside the handle. A tag may be followed by bytes that are not initialised, in a
        // word that has a small value then, or none that grows.
        .map(|i| unsafe { words.add(i).read_volatile() })
        .filter(|word| *word > 1 << 16 && word.is_multiple_of(align_of::<usize>()))
        .find(|word| {
            // SAFETY: the address of what the handle refers to, says the caller; aligned.
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

/// Whether the live memory of a rank contains these words consecutively. The rank is suspended, or it runs and its own
/// stack ends at `frame`: these words are below.
///
/// # Safety
/// The slot is of a rank of this thread's PE, which is suspended or is the caller.
pub(super) unsafe fn search(slot: *mut SlotHeader, words: &[usize], frame: Option<usize>) -> bool {
    // SAFETY: S2: the rank does not run meanwhile; H1.
    unsafe {
        let stack = live_stack(slot);
        let mut found = contains(frame.unwrap_or(stack.start), stack.end, words);
        for used in (*(*slot).heap.get()).used() {
            chunk::blocks(used, |start, end| found = found || contains(start, end, words));
        }
        found
    }
}

/// # Safety
/// The range is readable.
unsafe fn contains(start: usize, end: usize, words: &[usize]) -> bool {
    let last = end.saturating_sub(words.len() * WORD - 1);
    // SAFETY: in the range, as the last word is; readable, says the caller.
    let is = |at: usize, word: usize| unsafe { (at as *const usize).read_volatile() } == word;
    (start.next_multiple_of(WORD)..last)
        .step_by(WORD)
        .any(|at| words.iter().enumerate().all(|(i, word)| is(at + i * WORD, *word)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::thread;

    use super::*;

    /// The count at a watched address, and its initial value.
    fn counts(at: usize) -> Option<(usize, usize)> {
        COUNTED.with_borrow(|all| {
            let counted = all.iter().find(|counted| counted.at == at)?;
            // SAFETY: the count of a handle that the test still has.
            Some((unsafe { load(at) }, counted.without))
        })
    }

    /// Depends on the implementation of the standard library's handles.
    #[test]
    fn handles_of_a_thread_are_counted() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        watch(runtime.handle());
        // SAFETY: a handle of the standard library.
        let at = unsafe { count_of(&thread::current()) };
        let (count, without) = counts(at).expect("look at how handles of threads are made");
        assert_eq!(count, without, "there is no other handle");
        thread::scope(|_| {
            let (count, without) = counts(at).unwrap();
            assert!(count > without, "a scope has a handle");
        });
        forget();
        assert!(counts(at).is_none());
    }

    #[test]
    fn handles_of_the_runtimes_own_threads_are_not_watched() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let parked = || thread::spawn(thread::park).thread().clone();
        let (own, other) = (parked(), parked());
        leave_out(&own);
        watch(runtime.handle());
        // SAFETY: handles of the standard library.
        let (of_other, of_own) = unsafe { (count_of(&other), count_of(&own)) };
        assert!(counts(of_other).is_some(), "it looks like an `Arc` of `main`");
        assert!(counts(of_own).is_none());
        forget();
        own.unpark();
        other.unpark();
    }

    /// Depends on the implementation of tokio's handles.
    #[test]
    fn references_to_a_runtime_are_counted() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // SAFETY: a handle of tokio's.
        let at = unsafe { count_of(runtime.handle()) };
        assert_ne!(at, 0, "tokio's handle has changed: look at `count_of`");
        // SAFETY: the count of a runtime that lives.
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
