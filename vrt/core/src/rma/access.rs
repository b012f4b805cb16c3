//! The one way to the memory of another rank, in its node.
//!
//! Copies are made of relaxed atomic loads and stores (which cost what plain ones do), so that
//! accesses at the same time are no data race of the language, only a race of the program. Folds
//! are compare-and-swap loops on each element; what does not fit a word, or is not aligned, is
//! folded under a lock in the owner's control block.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::comm::operator::Operator;
use crate::rma::control::Control;

/// An address in the memory of another rank, as the ranks of a window keep it: reached only while
/// that rank's memory is leased, so it must not be taken for a reference when a rank is searched for
/// such before it moves. So its bits are the other way round.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere(usize);

impl Elsewhere {
    /// An address in the arena, hidden from searches.
    pub fn new(address: usize) -> Elsewhere {
        Elsewhere(!address)
    }

    /// The address; another rank's memory has to be leased while it is used.
    pub fn address(self) -> usize {
        !self.0
    }

    /// What is sent to others.
    pub fn word(self) -> u64 {
        self.0 as u64
    }

    /// What came from others.
    pub fn from_word(word: u64) -> Elsewhere {
        Elsewhere(word as usize)
    }
}

/// The memory of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Where its values begin.
    pub address: Elsewhere,
    /// Number of values.
    pub len: usize,
    /// Where its [`Control`] lies.
    pub control: Elsewhere,
}

impl Target {
    /// The words that lock the memory. The caller has leased it: it is in this node.
    pub fn control(&self) -> &Control {
        // SAFETY: the owner keeps its control block until all ranks have freed the window, and it
        // consists of atomics.
        unsafe { &*(self.control.address() as *const Control) }
    }
}

/// What is done to the memory.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Writes elements.
    Put {
        /// The elements to write.
        from: *const u8,
    },
    /// Reads elements.
    Get {
        /// Room for the elements.
        to: *mut u8,
    },
    /// `fetched` gets what was there, if it is not null.
    Accumulate {
        /// The right operands; the left ones are the memory's elements, which become the results.
        from: *const u8,
        /// Room for as many elements, or null.
        fetched: *mut u8,
        /// What is applied to each pair of elements.
        operator: Operator,
    },
    /// Writes one element of 1, 2, 4 or 8 bytes if the memory has the expected one.
    CompareAndSwap {
        /// The element that has to be there.
        expected: *const u8,
        /// The element to write.
        value: *const u8,
        /// Room for the element that was there, whether it was replaced or not.
        before: *mut u8,
    },
}

/// Does something to `count` elements of `each` bytes, `offset` bytes behind the beginning of a
/// rank's memory. It is done when this returns.
///
/// # Safety
/// The elements lie in the target's memory, which is in this node and which the owner keeps; the
/// addresses in `access` are valid for as many elements.
#[inline]
pub unsafe fn access(target: &Target, offset: usize, count: usize, each: usize, access: Access) {
    let memory = (target.address.address() as *mut u8).wrapping_add(offset);
    // SAFETY: as the caller promises.
    unsafe {
        match access {
            Access::Put { from } => copy(from, memory, count * each),
            Access::Get { to } => copy(memory, to, count * each),
            Access::Accumulate { from, fetched, operator } => {
                accumulate(target, memory, count, each, from, fetched, operator);
            }
            Access::CompareAndSwap { expected, value, before } => {
                compare_and_swap(target, memory, each, expected, value, before);
            }
        }
    }
}

/// # Safety
/// As [`access`].
unsafe fn accumulate(
    target: &Target,
    memory: *mut u8,
    count: usize,
    each: usize,
    from: *const u8,
    fetched: *mut u8,
    operator: Operator,
) {
    for i in 0..count * each / each.max(1) {
        // SAFETY: as the caller promises, for each of the elements.
        unsafe {
            let (at, from) = (memory.add(i * each), from.add(i * each));
            let mut before = [0u8; MOST];
            fold(target, at, from, operator, &mut before);
            if !fetched.is_null() {
                let to = fetched.add(i * each);
                std::ptr::copy_nonoverlapping(before.as_ptr(), to, operator.scalar.size());
            }
        }
    }
}

/// # Safety
/// As [`access`].
unsafe fn compare_and_swap(
    target: &Target,
    memory: *mut u8,
    each: usize,
    expected: *const u8,
    value: *const u8,
    before: *mut u8,
) {
    // SAFETY: the three addresses are valid for an element, which has at most 8 bytes, and so is the
    // place in the target's memory.
    unsafe {
        let word = |at: *const u8| {
            let mut word = [0u8; 8];
            std::ptr::copy_nonoverlapping(at, word.as_mut_ptr(), each);
            u64::from_le_bytes(word)
        };
        let (wanted, value) = (word(expected), word(value));
        let swap = |was: u64| (was == wanted).then_some(value);
        let was = if (memory as usize).is_multiple_of(each) {
            update(memory, each, swap)
        } else {
            // No word of the processor's: as with folds, nobody else may be at it.
            let _lock = target.control().lock_element();
            let mut was = [0u8; 8];
            copy(memory, was.as_mut_ptr(), each);
            let was = u64::from_le_bytes(was);
            if let Some(new) = swap(was) {
                copy(new.to_le_bytes().as_ptr(), memory, each);
            }
            was
        };
        std::ptr::copy_nonoverlapping(was.to_le_bytes().as_ptr(), before, each);
    }
}

/// Most bytes of a built-in value.
const MOST: usize = 32;

/// Folds one element; `before` gets what it was.
///
/// # Safety
/// As [`access`].
unsafe fn fold(
    target: &Target,
    at: *mut u8,
    from: *const u8,
    operator: Operator,
    before: &mut [u8; MOST],
) {
    let size = operator.scalar.size();
    // SAFETY: as the caller promises; both blocks have room for any element.
    unsafe {
        if size <= 8 && size.is_power_of_two() && (at as usize).is_multiple_of(size) {
            let was = update(at, size, |was| {
                let mut folded = was.to_le_bytes();
                operator.fold(folded.as_mut_ptr(), from, size);
                Some(u64::from_le_bytes(folded))
            });
            before[..8].copy_from_slice(&was.to_le_bytes());
            return;
        }
        let _lock = target.control().lock_element();
        copy(at, before.as_mut_ptr(), size);
        let mut folded = *before;
        operator.fold(folded.as_mut_ptr(), from, size);
        copy(folded.as_ptr(), at, size);
    }
}

/// Replaces a word of so many bytes atomically by what `f` makes of it, if anything; gives what it
/// was.
///
/// # Safety
/// The word lies in memory that stays, aligned, and is touched by atomics only.
unsafe fn update(at: *mut u8, size: usize, f: impl Fn(u64) -> Option<u64>) -> u64 {
    macro_rules! update {
        ($atomic:ty, $ty:ty) => {{
            // SAFETY: as the caller promises.
            let word = unsafe { <$atomic>::from_ptr(at.cast::<$ty>()) };
            let change = |was: $ty| f(u64::from(was)).map(|new| new as $ty);
            match word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
                Ok(was) | Err(was) => u64::from(was),
            }
        }};
    }
    match size {
        1 => update!(AtomicU8, u8),
        2 => update!(AtomicU16, u16),
        4 => update!(AtomicU32, u32),
        _ => update!(AtomicU64, u64),
    }
}

/// Copies bytes, words at a time where both sides are aligned.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let words = if (from as usize | to as usize).is_multiple_of(8) { len / 8 } else { 0 };
    // SAFETY: as the caller promises; words are aligned.
    unsafe {
        for i in 0..words {
            let from = AtomicU64::from_ptr(from.cast::<u64>().cast_mut().add(i));
            let to = AtomicU64::from_ptr(to.cast::<u64>().add(i));
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for i in words * 8..len {
            let from = AtomicU8::from_ptr(from.cast_mut().add(i));
            AtomicU8::from_ptr(to.add(i)).store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_aligned_are_compared_and_swapped() {
        let control = Control::default();
        let mut memory = [0u64; 4];
        for each in [2, 4, 8] {
            let target = Target {
                address: Elsewhere::new(memory.as_mut_ptr() as usize + 1),
                len: 24,
                control: Elsewhere::new(std::ptr::from_ref(&control) as usize),
            };
            let swap = |expected: u64, value: u64| {
                let mut before = [0u8; 8];
                let (expected, value) = (expected.to_le_bytes(), value.to_le_bytes());
                let access_it = Access::CompareAndSwap {
                    expected: expected.as_ptr(),
                    value: value.as_ptr(),
                    before: before.as_mut_ptr(),
                };
                // SAFETY: the element lies in `memory`, and the words have its length.
                unsafe { access(&target, 8, 1, each, access_it) };
                u64::from_le_bytes(before)
            };
            let value = 0x0102_0304_0506_0708 >> (64 - 8 * each);
            assert_eq!(swap(0, value), 0);
            assert_eq!(swap(0, 5), value);
            assert_eq!(swap(value, 0), value);
            assert_eq!(memory, [0; 4]);
        }
    }
}
