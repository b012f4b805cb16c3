//! `errno`: the process's, and the program's, which is that of the rank's own libc, if it has one.

use std::cell::Cell;
use std::ffi::c_int;

use crate::posix::interpose::real;

/// Reports the reason of a failed call in `errno`.
pub fn fail(error: c_int) -> c_int {
    of_program().set(error);
    -1
}

/// The program's `errno`.
pub fn errno() -> c_int {
    of_program().get()
}

/// To be used at once, on this thread.
fn of_program() -> &'static Cell<c_int> {
    let place = real!(c"__errno_location", unsafe extern "C" fn() -> *mut Cell<c_int>);
    // SAFETY: S4: it takes nothing, and returns the place of this thread.
    unsafe { &*place() }
}

/// The process's `errno`. To be used at once, on this thread.
pub fn of_process() -> &'static Cell<c_int> {
    // SAFETY: libc returns the place of this thread.
    unsafe { &*libc::__errno_location().cast::<Cell<c_int>>() }
}

/// Runs `f` and preserves the process's `errno`.
pub(crate) fn keeping_error<R>(f: impl FnOnce() -> R) -> R {
    let error = of_process().get();
    let result = f();
    of_process().set(error);
    result
}
