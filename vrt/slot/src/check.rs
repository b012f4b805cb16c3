//! The checking mode for stacks: a suspended rank must not hold pointers into its PE's heap.
//!
//! Memory of the PE does not move with the rank. The mode looks at every word of the live part of
//! a suspended rank's stack and asks whether it points into the process's heap (`brk` area) above
//! where that ended when the PE was forked: what was there before is the same in every PE. Pointers
//! are multiples of 8; what is not is a number.
//!
//! Frames have holes, in which words of older, dead frames show through. So in this mode the
//! runtime wipes the stack below itself whenever it returns to a rank ([`wipe_below`]): what is
//! found then was put there by the rank, or lies in a frame that is alive.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::coroutine::stack_pointer;
use crate::rank::Body;
use crate::{Arena, SlotHeader, hooks};

/// Words found so far, and the end of the heap when this PE began.
static FOUND: AtomicU64 = AtomicU64::new(0);
static HEAP_AT_START: AtomicUsize = AtomicUsize::new(0);

/// Whether the mode is on.
static ON: AtomicBool = AtomicBool::new(false);

/// Remembers where the process's heap ends now. Called when a PE begins.
pub fn begin(on: bool) {
    ON.store(on, Ordering::Relaxed);
    let start = heap_end();
    HEAP_AT_START.store(start, Ordering::Relaxed);
    if on {
        // Fill the gaps that were left in the heap, so that what is allocated from now on lies
        // above; never freed.
        for size in (16..=2048).step_by(16) {
            while (Vec::<u8>::with_capacity(size).leak().as_ptr() as usize) < start {}
        }
    }
}

/// In the checking mode, clears the stack below the caller. To be called when the runtime returns
/// to a rank.
#[inline(always)]
pub fn wipe_below() {
    if ON.load(Ordering::Relaxed) {
        wipe();
    }
}

/// Clears the stack below the caller, where earlier calls have left addresses that would be taken
/// for references of the rank.
#[cold]
#[inline(never)]
pub fn wipe() {
    match lowest_of_stack() {
        Some(lowest) => {
            // What lies right below this frame, which cannot be cleared without a call.
            wipe_frame::<1024>();
            let end = (stack_pointer() - RED_ZONE) & !(LINE - 1);
            let start = lowest.next_multiple_of(LINE).max(end - DEPTH);
            // SAFETY: below the frame of this function, above the guard, the stack is nobody's.
            unsafe { clear(start, end) };
        }
        None => wipe_frame::<DEPTH>(),
    }
}

/// Deeper than the runtime's own calls, smaller than the smallest stack.
const DEPTH: usize = 32 << 10;

const LINE: usize = 64;
/// What a function that calls none may use below its stack pointer.
const RED_ZONE: usize = 128;

/// The lowest address of the stack in the running rank's slot, if it is that which is in use.
fn lowest_of_stack() -> Option<usize> {
    let slot = hooks::heap_in_use();
    let arena = Arena::current().filter(|_| !slot.is_null())?;
    // SAFETY: the heap in use is the running rank's, whose header is there.
    let id = unsafe { (*slot).id() };
    let own = arena.layout.stack_limit(id)..arena.layout.top(id);
    own.contains(&stack_pointer()).then_some(own.start)
}

/// Clears so many bytes below the caller.
#[inline(never)]
fn wipe_frame<const BYTES: usize>() {
    black_box(&mut [0u8; BYTES]);
}

/// Clears lines that are not clear: a rank that moves often finds most of them so, and those that
/// are not written to need not be fetched from the core where it was.
///
/// # Safety
/// Lines of memory that is nobody's.
#[inline(always)]
unsafe fn clear(start: usize, end: usize) {
    for line in (start..end).step_by(LINE) {
        let line = line as *mut [u64; LINE / 8];
        // SAFETY: as the caller promises. What frames have left there are words.
        unsafe {
            if line.read_volatile().iter().fold(0, |any, word| any | word) != 0 {
                line.write_volatile([0; LINE / 8]);
            }
        }
    }
}

fn heap_end() -> usize {
    // SAFETY: asking for the current break changes nothing.
    unsafe { libc::sbrk(0) as usize }
}

/// Looks at the stack of a rank that has just suspended; says what it finds, the first 20 times.
///
/// # Safety
/// The slot is the PE's, and its rank is suspended.
pub unsafe fn scan_stack(rank: u32, slot: *mut SlotHeader) {
    let Some(arena) = Arena::current() else { return };
    // SAFETY: as the caller promises.
    let (id, live) = unsafe { ((*slot).id(), Body::live_stack(slot)) };
    let (low, top) = (live.start, arena.layout.top(id));
    let heap = HEAP_AT_START.load(Ordering::Relaxed)..heap_end();
    for address in live.step_by(size_of::<usize>()) {
        // SAFETY: the live part of the stack, from its lowest frame to its top.
        let word = unsafe { (address as *const usize).read_volatile() };
        if heap.contains(&word)
            && word.is_multiple_of(8)
            && FOUND.fetch_add(1, Ordering::Relaxed) < 20
        {
            crate::report::say(format_args!(
                "rank {rank}: the word {} bytes above its suspended stack's end ({} below its \
                 top) points into its PE's heap ({word:#x})",
                address - low,
                top - address
            ));
        }
    }
}

/// Words found in this process.
pub fn stack_words_found() -> u64 {
    FOUND.load(Ordering::Relaxed)
}
