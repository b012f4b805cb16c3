//! What a rank's own libc keeps outside of the rank's memory: libc's own calls of the system and of the loader cannot
//! be seen, so the functions that make them pin the rank permanently.
//!
//! - A locale is a file that libc maps. (The locale `C` is part of libc.)
//! - A character conversion may be a library, which the process's loader opens and never closes.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::held::Kind;
use crate::posix::interpose::real;
use crate::{heap_word, image, outside, register};

/// Whether the name of a locale is that of one built into libc.
///
/// # Safety
/// A C string, or null.
unsafe fn is_of_libc(name: *const c_char) -> bool {
    // SAFETY: a C string, says the caller, if not null.
    name.is_null() || matches!(unsafe { CStr::from_ptr(name) }.to_bytes(), b"C" | b"POSIX")
}

/// The running rank holds something of this kind as long as it runs.
fn holds_for_ever(kind: Kind) {
    /// No handle has this address.
    const NEVER_RELEASED: usize = 1;
    if image::has_libc() {
        register::hold(kind, NEVER_RELEASED);
    }
}

unsafe extern "C" fn setlocale(category: c_int, name: *const c_char) -> *mut c_char {
    type Function = unsafe extern "C" fn(c_int, *const c_char) -> *mut c_char;
    // SAFETY: S4; the answer is a C string, or null.
    unsafe {
        let answer = real!(c"setlocale", Function)(category, name);
        if !name.is_null() && !is_of_libc(answer) {
            holds_for_ever(Kind::Locale);
        }
        answer
    }
}

unsafe extern "C" fn newlocale(mask: c_int, name: *const c_char, base: *mut c_void) -> *mut c_void {
    type Function = unsafe extern "C" fn(c_int, *const c_char, *mut c_void) -> *mut c_void;
    // SAFETY: S4; the name is a C string.
    unsafe {
        let locale = real!(c"newlocale", Function)(mask, name, base);
        if !locale.is_null() && !is_of_libc(name) {
            holds_for_ever(Kind::Locale);
        }
        locale
    }
}

unsafe extern "C" fn iconv_open(to: *const c_char, from: *const c_char) -> *mut c_void {
    type Function = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;
    let real = real!(c"iconv_open", Function);
    // What the process's loader allocates is the process's.
    // SAFETY: S4.
    let conversion = heap_word::runtime_heap(|| outside::within(|| unsafe { real(to, from) }));
    if conversion as isize != -1 {
        holds_for_ever(Kind::Conversion);
    }
    conversion
}

/// The replacements for functions of a rank's own libc.
pub fn for_own_libc() -> [(&'static str, *const ()); 3] {
    [
        ("setlocale", setlocale as *const ()),
        ("newlocale", newlocale as *const ()),
        ("iconv_open", iconv_open as *const ()),
    ]
}
