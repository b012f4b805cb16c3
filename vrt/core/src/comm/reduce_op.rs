//! The operation that a reduction applies to contributions: predefined or user-defined.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_sign_loss,
        reason = "a datatype lies within `layout::LONGEST`, so that sums of its bounds do not wrap"
    )
)]

use crate::comm::operator::{Op, Operator};
use crate::error::Error;
use crate::layout::{Layout, Scalar};

/// An operation on packed elements.
pub enum ReduceOp<'a> {
    /// One of MPI's predefined operations.
    Predefined(Operator),
    /// A user-defined one, `right = left op right`: on equally long slices of whole elements.
    User(Box<UserReduceOp<'a>>),
}

/// A user's operation on packed elements; see [`ReduceOp::User`].
pub(crate) type UserReduceOp<'a> = dyn Fn(&[u8], &mut [u8]) -> Result<(), Error> + 'a;

impl std::fmt::Debug for ReduceOp<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReduceOp::Predefined(operator) => operator.fmt(f),
            ReduceOp::User(_) => f.write_str("user operation"),
        }
    }
}

/// A predefined operation on elements of a type; `None` for a struct or another type that is not built in.
///
/// # Errors
/// It is not defined for the type (MPI-4.1 section 6.9.2).
#[inline(always)]
pub fn predefined(op: Op, scalar: Option<Scalar>) -> Result<Operator, Error> {
    let operator = scalar.map(|scalar| Operator { op, scalar });
    operator.filter(|it| it.is_defined()).ok_or_else(|| undefined(op, scalar))
}

#[cold]
fn undefined(op: Op, scalar: Option<Scalar>) -> Error {
    let op = format!("{op:?}");
    match scalar {
        None => Error::OpOnStruct { op },
        Some(scalar) => Error::OpOnScalar { op, scalar: format!("{scalar:?}") },
    }
}

/// Applies a user-defined function to packed elements of a layout: unpacks both operands, calls
/// `function(left, right, count)`, and packs the second one again.
///
/// # Errors
/// Those of the function.
pub fn apply_unpacked(
    layout: &Layout,
    left: &[u8],
    right: &mut [u8],
    function: impl FnOnce(*mut u8, *mut u8, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let size = layout.size();
    if size == 0 || right.is_empty() {
        return Ok(());
    }
    let count = right.len() / size;
    // From the first byte of the first or, if elements go backwards, of the last one to the end of the other.
    let last = layout.extent() * (count as isize - 1);
    let lower = layout.lower_bound().min(layout.true_lower_bound()) + last.min(0);
    let upper = (layout.lower_bound() + layout.extent())
        .max(layout.true_lower_bound() + layout.true_extent())
        + last.max(0);
    // Aligned for anything that elements are made of, which the address is that elements are counted from.
    let lower = lower.div_euclid(16) * 16;
    let bytes = (upper - lower).max(0) as usize;
    let mut memory = [vec![0u128; bytes.div_ceil(16)], vec![0u128; bytes.div_ceil(16)]];
    let [left_at, right_at] =
        memory.each_mut().map(|m| m.as_mut_ptr().cast::<u8>().wrapping_offset(-lower));
    // SAFETY: from these addresses on both blocks have `count` elements: `lower` and `upper` are their ends.
    unsafe {
        layout.unpack(left.as_ptr(), left.len(), left_at, count);
        layout.unpack(right.as_ptr(), right.len(), right_at, count);
    }
    function(left_at, right_at, count)?;
    // SAFETY: the same block; `right` has `count * size` bytes.
    unsafe { layout.pack(right_at, count, right.as_mut_ptr()) };
    Ok(())
}

impl ReduceOp<'_> {
    /// `left = left op right`; `right` is consumed.
    ///
    /// # Errors
    /// The user-defined operation failed.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn fold(&self, left: &mut Vec<u8>, right: &mut Vec<u8>) -> Result<(), Error> {
        assert_eq!(left.len(), right.len(), "contributions are equally long");
        match self {
            ReduceOp::Predefined(operator) => {
                // SAFETY: both have this length.
                unsafe { operator.fold(left.as_mut_ptr(), right.as_ptr(), left.len()) };
            }
            ReduceOp::User(function) => {
                function(left, right)?;
                std::mem::swap(left, right);
            }
        }
        Ok(())
    }

    /// `right = left op right`.
    ///
    /// # Errors
    /// The user-defined operation failed.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn fold_right(&self, left: &[u8], right: &mut [u8]) -> Result<(), Error> {
        assert_eq!(left.len(), right.len(), "contributions are equally long");
        match self {
            // SAFETY: both have this length.
            ReduceOp::Predefined(operator) => unsafe {
                operator.fold_right(left.as_ptr(), right.as_mut_ptr(), right.len());
            },
            ReduceOp::User(function) => function(left, right)?,
        }
        Ok(())
    }

    /// Folds contributions of `unit` bytes that lie side by side, in the order of the tree over
    /// ranks that all reductions here follow: neighbouring blocks of 1, 2, 4, .. ranks.
    ///
    /// # Errors
    /// The user's operation failed.
    pub(crate) fn fold_all(&self, all: &[u8], unit: usize) -> Result<Vec<u8>, Error> {
        let mut blocks: Vec<Vec<u8>> = if unit == 0 {
            vec![Vec::new()]
        } else {
            all.chunks(unit).map(<[u8]>::to_vec).collect()
        };
        while blocks.len() > 1 {
            let mut above = Vec::with_capacity(blocks.len().div_ceil(2));
            let mut rest = blocks.into_iter();
            while let Some(mut left) = rest.next() {
                if let Some(mut right) = rest.next() {
                    self.fold(&mut left, &mut right)?;
                }
                above.push(left);
            }
            blocks = above;
        }
        Ok(blocks.pop().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_gets_elements_where_their_bounds_put_them() {
        let number = Layout::scalar(Scalar::I32);
        for (lower, extent) in [(0, 4), (-3, 9), (4, 12), (0, -8), (2, -12), (-20, 0)] {
            let count = if extent == 0 { 1 } else { 5 };
            let layout = number.resized(lower, extent);
            let packed = |first: i32| -> Vec<u8> {
                (first..first + count).flat_map(i32::to_le_bytes).collect()
            };
            let (left, mut right) = (packed(1), packed(100));
            let sum = |left: *mut u8, right: *mut u8, n: usize| {
                assert_eq!((n as i32, left as usize % 16, right as usize % 16), (count, 0, 0));
                for i in 0..n as isize {
                    let (a, b) =
                        (left.wrapping_offset(i * extent), right.wrapping_offset(i * extent));
                    let (a, b) = (a.cast::<i32>(), b.cast::<i32>());
                    // SAFETY: element `i` of each operand, which `apply_unpacked` gives.
                    unsafe { b.write_unaligned(a.read_unaligned() + b.read_unaligned()) };
                }
                Ok(())
            };
            apply_unpacked(&layout, &left, &mut right, sum).unwrap();
            let sums: Vec<u8> = (0..count).flat_map(|i| (101 + 2 * i).to_le_bytes()).collect();
            assert_eq!(right, sums, "{lower} {extent}");
        }
    }
}
