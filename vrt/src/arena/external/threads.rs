//! Threads that ranks start. A rank holds a thread until it ends. Its stack and thread-local
//! storage, which libc keeps for the next thread, are the process's.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Kind, register, running};
use crate::arena::hooks::runtime_heap;
use crate::arena::interpose::Real;

/// What a thread begins with, with the result that C's or POSIX's threads have.
pub(super) type Start<R> = extern "C-unwind" fn(*mut c_void) -> R;

/// What a thread that a rank starts begins with.
struct Begun<R> {
    start: Start<R>,
    argument: *mut c_void,
    number: usize,
}

/// The call starts a thread with what it is given, and returns 0 then.
fn starts_thread<R>(
    start: Start<R>,
    argument: *mut c_void,
    call: impl FnOnce(Start<R>, *mut c_void) -> c_int,
) -> c_int {
    static NUMBERS: AtomicUsize = AtomicUsize::new(1);
    let Some(slot) = running() else { return runtime_heap(|| call(start, argument)) };
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    register::add(Kind::Thread, number, 0, slot.id().0);
    runtime_heap(|| {
        let begun = Box::into_raw(Box::new(Begun { start, argument, number }));
        let status = call(run_thread::<R>, begun.cast());
        if status != 0 {
            register::take(Kind::Thread, number);
            // SAFETY: no thread has begun, so it is still ours.
            drop(unsafe { Box::from_raw(begun) });
        }
        status
    })
}

extern "C-unwind" fn run_thread<R>(begun: *mut c_void) -> R {
    // Runs too when the thread ends by `pthread_exit`, or is cancelled: both unwind.
    struct Ends(usize);
    impl Drop for Ends {
        fn drop(&mut self) {
            register::take(Kind::Thread, self.0);
        }
    }
    // SAFETY: `starts_thread` gave this thread its own box.
    let Begun { start, argument, number } = *unsafe { Box::from_raw(begun.cast::<Begun<R>>()) };
    let _ends = Ends(number);
    start(argument)
}

/// POSIX `pthread_create`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start<*mut c_void>,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Start<*mut c_void>,
        *mut c_void,
    ) -> c_int;
    static REAL: Real = Real::new(c"pthread_create");
    // SAFETY: libc's function of this name has this type; the caller keeps its contract.
    starts_thread(start, argument, |start, argument| unsafe {
        let create = std::mem::transmute::<*mut c_void, Create>(REAL.get());
        create(thread, attributes, start, argument)
    })
}

/// C11 `thrd_create`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(
    thread: *mut libc::pthread_t,
    start: Start<c_int>,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(*mut libc::pthread_t, Start<c_int>, *mut c_void) -> c_int;
    static REAL: Real = Real::new(c"thrd_create");
    // SAFETY: as above.
    starts_thread(start, argument, |start, argument| unsafe {
        let create = std::mem::transmute::<*mut c_void, Create>(REAL.get());
        create(thread, start, argument)
    })
}
