//! Using a stack to a depth.

use std::hint::black_box;

/// Words that each call keeps on the stack.
const WORDS: usize = 32;

/// The result of using a stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// Bytes from the caller's frame to the deepest call.
    pub depth: usize,
    /// Calls whose words had changed when they returned.
    pub spoiled: usize,
}

/// Calls itself until `depth` bytes of the stack are in use, and calls `inner` there. The words on the stack contain
/// `mark`.
pub(super) fn at_depth(depth: usize, mark: u64, inner: &mut dyn FnMut()) -> Used {
    let top = 0_u8;
    descend(std::ptr::from_ref(black_box(&top)).addr(), depth, mark, inner)
}

#[inline(never)]
fn descend(top: usize, depth: usize, mark: u64, inner: &mut dyn FnMut()) -> Used {
    let word = |number: usize| mark.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number as u64;
    let mut words: [u64; WORDS] = std::array::from_fn(word);
    let here = black_box(&mut words).as_ptr().addr();
    let used = top.abs_diff(here);
    let mut found = if used < depth {
        descend(top, depth, mark.wrapping_add(1), inner)
    } else {
        inner();
        Used { depth: used, spoiled: 0 }
    };
    let is_kept = (0..).zip(black_box(&words)).all(|(number, kept)| *kept == word(number));
    found.spoiled += usize::from(!is_kept);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_go_as_deep_as_asked_for_and_not_much_deeper() {
        for depth in [1, 1000, 100_000] {
            let mut calls = 0;
            let used = at_depth(depth, 7, &mut || calls += 1);
            assert_eq!((calls, used.spoiled), (1, 0));
            assert!(used.depth >= depth && used.depth < depth + 4096, "{used:?}");
        }
    }
}
