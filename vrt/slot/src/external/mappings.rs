//! Memory that ranks have mapped. An entry is a range; what is unmapped, or mapped over, is cut out
//! of the ranges that it touches, and what is left of them stays their ranks'. That is done before the
//! call that unmaps it: afterwards the same addresses may be another rank's already.

use std::ffi::{c_int, c_void};

use super::register::Taken;
use super::{owner, register};
use crate::held::Kind;
use crate::outside;

/// Lengths are those of whole pages.
const PAGE: usize = 4096;

/// The call maps `len` bytes.
pub fn maps(len: usize, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let mapped = call();
    if mapped != libc::MAP_FAILED {
        replaced(mapped as usize, len, owner().filter(|_| !outside::is_allocating()));
    }
    mapped
}

/// The call unmaps `len` bytes.
pub(crate) fn unmaps(at: *mut c_void, len: usize, call: impl FnOnce() -> c_int) -> c_int {
    let cut = cut(at as usize, len);
    let status = call();
    if status != 0 {
        cut.undo();
    }
    status
}

/// The call makes a mapping longer or shorter, and may move it.
pub(crate) fn remaps(
    at: *mut c_void,
    (old, new): (usize, usize),
    flags: c_int,
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    // Whose it was it stays. With an old length of zero it is mapped once more.
    let stays = old == 0 || flags & libc::MREMAP_DONTUNMAP != 0;
    let cut = cut(at as usize, if stays { 0 } else { old });
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

/// A range is a new mapping of a rank's, or of nobody.
fn replaced(at: usize, len: usize, slot: Option<u32>) {
    cut(at, len);
    if let Some(slot) = slot {
        register::add(Kind::Mapping, at, len.next_multiple_of(PAGE), slot);
    }
}

/// Ranges that were cut, and the parts that were.
struct Cut {
    touched: Vec<Taken>,
    at: usize,
    end: usize,
}

impl Cut {
    /// Whose the first part was.
    fn owner(&self) -> Option<u32> {
        self.touched.iter().min_by_key(|range| range.key).map(|range| range.slot)
    }

    /// It is mapped all the same.
    fn undo(self) {
        for range in self.touched {
            let (first, last) = (range.key.max(self.at), (range.key + range.len).min(self.end));
            register::add(Kind::Mapping, first, last - first, range.slot);
        }
    }
}

/// A range is no mapping any more.
fn cut(at: usize, len: usize) -> Cut {
    let end = at.saturating_add(len.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX));
    let touched =
        register::take_all(Kind::Mapping, |start, len, _| start < end && at < start + len);
    for range in &touched {
        let last = range.key + range.len;
        if range.key < at {
            register::add(Kind::Mapping, range.key, at - range.key, range.slot);
        }
        if last > end {
            register::add(Kind::Mapping, end, last - end, range.slot);
        }
    }
    Cut { touched, at, end }
}
