//! Access to the memory of another rank in the same node; there is no other way.
//!
//! Copies consist of relaxed atomic loads and stores (which cost the same as plain ones), so that concurrent accesses
//! are not a data race of the language, only a race of the program. Folds are compare-and-swap loops on each element;
//! elements that do not fit a word, or are not aligned, are folded under a lock in the owner's control block. So are
//! several elements: MPI only requires that each single element is folded atomically (MPI-4.1 section 12.7.1), but
//! programs write a record by one call, with `MPI_BYTE` and `MPI_REPLACE`, and read it by another. Elements with gaps,
//! as pairs of a value and its location may be, are folded without them: nothing in a gap is read or written.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "elements lie in a window, as the caller promises"
    )
)]

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::comm::operator::{Op, Operator};
use crate::layout::Scalar;
use crate::rma::control::Control;

/// An address in the memory of another rank, as the ranks of a window keep it. It is used only while that rank's memory
/// is leased, so it must not count as a reference when a rank is searched for references before it moves. Therefore its
/// bits are inverted.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere(usize);

impl Elsewhere {
    /// An address in the arena, hidden from searches.
    pub fn new(address: usize) -> Elsewhere {
        Elsewhere(!address)
    }

    /// The address; another rank's memory must be leased while it is used.
    pub fn address(self) -> usize {
        !self.0
    }

    /// The form sent to others.
    pub fn word(self) -> u64 {
        self.0 as u64
    }

    /// The address from the form received from others.
    pub fn from_word(word: u64) -> Elsewhere {
        Elsewhere(word as usize)
    }
}

/// The memory of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The address of its values.
    pub address: Elsewhere,
    /// Number of values.
    pub len: usize,
    /// The address of its [`Control`].
    pub control: Elsewhere,
}

impl Target {
    /// The words that lock the memory.
    ///
    /// # Safety
    /// The target is a rank's part of a window, in this node (W1).
    pub(super) unsafe fn control(&self) -> &Control {
        // SAFETY: W1, says the caller; it consists of atomics.
        unsafe { &*(self.control.address() as *const Control) }
    }
}

/// An operation on the memory.
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
    /// `fetched` gets the previous values, if it is not null. All elements have the same distances as those in the
    /// memory, including the gaps of their type.
    Accumulate {
        /// The right operands; the left ones are the memory's elements, which become the results.
        from: *const u8,
        /// Room for as many elements, or null.
        fetched: *mut u8,
        /// The operation on each pair of elements.
        operator: Operator,
    },
    /// Writes one element of 1, 2, 4 or 8 bytes if the memory has the expected value.
    CompareAndSwap {
        /// The expected element.
        expected: *const u8,
        /// The element to write.
        value: *const u8,
        /// Room for the previous element, whether it was replaced or not.
        before: *mut u8,
    },
}

/// Executes an operation on `count` elements of `each` bytes, `offset` bytes after the beginning of a rank's memory. It
/// is complete when this returns.
///
/// # Safety
/// The elements lie in the target's memory, which is in this node and is kept by its owner; the addresses in `access`
/// are valid for as many elements.
#[inline]
pub unsafe fn access(target: &Target, offset: usize, count: usize, each: usize, access: Access) {
    let memory = (target.address.address() as *mut u8).wrapping_add(offset);
    // SAFETY: the elements are in the target's memory, and the addresses have as many, says the caller.
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
    let (scalar, size) = (operator.scalar, operator.scalar.size());
    let len = count * size;
    debug_assert_eq!(each, scalar.extent(), "elements lie as far apart as their type says");
    let are_words = is_word(memory, size) && scalar.is_dense();
    // SAFETY: W1, says the caller.
    let _lock = (count > 1 || !are_words).then(|| unsafe { target.control() }.lock_elements());
    // SAFETY: each step is inside `count` elements, which are on both sides, says the caller.
    unsafe {
        match operator.op {
            Op::Nothing if fetched.is_null() => {}
            Op::Nothing if are_words => load(memory, fetched, len, size),
            Op::Replace if are_words && fetched.is_null() => store(from, memory, len, size),
            _ if are_words => {
                for at in (0..len).step_by(BLOCK) {
                    let mut was = [0u8; BLOCK];
                    let was = &mut was[..BLOCK.min(len - at)];
                    fold_words(memory.add(at), from.add(at), was, operator);
                    if !fetched.is_null() {
                        std::ptr::copy_nonoverlapping(was.as_ptr(), fetched.add(at), was.len());
                    }
                }
            }
            _ => {
                for at in (0..count * each).step_by(each) {
                    let (mut folded, mut other) = ([0u8; MOST], [0u8; MOST]);
                    for (there, here) in parts(scalar) {
                        let (len, here) = (here.len(), here.start);
                        copy(memory.add(at + there), folded.as_mut_ptr().add(here), len);
                        if operator.op != Op::Nothing {
                            copy(from.add(at + there), other.as_mut_ptr().add(here), len);
                        }
                        if !fetched.is_null() {
                            copy(folded.as_ptr().add(here), fetched.add(at + there), len);
                        }
                    }
                    operator.fold(folded.as_mut_ptr(), other.as_ptr(), size);
                    for (there, here) in parts(scalar) {
                        let (len, here) = (here.len(), here.start);
                        copy(folded.as_ptr().add(here), memory.add(at + there), len);
                    }
                }
            }
        }
    }
}

/// The parts of an element that have data: where each lies in memory, and which bytes of the packed element it is.
fn parts(scalar: Scalar) -> impl Iterator<Item = (usize, Range<usize>)> {
    let (size, gap) = (scalar.size(), scalar.gap());
    let first = gap.as_ref().map_or(size, |gap| gap.start);
    let second = gap.map(|gap| (gap.end, first..size));
    std::iter::once((0, 0..first)).chain(second)
}

/// Most bytes that are folded at once: some words.
const BLOCK: usize = 512;

/// Folds elements that are words, as many as there is room for what they were. All are folded at once, as if nobody
/// else were at them, and then replaced word by word; a word that another has changed meanwhile is folded again.
///
/// # Safety
/// As [`access`], for as many bytes as `was` has.
unsafe fn fold_words(memory: *mut u8, from: *const u8, was: &mut [u8], operator: Operator) {
    let (len, size) = (was.len(), operator.scalar.size());
    if len <= 8 && words(memory, len, size).count() == 1 {
        // SAFETY: one word, and W2; both sides have `len` bytes, says the caller.
        let word = unsafe { fold_word(memory, from, len, operator) };
        return was.copy_from_slice(&word.to_le_bytes()[..len]);
    }
    let mut folded = [0u8; BLOCK];
    // SAFETY: both sides have `len` bytes, says the caller; `folded` has a block, which is not shorter.
    unsafe {
        load(memory, was.as_mut_ptr(), len, size);
        folded[..len].copy_from_slice(was);
        operator.fold(folded.as_mut_ptr(), from, len);
    }
    for (at, size) in words(memory, len, size) {
        let there = &mut was[at..at + size];
        let (before, after) = (word(there), word(&folded[at..at + size]));
        // SAFETY: one of the words of `len` bytes, and W2.
        unsafe {
            let found = update(memory.add(at), size, |now| (now == before).then_some(after));
            if found != before {
                let found = fold_word(memory.add(at), from.add(at), size, operator);
                there.copy_from_slice(&found.to_le_bytes()[..size]);
            }
        }
    }
}

/// At most 8 bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0u8; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Folds the elements in a word of so many bytes; gives what they were.
///
/// # Safety
/// As [`update`]; `from` is readable for as many bytes.
unsafe fn fold_word(at: *mut u8, from: *const u8, size: usize, operator: Operator) -> u64 {
    let fold = |was: u64| {
        let mut folded = was.to_le_bytes();
        // SAFETY: `from` is readable for `size` bytes, says the caller; a word has as many.
        unsafe { operator.fold(folded.as_mut_ptr(), from, size) };
        Some(u64::from_le_bytes(folded))
    };
    // SAFETY: the same word.
    unsafe { update(at, size, fold) }
}

/// Whether elements of a size, the first of which lies there, are words of the processor's.
fn is_word(at: *const u8, size: usize) -> bool {
    size <= 8 && size.is_power_of_two() && (at as usize).is_multiple_of(size)
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
    // SAFETY: the three addresses, and the place in the target's memory, have an element, says the caller, which has at
    // most 8 bytes; W1.
    unsafe {
        let word = |at: *const u8| word(std::slice::from_raw_parts(at, each));
        let (wanted, value) = (word(expected), word(value));
        let swap = |was: u64| (was == wanted).then_some(value);
        let was = if is_word(memory, each) {
            update(memory, each, swap)
        } else {
            // No word of the processor's: as with folds, nobody else may be at it.
            let _lock = target.control().lock_elements();
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

/// Replaces a word of so many bytes atomically by what `f` makes of it, if anything; gives what it
/// was.
///
/// # Safety
/// The word lies in memory that stays, aligned, and is touched by atomics only.
unsafe fn update(at: *mut u8, size: usize, f: impl Fn(u64) -> Option<u64>) -> u64 {
    macro_rules! update {
        ($atomic:ty, $ty:ty) => {{
            // SAFETY: an aligned word that stays, says the caller; W2.
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

/// Writes elements that are words of this size, each as a whole, to the memory of a rank.
///
/// # Safety
/// `from` is readable and `memory` writable for `len` bytes.
unsafe fn store(from: *const u8, memory: *mut u8, len: usize, size: usize) {
    for (at, size) in words(memory, len, size) {
        // SAFETY: inside `len` bytes, which both sides have, says the caller; `words` are aligned in the memory, and W2.
        unsafe {
            let (from, to) = (from.add(at), memory.add(at));
            match size {
                1 => AtomicU8::from_ptr(to).store(from.read(), Ordering::Release),
                2 => AtomicU16::from_ptr(to.cast())
                    .store(from.cast::<u16>().read_unaligned(), Ordering::Release),
                4 => AtomicU32::from_ptr(to.cast())
                    .store(from.cast::<u32>().read_unaligned(), Ordering::Release),
                _ => AtomicU64::from_ptr(to.cast())
                    .store(from.cast::<u64>().read_unaligned(), Ordering::Release),
            }
        }
    }
}

/// Reads elements that are words of this size, each as a whole, from the memory of a rank.
///
/// # Safety
/// `memory` is readable and `to` writable for `len` bytes.
unsafe fn load(memory: *mut u8, to: *mut u8, len: usize, size: usize) {
    for (at, size) in words(memory, len, size) {
        // SAFETY: inside `len` bytes, which both sides have, says the caller; `words` are aligned in the memory, and W2.
        unsafe {
            let (from, to) = (memory.add(at), to.add(at));
            match size {
                1 => to.write(AtomicU8::from_ptr(from).load(Ordering::Acquire)),
                2 => to
                    .cast::<u16>()
                    .write_unaligned(AtomicU16::from_ptr(from.cast()).load(Ordering::Acquire)),
                4 => to
                    .cast::<u32>()
                    .write_unaligned(AtomicU32::from_ptr(from.cast()).load(Ordering::Acquire)),
                _ => to
                    .cast::<u64>()
                    .write_unaligned(AtomicU64::from_ptr(from.cast()).load(Ordering::Acquire)),
            }
        }
    }
}

/// Where the words begin that `len` bytes of elements of a size are moved by, and their sizes: words of 8 bytes if
/// the memory is aligned so, which have whole elements in them, and elements for what is left.
fn words(memory: *const u8, len: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    let long = if (memory as usize).is_multiple_of(8) { len - len % 8 } else { 0 };
    (0..long)
        .step_by(8)
        .map(|at| (at, 8))
        .chain((long..len).step_by(size).map(move |at| (at, size)))
}

/// Copies bytes, in the longest words in which both sides are aligned: so nobody sees a part of an element that is such a
/// word itself.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let (from, both, mut at) = (from.cast_mut(), from as usize | to as usize, 0);
    macro_rules! in_words {
        ($atomic:ty, $size:literal) => {
            if both.is_multiple_of($size) {
                while len - at >= $size {
                    // SAFETY: inside `len` bytes, which both sides have, says the caller; aligned, as `both` is and words were
                    // copied before; W2.
                    unsafe {
                        let word = <$atomic>::from_ptr(from.add(at).cast()).load(Ordering::Relaxed);
                        <$atomic>::from_ptr(to.add(at).cast()).store(word, Ordering::Relaxed);
                    }
                    at += $size;
                }
            }
        };
    }
    in_words!(AtomicU64, 8);
    in_words!(AtomicU32, 4);
    in_words!(AtomicU16, 2);
    in_words!(AtomicU8, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Located;

    fn target(memory: &mut [u64], control: &Control, offset: usize) -> Target {
        Target {
            address: Elsewhere::new(memory.as_mut_ptr() as usize + offset),
            len: 8 * memory.len() - offset,
            control: Elsewhere::new(std::ptr::from_ref(control) as usize),
        }
    }

    /// Who reads an element while another writes it sees the one or the other.
    #[test]
    fn nobody_sees_a_part_of_an_element() {
        let control = Control::default();
        for size in [1_usize, 2, 4, 8] {
            let mut memory = [0_u64; 2];
            let target = target(&mut memory, &control, size % 8);
            let both = [0, u64::MAX];
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for round in 0..50_000 {
                        let from = (&raw const both[round % 2]).cast();
                        // SAFETY: an element of `memory`, which stays until the threads have ended.
                        unsafe { access(&target, 0, 1, size, Access::Put { from }) }
                    }
                });
                for _ in 0..50_000 {
                    let mut seen = 0_u64;
                    let to = (&raw mut seen).cast();
                    // SAFETY: an element of `memory`; `seen` is as long.
                    unsafe { access(&target, 0, 1, size, Access::Get { to }) }
                    let ones = u64::MAX >> (64 - 8 * size);
                    assert!(seen == 0 || seen == ones, "{size} bytes: {seen:x}");
                }
            });
        }
    }

    #[test]
    fn elements_of_any_size_and_place_are_written_and_read() {
        let control = Control::default();
        for scalar in [Scalar::U8, Scalar::I16, Scalar::I32, Scalar::F64, Scalar::F80] {
            let size = scalar.size();
            for offset in [0, 1, 2, 4, 8] {
                let mut memory = [0u64; 16];
                let target = target(&mut memory, &control, offset);
                let values: Vec<u8> = (1..).take(5 * size).collect();
                let mut read = vec![0u8; 5 * size];
                let operator = |op| Operator { op, scalar };
                let (from, fetched) = (values.as_ptr(), std::ptr::null_mut());
                let put = Access::Accumulate { from, fetched, operator: operator(Op::Replace) };
                let fetched = read.as_mut_ptr();
                let get = Access::Accumulate { from, fetched, operator: operator(Op::Nothing) };
                // SAFETY: the elements lie in `memory`, and the vectors have their length.
                unsafe {
                    access(&target, 8, 5, size, put);
                    access(&target, 8, 5, size, get);
                }
                assert_eq!(read, values, "{scalar:?} at {offset}");
                let bytes = memory.iter().flat_map(|word| word.to_le_bytes());
                let expected = [vec![0; 8 + offset], values].concat();
                assert!(bytes.take(expected.len()).eq(expected), "{scalar:?} at {offset}");
            }
        }
    }

    /// Some elements that are folded by one call, each by many others at the same time.
    #[test]
    fn folds_at_the_same_time_are_all_there() {
        const ELEMENTS: usize = 200;
        const ROUNDS: usize = 2_000;
        let control = Control::default();
        let mut memory = [0u64; ELEMENTS / 4];
        let target = target(&mut memory, &control, 0);
        let operator = Operator { op: Op::Sum, scalar: Scalar::U16 };
        let add = |first: usize, count: usize| {
            let (ones, mut was) = ([1u16; ELEMENTS], [0u16; ELEMENTS]);
            let (from, fetched) = (ones.as_ptr().cast(), was.as_mut_ptr().cast());
            let access_it = Access::Accumulate { from, fetched, operator };
            // SAFETY: the elements lie in `memory`, and both arrays have their length.
            unsafe { access(&target, 2 * first, count, 2, access_it) };
            was
        };
        std::thread::scope(|scope| {
            let adds_to_each = || (0..10 * ROUNDS).for_each(|i| _ = add(i % ELEMENTS, 1));
            scope.spawn(adds_to_each);
            for round in 0..ROUNDS {
                let was = add(0, ELEMENTS);
                assert!(was.iter().all(|sum| usize::from(*sum) >= round), "{was:?}");
            }
        });
        let sums = add(0, ELEMENTS);
        assert_eq!(sums, [(ROUNDS + 10 * ROUNDS / ELEMENTS) as u16; ELEMENTS]);
    }

    #[test]
    fn elements_of_any_size_and_place_are_folded() {
        let control = Control::default();
        for offset in [0, 1, 2, 4, 8] {
            let mut memory = [u64::from_le_bytes([1; 8]); 8];
            let target = target(&mut memory, &control, offset);
            let values: Vec<u8> = (1..=22).collect();
            let mut before = [0u8; 22];
            let operator = Operator { op: Op::Sum, scalar: Scalar::I16 };
            let (from, fetched) = (values.as_ptr(), before.as_mut_ptr());
            // SAFETY: the elements lie in `memory`, and both vectors have their length.
            unsafe { access(&target, 8, 11, 2, Access::Accumulate { from, fetched, operator }) };
            assert_eq!(before, [1; 22], "at {offset}");
            let bytes: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
            let sums: Vec<u8> = values.iter().map(|value| value + 1).collect();
            assert_eq!(bytes[8 + offset..][..22], sums, "at {offset}");
            assert!(bytes[..8 + offset].iter().chain(&bytes[30 + offset..]).all(|byte| *byte == 1));
        }
    }

    /// Applies an operation to an array of pairs in another rank's memory; gives what is there afterwards, and what
    /// was there before.
    fn fold_pairs<T: Copy>(op: Op, scalar: Scalar, there: &[T], values: &[T]) -> (Vec<T>, Vec<T>) {
        let control = Control::default();
        let mut memory = vec![0u64; size_of_val(there).div_ceil(8)];
        let target = target(&mut memory, &control, 0);
        let mut before = values.to_vec();
        let (count, each) = (there.len(), size_of::<T>());
        // SAFETY: the vectors have room for as many elements.
        unsafe {
            let (from, fetched) = (there.as_ptr().cast(), std::ptr::null_mut());
            let operator = Operator { op: Op::Replace, scalar };
            access(&target, 0, count, each, Access::Accumulate { from, fetched, operator });
            let (from, fetched) = (values.as_ptr().cast(), before.as_mut_ptr().cast());
            let operator = Operator { op, scalar };
            access(&target, 0, count, each, Access::Accumulate { from, fetched, operator });
            let mut after = values.to_vec();
            access(&target, 0, count, each, Access::Get { to: after.as_mut_ptr().cast() });
            (after, before)
        }
    }

    #[test]
    fn pairs_are_folded_whatever_lies_between_them() {
        macro_rules! check {
            ($($ty:ty: $scalar:ident),*) => {$({
                let pairs = |list: [(i8, i32); 4]| {
                    list.map(|(value, location)| Located::new(<$ty>::from(value), location))
                };
                let there = pairs([(5, 1), (0, 2), (9, 3), (-3, 4)]);
                let values = pairs([(4, 9), (1, 8), (9, 2), (-3, 7)]);
                let expected = [
                    (Op::MaxLocation, pairs([(5, 1), (1, 8), (9, 2), (-3, 4)])),
                    (Op::MinLocation, pairs([(4, 9), (0, 2), (9, 2), (-3, 4)])),
                    (Op::Replace, values),
                    (Op::Nothing, there),
                ];
                for (op, after) in expected {
                    let found = fold_pairs(op, Scalar::$scalar, &there, &values);
                    assert_eq!(found, (after.to_vec(), there.to_vec()), "{op:?} of {}", stringify!($ty));
                }
            })*};
        }
        check!(i16: I16At, i32: I32At, i64: I64At, f32: F32At, f64: F64At);
    }

    #[test]
    fn gaps_of_pairs_stay_as_they_are() {
        let control = Control::default();
        let mut memory = [u64::MAX; 2];
        let target = target(&mut memory, &control, 0);
        let operator = Operator { op: Op::Replace, scalar: Scalar::I16At };
        let (from, fetched) = ([0u64; 2], std::ptr::null_mut());
        let from = from.as_ptr().cast();
        // SAFETY: the memory and the values have room for two elements.
        unsafe { access(&target, 0, 2, 8, Access::Accumulate { from, fetched, operator }) };
        assert_eq!(memory, [0xffff_0000; 2]);
    }

    /// A record that is replaced by one call is read as a whole by another.
    #[test]
    fn several_elements_are_one() {
        const ROUNDS: u64 = 20_000;
        let control = Control::default();
        let mut memory = [0u64; 4];
        let target = target(&mut memory, &control, 0);
        let operator = |op| Operator { op, scalar: Scalar::U8 };
        let write = |value: u64| {
            let record = [value; 4];
            let (from, fetched) = (record.as_ptr().cast(), std::ptr::null_mut());
            let put = Access::Accumulate { from, fetched, operator: operator(Op::Replace) };
            // SAFETY: the record is as long as the memory.
            unsafe { access(&target, 0, 32, 1, put) };
        };
        let read = || {
            let mut record = [u64::MAX; 4];
            let (from, fetched) = (std::ptr::null(), record.as_mut_ptr().cast());
            let get = Access::Accumulate { from, fetched, operator: operator(Op::Nothing) };
            // SAFETY: the record is as long as the memory.
            unsafe { access(&target, 0, 32, 1, get) };
            record
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=ROUNDS).for_each(write));
            loop {
                let record = read();
                assert_eq!(record, [record[0]; 4]);
                if record[0] == ROUNDS {
                    break;
                }
            }
        });
    }

    #[test]
    fn words_that_are_not_aligned_are_compared_and_swapped() {
        let control = Control::default();
        let mut memory = [0u64; 4];
        for each in [2, 4, 8] {
            let target = target(&mut memory, &control, 1);
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
