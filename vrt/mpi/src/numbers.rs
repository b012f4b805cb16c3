//! Counts and displacements, which are `int` or `MPI_Count` depending on a function's form, and arrays of them; and how
//! numbers are returned.

use std::ffi::c_int;

use vrt_abi::constants::*;

use crate::fault::{Outcome, refuse};
use vrt_slot::report;

/// A whole number of C.
pub(crate) trait Whole: Copy {
    /// As the widest type.
    fn wide(self) -> i64;
    /// From the widest type; `None` if it does not fit.
    fn narrow(value: i64) -> Option<Self>;
    /// Whether it is an `MPI_Count`, as in large-count functions.
    const IS_COUNT: bool;
}

macro_rules! whole {
    ($($ty:ty: $is_count:literal),*) => {$(
        impl Whole for $ty {
            const IS_COUNT: bool = $is_count;
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn narrow(value: i64) -> Option<$ty> {
                <$ty>::try_from(value).ok()
            }
        }
    )*};
}
whole!(c_int: false, i64: true, isize: false);

/// A count, which must not be negative.
///
/// # Errors
/// It is negative.
#[inline(always)]
pub(crate) fn count<N: Whole>(value: N) -> Outcome<usize> {
    let value = value.wide();
    match usize::try_from(value) {
        Ok(count) => Ok(count),
        Err(_) => negative(value),
    }
}

#[cold]
fn negative(value: i64) -> Outcome<usize> {
    refuse!(MPI_ERR_COUNT, "the count is {value}: negative")
}

/// Refuses this many elements: their size overflows.
///
/// # Errors
/// Always.
#[cold]
pub(crate) fn too_many<T>(count: usize, each: usize) -> Outcome<T> {
    let each = report::count(each, "byte");
    refuse!(MPI_ERR_COUNT, "{count} elements of {each} are more than can be counted")
}

/// The sum of counts.
///
/// # Errors
/// The sum overflows.
pub(crate) fn sum(counts: &[usize]) -> Outcome<usize> {
    let sum = counts.iter().try_fold(0, |sum: usize, count| sum.checked_add(*count));
    match sum.filter(|sum| i64::try_from(*sum).is_ok()) {
        Some(sum) => Ok(sum),
        None => refuse!(MPI_ERR_COUNT, "the sum of the counts is more than can be counted"),
    }
}

/// One of the library's own numbers, such as the number of ranks, as an `int`.
#[inline]
pub(crate) fn int(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// A number from an array of `int`s, which always fits.
#[inline]
pub(crate) fn int_of(number: i64) -> c_int {
    c_int::try_from(number).unwrap_or(MPI_UNDEFINED)
}

/// An address, or a distance between two.
#[inline]
pub(crate) fn place(number: i64) -> isize {
    isize::try_from(number).unwrap_or(isize::MAX)
}

/// A rank or another checked number as an index; an invalid one becomes larger than any index.
#[inline(always)]
pub(crate) fn index(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A word as two `int`s, the lower half first.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
pub(crate) fn halves(word: u64) -> [c_int; 2] {
    [(word as u32).cast_signed(), ((word >> 32) as u32).cast_signed()]
}

/// The word with these [`halves`].
#[inline(always)]
pub(crate) fn word([low, high]: [c_int; 2]) -> u64 {
    u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
}

/// An array given by the program, as the widest type.
///
/// # Errors
/// It is missing.
///
/// # Safety
/// It has this many entries.
pub(crate) unsafe fn list<N: Whole>(array: *const N, len: usize) -> Outcome<Vec<i64>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    if array.is_null() {
        refuse!(MPI_ERR_ARG, "an array of {len} numbers is missing: the pointer is null");
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(array, len) }.iter().map(|n| n.wide()).collect())
}

/// An array of plain integers given by the program.
///
/// # Errors
/// It is missing.
///
/// # Safety
/// As for [`list`].
pub(crate) unsafe fn ints(array: *const c_int, len: usize) -> Outcome<Vec<c_int>> {
    if len == 0 {
        return Ok(Vec::new());
    }
    if array.is_null() {
        refuse!(MPI_ERR_ARG, "an array of {len} numbers is missing: the pointer is null");
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(array, len) }.to_vec())
}

/// [`list`] for counts.
///
/// # Errors
/// It is missing, or a count is negative.
///
/// # Safety
/// As for [`list`].
pub(crate) unsafe fn counts<N: Whole>(array: *const N, len: usize) -> Outcome<Vec<usize>> {
    // SAFETY: as the caller promises.
    unsafe { list(array, len) }?.into_iter().map(count).collect()
}

/// Returns a number or a handle to the program.
///
/// # Safety
/// There is room for it.
#[inline]
pub(crate) unsafe fn give<T>(value: T, to: *mut T) -> Outcome {
    // SAFETY: as the caller promises.
    unsafe { to.write(value) };
    Ok(())
}

/// Returns `int`s to the program, as many as it has room for.
///
/// # Safety
/// There is this much room.
pub(crate) unsafe fn give_all(values: &[c_int], to: *mut c_int, room: usize) {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len().min(room)) };
}

/// Returns a number to the program; `MPI_UNDEFINED` if it does not fit.
///
/// # Safety
/// There is room for the number.
pub(crate) unsafe fn give_fitting<N: Whole>(value: i64, to: *mut N) {
    let value = N::narrow(value).or_else(|| N::narrow(MPI_UNDEFINED.into()));
    if let Some(value) = value {
        // SAFETY: as the caller promises.
        unsafe { to.write(value) };
    }
}

/// Returns a number, which must fit, to the program.
///
/// # Errors
/// It does not fit.
///
/// # Safety
/// There is room for the number.
pub(crate) unsafe fn give_exactly<N: Whole>(value: i64, to: *mut N) -> Outcome {
    match N::narrow(value) {
        // SAFETY: as the caller promises.
        Some(value) => unsafe { to.write(value) },
        None => refuse!(
            MPI_ERR_VALUE_TOO_LARGE,
            "{value} does not fit into an int: the large-count form of the function gives it"
        ),
    }
    Ok(())
}
