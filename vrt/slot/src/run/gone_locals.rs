//! Thread-locals that are destroyed early, while their thread continues.
//!
//! A thread-local with a destructor is destroyed when its thread ends, and later accesses are told so. Some code then
//! uses an alternative: `parking_lot` keeps the record of a waiting thread in a thread-local, or on the stack if that
//! is destroyed. The ranks of a PE share its thread, and so that thread-local, with which only one of them could wait
//! at a time; but each has its own stack.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use crate::run::locals::Destructor;

/// The most thread-locals that `f` may create.
const MOST: usize = 8;

/// The thread-locals created since a call of [`destroy_what_it_makes`] began.
struct Made {
    destructors: [Option<Destructor>; MOST],
    count: usize,
}

thread_local! {
    static MADE: Cell<*mut Made> = const { Cell::new(ptr::null_mut()) };
}

/// Calls `f`, and destroys the thread-locals of this thread that it has created: from now on the thread has none of
/// these. Returns their number.
///
/// # Safety
/// Nothing refers to them when `f` has returned.
pub unsafe fn destroy_what_it_makes(f: impl FnOnce()) -> usize {
    let mut made = Made { destructors: [None; MOST], count: 0 };
    let before = MADE.replace(&raw mut made);
    f();
    MADE.set(before);
    // SAFETY: `f` has returned, so nobody has the list any more: `MADE` is what it was.
    let made = unsafe { (&raw const made).read() };
    for (destructor, object) in made.destructors.into_iter().flatten() {
        // SAFETY: it may be called once, says the caller of `is_taken`, and nothing refers to the object, says this one's.
        unsafe { destructor(object) };
    }
    made.count
}

/// A thread-local was created: returns whether its destructor is called by [`destroy_what_it_makes`].
///
/// # Safety
/// The destructor may be called once with the object, on this thread, and is by nobody else if this returns true.
pub(crate) unsafe fn is_taken(
    destructor: unsafe extern "C" fn(*mut c_void),
    object: *mut c_void,
) -> bool {
    // SAFETY: null, or the list of a call of `destroy_what_it_makes` that has not returned, on this thread.
    let Some(made) = (unsafe { MADE.get().as_mut() }) else { return false };
    let Some(free) = made.destructors.get_mut(made.count) else { return false };
    *free = Some((destructor, object));
    made.count += 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.set(DROPPED.get() + 1);
        }
    }

    thread_local! {
        static DROPPED: Cell<u32> = const { Cell::new(0) };
        static NOW: Counted = const { Counted };
        static LATER: Counted = const { Counted };
    }

    #[test]
    #[cfg_attr(miri, ignore = "the libc's function has no other in front of it")]
    fn what_is_made_meanwhile_is_gone_and_nothing_else() {
        std::thread::spawn(|| {
            LATER.with(|_| {});
            // SAFETY: nothing refers to `NOW`.
            let made = unsafe { destroy_what_it_makes(|| NOW.with(|_| {})) };
            assert_eq!((made, DROPPED.get()), (1, 1));
            assert!(NOW.try_with(|_| {}).is_err() && LATER.try_with(|_| {}).is_ok());
        })
        .join()
        .unwrap();
    }
}
