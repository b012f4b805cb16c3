//! Which pages of the arena have memory: those that were ever written and not returned.

use std::ops::Range;

use crate::pages::PAGE;
use crate::sys;

/// Adds the parts of whole pages that have memory.
pub(crate) fn resident(range: Range<usize>, found: &mut Vec<Range<usize>>) {
    /// Pages queried at once.
    const AT_ONCE: usize = 1024;
    let mut present = [0u8; AT_ONCE];
    for start in range.clone().step_by(AT_ONCE * PAGE) {
        let len = (range.end - start).min(AT_ONCE * PAGE);
        let present = &mut present[..len.div_ceil(PAGE)];
        if !sys::resident_pages(start, present) || sys::may_have_swapped() {
            present.fill(1);
        }
        for (i, present) in present.iter().enumerate() {
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
    let mut resident = [0];
    let is_known = sys::resident_pages(address & !(PAGE - 1), &mut resident);
    !is_known || resident[0] & 1 != 0 || sys::may_have_swapped()
}
