//! Memory that ranks have mapped, and pages of their slots whose protection they have changed. An entry is a range; a
//! range that is unmapped, or mapped over, is cut out of the entries that it overlaps, and their remaining parts stay
//! their ranks'. That is done before the call that unmaps it: afterwards the same addresses may already belong to
//! another rank.
//!
//! The protection of a page exists only in one process. A rank is pinned while it has changed pages until all have the
//! usual protection again, and this is restored when it has ended.

use std::ffi::{c_int, c_void};

use crate::arena::Arena;
use crate::held::Kind;
use crate::owner::owner;
use crate::register::{self, Taken};
use crate::sys::PAGE;
use crate::{image, outside};

/// The call maps `len` bytes.
pub(crate) fn maps(len: usize, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let mapped = call();
    if mapped != libc::MAP_FAILED {
        replaced(mapped as usize, len, owner().filter(|_| !outside::is_allocating()));
    }
    mapped
}

/// The call unmaps `len` bytes.
pub(crate) fn unmaps(at: *mut c_void, len: usize, call: impl FnOnce() -> c_int) -> c_int {
    let cut = cut(Kind::Mapping, at as usize, len);
    let status = call();
    if status != 0 {
        cut.undo();
    }
    status
}

/// The usual protection of each page of a slot.
const USUAL: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// The call sets the protection of `len` bytes.
pub(crate) fn protects(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    protects_with_key(at, len, protection, -1, call)
}

/// The same with a protection key; 0 is that of all memory, and -1 changes none.
pub(crate) fn protects_with_key(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    key: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let status = call();
    let (start, end) = (at as usize, (at as usize).saturating_add(len));
    // Elsewhere it is a mapping of the rank's, which keeps it anyhow, or the process's.
    if status == 0 && len > 0 && Arena::contains(start) && !outside::is_allocating() {
        cut(Kind::Protection, start, len);
        let is_usual = protection == USUAL && key <= 0 && !image::has_code(start..end);
        if let Some(slot) = owner().filter(|_| !is_usual) {
            register::add(Kind::Protection, start, len.next_multiple_of(PAGE), slot);
        }
    }
    status
}

/// The rank of a slot has ended: restores access to all pages for the next one.
pub(super) fn unprotect_all_of(slot: u32) {
    for range in register::take_all(Kind::Protection, |_, _, of| of == slot) {
        let (at, end) = (range.key, range.key + range.len);
        if !image::has_code(at..end) {
            // SAFETY: pages of a slot whose rank has ended get the protection that all others have.
            unsafe {
                libc::mprotect(at as *mut c_void, range.len, USUAL | image::protection_of_code());
            }
        }
    }
}

/// The call changes the length of a mapping, and may move it.
pub(crate) fn remaps(
    at: *mut c_void,
    (old, new): (usize, usize),
    flags: c_int,
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    // Whose it was it stays. With an old length of zero it is mapped once more.
    let stays = old == 0 || flags & libc::MREMAP_DONTUNMAP != 0;
    let cut = cut(Kind::Mapping, at as usize, if stays { 0 } else { old });
    let moved = call();
    if moved == libc::MAP_FAILED {
        cut.undo();
        return moved;
    }
    replaced(moved as usize, new, if stays { owner() } else { cut.owner() });
    moved
}

/// The call attaches a segment of shared memory.
pub(crate) fn attaches(call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    // One byte stands for all: a segment is detached as a whole.
    maps(1, call)
}

/// The call detaches a segment of shared memory.
pub(crate) fn detaches(at: *const c_void, call: impl FnOnce() -> c_int) -> c_int {
    unmaps(at.cast_mut(), 1, call)
}

/// A range is a new mapping of a rank, or of none.
fn replaced(at: usize, len: usize, slot: Option<u32>) {
    cut(Kind::Mapping, at, len);
    if let Some(slot) = slot {
        register::add(Kind::Mapping, at, len.next_multiple_of(PAGE), slot);
    }
}

/// Ranges that were cut, and the parts cut out.
struct Cut {
    kind: Kind,
    touched: Vec<Taken>,
    at: usize,
    end: usize,
}

impl Cut {
    /// The owner of the first part.
    fn owner(&self) -> Option<u32> {
        self.touched.iter().min_by_key(|range| range.key).map(|range| range.slot)
    }

    /// It is still mapped: restores the ranges.
    fn undo(self) {
        for range in self.touched {
            let (first, last) = (range.key.max(self.at), (range.key + range.len).min(self.end));
            register::add(self.kind, first, last - first, range.slot);
        }
    }
}

/// A range does not contain anything of this kind any more.
fn cut(kind: Kind, at: usize, len: usize) -> Cut {
    let end = at.saturating_add(len.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX));
    let touched = register::take_all(kind, |start, len, _| start < end && at < start + len);
    for range in &touched {
        let last = range.key + range.len;
        if range.key < at {
            register::add(kind, range.key, at - range.key, range.slot);
        }
        if last > end {
            register::add(kind, end, last - end, range.slot);
        }
    }
    Cut { kind, touched, at, end }
}
