//! What is known of the system's pages and memory.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;
pub(crate) use crate::sys::PAGE;

/// Whether the arena should have 2 MiB pages; once it is mapped, whether it does.
pub(crate) static HUGE_PAGES: AtomicBool = AtomicBool::new(false);

/// Bytes of a cache line. Ranges begin and end at multiples of this: data in a ring is never shorter.
pub const LINE: usize = 64;

/// Bytes of a large page.
pub const HUGE_PAGE: usize = 2 << 20;

/// Sets whether the arena should have 2 MiB pages, if the system provides them. To be called before it is reserved; or
/// before it is attached, when it is known whether it has them.
pub fn want_huge_pages(wanted: bool) {
    HUGE_PAGES.store(wanted, Ordering::Relaxed);
}

/// Whether large ranges of the arena get 2 MiB pages.
pub fn has_huge_pages() -> bool {
    HUGE_PAGES.load(Ordering::Relaxed)
}

/// Whether there is enough memory for each slot to have an additional large page.
static AMPLE: AtomicBool = AtomicBool::new(false);

/// Whether the slots may waste part of a large page each: all of them together waste little of the machine's memory.
pub(crate) fn memory_is_ample() -> bool {
    AMPLE.load(Ordering::Relaxed)
}

/// Checks whether memory is ample for this many slots.
pub(crate) fn check_memory_headroom(slots: usize) {
    AMPLE.store(slots * HUGE_PAGE <= machine_memory() / 16, Ordering::Relaxed);
}

/// Bytes of memory that the machine has.
pub fn machine_memory() -> usize {
    let [pages, page] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| sys::sysconf(name));
    pages.max(0) as usize * page.max(0) as usize
}

/// Returns pages to the system; their contents become zero. Returns whether that was possible.
///
/// # Safety
/// Whole pages of the arena, whose contents nobody needs any more.
pub(crate) unsafe fn give_back(start: usize, len: usize) -> bool {
    // SAFETY: nobody misses what this changes, says the caller; the pages stay mapped.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_REMOVE) == 0 }
}
