//! Memory that ranks have mapped. An entry is a range; what is unmapped, or mapped over, is cut out
//! of the ranges that it touches, and what is left of them stays their ranks'.

use std::ffi::{c_int, c_void};

use super::{Kind, register, running};

/// Lengths are those of whole pages.
const PAGE: usize = 4096;

/// The call maps `len` bytes.
pub(crate) fn maps(len: usize, call: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let mapped = call();
    if mapped != libc::MAP_FAILED {
        replaced(mapped as usize, len, running().map(|slot| slot.id().0));
    }
    mapped
}

/// The call unmaps `len` bytes.
pub(crate) fn unmaps(at: *mut c_void, len: usize, call: impl FnOnce() -> c_int) -> c_int {
    let status = call();
    if status == 0 {
        cut(at as usize, len);
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
    let moved = call();
    if moved == libc::MAP_FAILED {
        return moved;
    }
    // Whose it was it stays. With an old length of zero it is mapped once more.
    let stays = old == 0 || flags & libc::MREMAP_DONTUNMAP != 0;
    let slot = match stays {
        true => running().map(|slot| slot.id().0),
        false => cut(at as usize, old),
    };
    replaced(moved as usize, new, slot);
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

/// A range is no mapping any more. Returns whose the first part of it was.
fn cut(at: usize, len: usize) -> Option<u32> {
    let end = at + len.next_multiple_of(PAGE);
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
    touched.iter().min_by_key(|range| range.key).map(|range| range.slot)
}
