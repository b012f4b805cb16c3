//! Which pages of the arena have memory: those that were ever written and not returned.

use std::ops::Range;

use crate::pages::PAGE;

/// Adds the parts of whole pages that have memory.
pub(crate) fn resident(range: Range<usize>, found: &mut Vec<Range<usize>>) {
    /// Pages queried at once.
    const AT_ONCE: usize = 1024;
    let mut present = [0u8; AT_ONCE];
    for start in range.clone().step_by(AT_ONCE * PAGE) {
        let len = (range.end - start).min(AT_ONCE * PAGE);
        // SAFETY: asks about pages of our mapping; there is room for an answer for each.
        let asked =
            unsafe { libc::mincore(start as *mut libc::c_void, len, present.as_mut_ptr().cast()) };
        if asked != 0 || may_be_swapped() {
            present = [1; AT_ONCE];
        }
        for (i, present) in present[..len.div_ceil(PAGE)].iter().enumerate() {
            let (page, is_present) = (start + i * PAGE, present & 1 != 0);
            match found.last_mut() {
                Some(last) if is_present && last.end == page => last.end = page + PAGE,
                _ if is_present => found.push(page..page + PAGE),
                _ => {}
            }
        }
    }
}

/// Whether a page of the arena has ever been written and not been returned; or may have been, if the system could have
/// swapped it out.
pub(crate) fn is_resident(address: usize) -> bool {
    let mut resident = 0u8;
    // SAFETY: asks about one page of our mapping; zeros are a valid answer of the system's.
    unsafe {
        let page = (address & !4095) as *mut libc::c_void;
        if libc::mincore(page, 4096, (&raw mut resident).cast()) != 0 || resident & 1 != 0 {
            return true;
        }
    }
    may_be_swapped()
}

/// Whether the system could have swapped out memory of the arena.
fn may_be_swapped() -> bool {
    // SAFETY: zeros are a valid answer of the system's.
    unsafe {
        let mut system: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&mut system) != 0 || system.freeswap < system.totalswap
    }
}
