//! `errno`: the process's, and the program's, which is that of the rank's own libc, if it has one.

use std::ffi::{c_int, c_void};

use crate::posix::interpose::Real;

/// Reports the reason of a failed call in `errno`.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: the place is the thread's.
    unsafe { *errno_location() = error };
    -1
}

/// The program's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the place is the thread's.
    unsafe { *errno_location() }
}

fn errno_location() -> *mut c_int {
    static REAL: Real = Real::new(c"__errno_location");
    type Location = unsafe extern "C" fn() -> *mut c_int;
    // SAFETY: libc's function, the rank's own or the process's.
    unsafe { std::mem::transmute::<*mut c_void, Location>(REAL.get())() }
}

/// Runs `f` and preserves the process's `errno`.
///
/// # Safety
/// That of `f`.
pub(crate) unsafe fn keeping_error<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: this thread's own word.
    unsafe {
        let place = libc::__errno_location();
        let error = *place;
        let result = f();
        *place = error;
        result
    }
}
