//! Visits the words of memory, fast where few of them are addresses.

use crate::arena::Arena;
use crate::fetch;

/// Start and end of a range of memory.
pub type Range = (usize, usize);

const WORD: usize = size_of::<usize>();
/// Words that are checked together.
const GROUP: usize = 16;
/// Prefetch distance in bytes: processors prefetch by themselves, but stop at the end of each page.
const AHEAD: usize = 8 << 10;
/// A range up to this size is likely to be in a cache, where prefetching takes longer than reading.
const CACHED: usize = 256 << 10;
/// Bytes of a cache line.
const LINE: usize = 64;
/// More than the frames of the functions here, including all their callees.
const FRAMES: usize = 16 << 10;

/// Calls `f` with the address and the value of each aligned word of a range, until it returns
/// false.
///
/// # Safety
/// The range is readable.
pub(super) unsafe fn each((start, end): Range, mut f: impl FnMut(usize, usize) -> bool) {
    for at in (start.next_multiple_of(WORD)..end.saturating_sub(WORD - 1)).step_by(WORD) {
        // SAFETY: in the range, which is readable, says the caller; R3.
        if !f(at, unsafe { (at as *const usize).read_volatile() }) {
            return;
        }
    }
}

/// [`each`] for the words that are addresses in the arena.
///
/// # Safety
/// The range is readable.
pub(super) unsafe fn each_in_arena(
    arena: &Arena,
    range: Range,
    f: impl FnMut(usize, usize) -> bool,
) {
    let bounds = Bounds { base: arena.layout.base, size: arena.layout.size() };
    // SAFETY: readable, says the caller.
    unsafe { each_within(bounds, range, f) };
}

/// [`each`] for the words that are addresses within these bounds.
///
/// # Safety
/// The range is readable.
unsafe fn each_within(
    bounds: Bounds,
    (start, end): Range,
    mut f: impl FnMut(usize, usize) -> bool,
) {
    // Of the stack that this runs on a copy could overlap what is copied: it lies in a frame near this one.
    let here = (&raw const bounds).addr();
    if start < here + FRAMES && here < end + FRAMES {
        // SAFETY: readable, says the caller.
        unsafe { each((start, end), |at, word| !bounds.contain(word) || f(at, word)) };
        return;
    }
    let mut at = start.next_multiple_of(WORD);
    // SAFETY: groups and words lie in the range, which is readable, says the caller.
    unsafe {
        while at < end {
            let group = (at, (at + GROUP * WORD).min(end));
            let is_full = group.1 - at == GROUP * WORD;
            if !is_full || bounds.any_in(at as *const [usize; GROUP]) {
                let mut goes_on = true;
                each(group, |at, word| {
                    goes_on = !bounds.contain(word) || f(at, word);
                    goes_on
                });
                if !goes_on {
                    return;
                }
            }
            at = group.1;
            if is_full {
                at = bounds.skip(at, end);
            }
        }
    }
}

/// A range of addresses.
#[derive(Clone, Copy)]
struct Bounds {
    base: usize,
    size: usize,
}

impl Bounds {
    #[inline(always)]
    fn contain(self, word: usize) -> bool {
        word.wrapping_sub(self.base) < self.size
    }

    /// Whether any word of a group is in the range.
    ///
    /// # Safety
    /// The group is readable.
    #[inline(always)]
    unsafe fn any_in(self, group: *const [usize; GROUP]) -> bool {
        // SAFETY: readable, says the caller.
        let words = unsafe { group.read_unaligned() };
        words.iter().fold(false, |any, word| any | self.contain(*word))
    }

    /// The first group from `at` on that has a word in the range, or the last, shorter one.
    ///
    /// # Safety
    /// The range up to `end` is readable.
    #[inline]
    unsafe fn skip(self, at: usize, end: usize) -> usize {
        // SAFETY: readable up to `end`, says the caller; the processor has the instructions that it was asked for.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx512f") {
                return self.skip_avx512(at, end);
            } else if std::arch::is_x86_feature_detected!("avx2") {
                return self.skip_avx2(at, end);
            }
            self.skip_any(at, end)
        }
    }

    /// [`skip`](Self::skip), to be compiled for several kinds of processors.
    ///
    /// # Safety
    /// As for `skip`.
    #[inline(always)]
    unsafe fn skip_any(self, mut at: usize, end: usize) -> usize {
        let is_group_without = |at| {
            // SAFETY: the group lies before `end`, up to where all is readable, says the caller.
            at + GROUP * WORD <= end && !unsafe { self.any_in(at as *const [usize; GROUP]) }
        };
        let far = if end - at > CACHED { end - AHEAD } else { at };
        while at < far && is_group_without(at) {
            (0..GROUP * WORD).step_by(LINE).for_each(|line| fetch(at + AHEAD + line));
            at += GROUP * WORD;
        }
        while is_group_without(at) {
            at += GROUP * WORD;
        }
        at
    }

    /// # Safety
    /// As for [`skip`](Self::skip), on a processor with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn skip_avx2(self, at: usize, end: usize) -> usize {
        // SAFETY: readable up to `end`, says the caller.
        unsafe { self.skip_any(at, end) }
    }

    /// # Safety
    /// As for [`skip`](Self::skip), on a processor with AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn skip_avx512(self, at: usize, end: usize) -> usize {
        // SAFETY: readable up to `end`, says the caller.
        unsafe { self.skip_any(at, end) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, each_within};

    #[test]
    fn the_stack_that_this_runs_on_is_read_wherever_the_range_begins() {
        let bounds = Bounds { base: 1 << 40, size: 1 << 30 };
        // Of 16 KiB above a place in a frame, which the caller has in frames below this one's.
        let mut words = [7usize; 2048];
        *std::hint::black_box(&mut words[2047]) = 1 << 40;
        let end = words.as_ptr_range().end as usize;
        for start in (end - (24 << 10)..end - 8).step_by(8) {
            let mut found = 0;
            // SAFETY: the stack of this thread, which has room for frames of these functions.
            unsafe {
                each_within(bounds, (start, end), |at, word| {
                    found += usize::from((at, word) == (end - 8, 1 << 40));
                    true
                });
            }
            assert_eq!(found, 1, "from {start:#x} to {end:#x}");
        }
    }

    #[test]
    fn groups_with_an_address_are_found_wherever_it_is() {
        let bounds = Bounds { base: 1 << 40, size: 1 << 30 };
        let mut words = vec![7usize; 16 * 20 + 5];
        let range = words.as_ptr_range();
        let (start, end) = (range.start as usize, range.end as usize);
        // SAFETY: the vector's memory.
        unsafe { assert_eq!(bounds.skip(start, end), start + 16 * 20 * 8, "none") };
        for (at, word) in words[..16 * 20].iter_mut().enumerate() {
            for address in [1 << 40, (1 << 40) + (1 << 30) - 1] {
                *word = address;
                // SAFETY: the vector's memory.
                unsafe { assert_eq!(bounds.skip(start, end), start + at / 16 * 16 * 8) };
            }
            *word = (1 << 40) + (1 << 30);
        }
    }
}
