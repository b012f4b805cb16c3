//! What a call gives a handle for, which another call takes back: libraries, semaphores, lists.

use std::ffi::{c_char, c_int, c_void};

use crate::held::Kind;
use crate::owner::owner;
use crate::posix::interpose::process_wide;
use crate::register;

/// The call returns a handle, null, or -1. A rank holds it until it is released. Memory that the call keeps for the
/// process does not lie in the rank's heap.
pub(crate) fn acquires(kind: Kind, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let handle = process_wide(call);
    if !handle.is_null()
        && handle as isize != -1
        && let Some(slot) = owner()
    {
        register::add(kind, handle as usize, 0, slot);
    }
    handle
}

/// The same for a call that consumes another handle, or null, if it succeeds.
pub(crate) fn acquires_from(
    kind: Kind,
    used: *mut c_void,
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let handle = acquires(kind, call);
    if !handle.is_null() && !used.is_null() {
        register::take(kind, used as usize);
    }
    handle
}

/// The call returns 0 if it has stored a handle.
///
/// # Safety
/// It does.
pub(crate) unsafe fn acquires_at(
    kind: Kind,
    at: *const *mut c_void,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let status = process_wide(call);
    if status == 0
        && let Some(slot) = owner()
    {
        // SAFETY: the call has stored a handle there, says the caller.
        register::add(kind, unsafe { at.read() } as usize, 0, slot);
    }
    status
}

/// The call releases what a handle represents.
pub(crate) fn releases<R>(kind: Kind, handle: *mut c_void, call: impl FnOnce() -> R) -> R {
    register::take(kind, handle as usize);
    process_wide(call)
}

/// The call loads a library; without a name it is the program, which all PEs have.
pub fn loads(file: *const c_char, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if file.is_null() { process_wide(call) } else { acquires(Kind::Library, call) }
}
