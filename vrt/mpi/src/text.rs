//! Conversion of strings from and to C.

use std::ffi::{CStr, c_char, c_int};

/// A string given by the program.
///
/// # Safety
/// It is null or ends with a zero.
pub(crate) unsafe fn taken(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// Returns a string to the program, cut to `room` bytes including its zero, and its length.
///
/// # Safety
/// There is this much room, and room for a number unless `len` is null.
pub(crate) unsafe fn give(text: &str, to: *mut c_char, room: usize, len: *mut c_int) {
    let mut end = text.len().min(room.saturating_sub(1));
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    // SAFETY: as the caller promises.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, end);
        to.add(end).write(0);
        if !len.is_null() {
            len.write(crate::numbers::int(end));
        }
    }
}
