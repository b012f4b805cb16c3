//! The working directory, and the mask for new files, of ranks that run images: each rank has its own, as a process
//! does.
//!
//! A PE has only one of each. A rank that has changed its own keeps them in its slot; as soon as a PE has such a rank,
//! it changes to the directory of the rank that is about to run, if it differs from the current one.

use std::env;
use std::ffi::{c_char, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::arena::SlotHeader;
use crate::heap_word::runtime_heap;
use crate::posix::errno::{fail, of_process};
use crate::posix::signals::tables::slot;
use crate::sys;

/// A rank of this PE has changed its own.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// The initial directory of the PE.
static FIRST: OnceLock<Folder> = OnceLock::new();
/// The slot, plus 1, whose directory the PE is in; 0: the initial one.
static NOW: AtomicU32 = AtomicU32::new(0);

/// A working directory, and the mask.
struct Folder {
    name: PathBuf,
    mask: libc::mode_t,
}

impl Folder {
    /// The PE's current ones. The mask can only be found out by setting it twice.
    fn now() -> Folder {
        let mask = sys::umask(0o077);
        sys::umask(mask);
        Folder { name: env::current_dir().unwrap_or_default(), mask }
    }
}

/// From now on directories are switched with ranks.
#[cold]
fn begin() {
    let _: &Folder = FIRST.get_or_init(|| runtime_heap(Folder::now));
    IS_USED.store(true, Ordering::Relaxed);
}

/// A rank has arrived at this PE.
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
    // SAFETY: null, or what `changed` has put into the heap of the rank, which has not ended.
    let own = unsafe { slot.folder.get().cast::<Folder>().as_ref() };
    let wanted = own.map_or(0, |_| slot.id().0 + 1);
    let Some(place) = own.or_else(|| FIRST.get()) else { return };
    if NOW.swap(wanted, Ordering::Relaxed) != wanted {
        // A folder that is gone is gone for the rank, too.
        let _ = env::set_current_dir(&place.name);
        sys::umask(place.mask);
    }
}

/// The rank has changed its directory or its mask to the PE's current one.
fn changed(slot: &SlotHeader) {
    let before = slot.folder.replace(Box::into_raw(Box::new(Folder::now())).cast());
    if !before.is_null() {
        // SAFETY: the box that the rank's last call of this function has put there.
        drop(unsafe { Box::from_raw(before.cast::<Folder>()) });
    }
    NOW.store(slot.id().0 + 1, Ordering::Relaxed);
}

fn changing<R>(call: impl FnOnce() -> R) -> R {
    let slot = slot();
    if slot.is_some() {
        begin();
    }
    let result = call();
    if let Some(slot) = slot {
        changed(slot);
    }
    result
}

/// Copies the process's `errno` to the program's.
fn with_errno(status: c_int) -> c_int {
    if status == -1 { fail(of_process().get()) } else { status }
}

unsafe extern "C" fn chdir(path: *const c_char) -> c_int {
    // SAFETY: S4: the caller gives a C string.
    with_errno(changing(|| unsafe { libc::chdir(path) }))
}

unsafe extern "C" fn fchdir(folder: c_int) -> c_int {
    with_errno(changing(|| sys::fchdir(folder)))
}

unsafe extern "C" fn umask(mask: libc::mode_t) -> libc::mode_t {
    changing(|| sys::umask(mask))
}

/// The replacement for libc's function of this name.
pub(crate) fn provided(name: &str) -> Option<*const ()> {
    Some(match name {
        "chdir" => chdir as *const (),
        "fchdir" => fchdir as *const (),
        "umask" => umask as *const (),
        _ => return None,
    })
}
