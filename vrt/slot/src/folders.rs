//! The working folder, and the mask for new files, of ranks that run images: each rank has its own, as a
//! process has.
//!
//! The system knows one of each for a PE. A rank that has changed its own keeps them in its slot; as soon as a PE
//! has such a rank, it changes to the folder of the rank that is about to run, if that is another one.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::SlotHeader;
use crate::signals;

/// A rank of this PE has changed its own.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// What the PE has begun with.
static FIRST: OnceLock<Folder> = OnceLock::new();
/// The slot, plus 1, whose folder the PE is in; 0: the one that it has begun with.
static NOW: AtomicU32 = AtomicU32::new(0);

/// A working folder, and the mask.
pub(crate) struct Folder {
    name: CString,
    mask: libc::mode_t,
}

fn mask_now() -> libc::mode_t {
    // SAFETY: asks for the mask by setting it twice.
    unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    }
}

fn folder_now() -> Option<CString> {
    let mut name = [0 as c_char; libc::PATH_MAX as usize];
    // SAFETY: a buffer of this size.
    let known = unsafe { !libc::getcwd(name.as_mut_ptr(), name.len()).is_null() };
    // SAFETY: what the system has written ends with a zero.
    known.then(|| unsafe { CStr::from_ptr(name.as_ptr()) }.to_owned())
}

/// From now on folders are changed with ranks.
#[cold]
fn begin() {
    let first = || Folder { name: folder_now().unwrap_or_default(), mask: mask_now() };
    let _: &Folder = FIRST.get_or_init(|| crate::hooks::runtime_heap(first));
    IS_USED.store(true, Ordering::Relaxed);
}

/// A rank has come to this PE.
pub(crate) fn arrives(slot: &SlotHeader) {
    if !slot.folder.get().is_null() {
        begin();
    }
}

/// The rank of a slot is about to run.
#[inline(always)]
pub(crate) fn enter(slot: &SlotHeader) {
    if IS_USED.load(Ordering::Relaxed) {
        change(slot);
    }
}

#[cold]
#[inline(never)]
fn change(slot: &SlotHeader) {
    // SAFETY: null, or what the rank has set, in its own heap.
    let own = unsafe { slot.folder.get().as_ref() };
    let wanted = own.map_or(0, |_| slot.id().0 + 1);
    let Some(place) = own.or_else(|| FIRST.get()) else { return };
    if NOW.swap(wanted, Ordering::Relaxed) != wanted {
        // SAFETY: a string that ends with zero. A folder that is gone is gone for the rank, too.
        unsafe {
            libc::chdir(place.name.as_ptr());
            libc::umask(place.mask);
        }
    }
}

/// The rank has changed its folder or its mask to what the PE has now.
fn changed(slot: &SlotHeader) {
    let place = Box::new(Folder { name: folder_now().unwrap_or_default(), mask: mask_now() });
    let before = slot.folder.replace(Box::into_raw(place));
    if !before.is_null() {
        // SAFETY: made here, by the same rank.
        drop(unsafe { Box::from_raw(before) });
    }
    NOW.store(slot.id().0 + 1, Ordering::Relaxed);
}

fn changing<R>(call: impl FnOnce() -> R) -> R {
    let slot = signals::slot();
    if slot.is_some() {
        begin();
    }
    let result = call();
    if let Some(slot) = slot {
        changed(slot);
    }
    result
}

/// Says in the program's `errno` what the process's says.
fn with_errno(status: c_int) -> c_int {
    // SAFETY: errno of this thread.
    if status == -1 { signals::fail(unsafe { *libc::__errno_location() }) } else { status }
}

unsafe extern "C" fn chdir(path: *const c_char) -> c_int {
    // SAFETY: the program gives a string.
    with_errno(changing(|| unsafe { libc::chdir(path) }))
}

unsafe extern "C" fn fchdir(folder: c_int) -> c_int {
    // SAFETY: a plain call.
    with_errno(changing(|| unsafe { libc::fchdir(folder) }))
}

unsafe extern "C" fn umask(mask: libc::mode_t) -> libc::mode_t {
    // SAFETY: a plain call.
    changing(|| unsafe { libc::umask(mask) })
}

/// What is here in the place of libc's functions of these names.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        "chdir" => chdir as *const (),
        "fchdir" => fchdir as *const (),
        "umask" => umask as *const (),
        _ => return None,
    })
}
