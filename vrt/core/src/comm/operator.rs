//! The predefined reductions on built-in types (MPI-4.1 section 6.9.2).

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "sums and products of elements are floats, or wrap by name; places lie in the blocks"
    )
)]

use crate::comm::long_double::{self, F80};
use crate::layout::Scalar;

/// A predefined reduction.
#[derive(serde::Serialize, serde::Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// The maximum; of a float and a NaN, the float.
    Max,
    /// The minimum; of a float and a NaN, the float.
    Min,
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Product,
    /// Whether both are true: 1 or 0. An integer is true unless it is 0.
    LogicalAnd,
    /// The bits that are set in both.
    BitwiseAnd,
    /// Whether one or both are true: 1 or 0.
    LogicalOr,
    /// The bits that are set in one or both.
    BitwiseOr,
    /// Whether exactly one is true: 1 or 0.
    LogicalXor,
    /// The bits that are set in exactly one.
    BitwiseXor,
    /// The maximum and its location; among equal values the lowest location.
    MaxLocation,
    /// The minimum and its location; among equal values the lowest location.
    MinLocation,
    /// The second operand; for one-sided operations.
    Replace,
    /// The first operand; for one-sided operations.
    Nothing,
}

impl Op {
    const BITWISE: u16 = Op::BitwiseAnd.bit() | Op::BitwiseOr.bit() | Op::BitwiseXor.bit();
    const LOGICAL: u16 = Op::LogicalAnd.bit() | Op::LogicalOr.bit() | Op::LogicalXor.bit();
    const LOCATION: u16 = Op::MaxLocation.bit() | Op::MinLocation.bit();
    const ONE_SIDED: u16 = Op::Replace.bit() | Op::Nothing.bit();

    /// It in a set of operations.
    const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The set of those that MPI defines for a type (MPI-4.1 sections 6.9.2 and 6.9.4).
    const fn of(scalar: Scalar) -> u16 {
        let defined = match scalar {
            Scalar::Bool => Op::BITWISE | Op::LOGICAL,
            Scalar::F80 | Scalar::C80 | Scalar::F80At if !long_double::IS_KNOWN => 0,
            Scalar::F32 | Scalar::F64 | Scalar::F80 => !(Op::BITWISE | Op::LOGICAL | Op::LOCATION),
            Scalar::C32 | Scalar::C64 | Scalar::C80 => Op::Sum.bit() | Op::Product.bit(),
            Scalar::F32At
            | Scalar::F64At
            | Scalar::I32At
            | Scalar::I64At
            | Scalar::I16At
            | Scalar::F80At
            | Scalar::F32Pair
            | Scalar::F64Pair => Op::LOCATION,
            _ => !Op::LOCATION,
        };
        defined | Op::ONE_SIDED
    }
}

/// [`Op::of`] each type, for a reduction to find at once.
const OPERATIONS: [u16; Scalar::ALL.len()] = {
    let mut operations = [0; Scalar::ALL.len()];
    let mut i = 0;
    while i < operations.len() {
        operations[Scalar::ALL[i] as usize] = Op::of(Scalar::ALL[i]);
        i += 1;
    }
    operations
};

/// A reduction on elements of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Operator {
    /// The operation on two elements.
    pub op: Op,
    /// The type of the elements.
    pub scalar: Scalar,
}

impl Operator {
    /// Whether MPI defines this reduction for this type.
    #[inline(always)]
    pub fn is_defined(self) -> bool {
        OPERATIONS[self.scalar as usize] & self.op.bit() != 0
    }

    /// `left[i] = left[i] op right[i]` for all elements in `bytes` bytes.
    ///
    /// # Safety
    /// Both are valid for `bytes` bytes of elements of this type and do not overlap; they need not
    /// be aligned.
    pub unsafe fn fold(self, left: *mut u8, right: *const u8, bytes: usize) {
        // SAFETY: the promise of `fold_pairs`, for one pair.
        unsafe { self.fold_blocks(Blocks { pairs: &[(left, right)], bytes, flipped: false }) };
    }

    /// `right = left op right`.
    ///
    /// # Safety
    /// As [`fold`](Self::fold).
    pub unsafe fn fold_right(self, left: *const u8, right: *mut u8, bytes: usize) {
        // SAFETY: the promise of `fold_pairs`, for one pair, of which the other block is written.
        unsafe { self.fold_blocks(Blocks { pairs: &[(right, left)], bytes, flipped: true }) };
    }

    /// [`fold`](Self::fold) of each left and right block, one pair after the other.
    ///
    /// # Safety
    /// As there, for each pair.
    pub(crate) unsafe fn fold_pairs(self, pairs: &[Pair], bytes: usize) {
        // SAFETY: the same promise.
        unsafe { self.fold_blocks(Blocks { pairs, bytes, flipped: false }) };
    }

    /// # Safety
    /// As [`fold`](Self::fold), for each pair.
    unsafe fn fold_blocks(self, blocks: Blocks<'_>) {
        // SAFETY: the same promise; the elements of each arm are what the scalar says.
        unsafe {
            match (self.op, self.scalar) {
                (Op::Nothing, _) if !blocks.flipped => {}
                (Op::Nothing, _) => blocks.each::<u8>(|left, _| left),
                (Op::Replace, _) => blocks.each::<u8>(|_, right| right),
                (op, Scalar::U8) => integer::<u8>(op, blocks),
                (op, Scalar::U16) => integer::<u16>(op, blocks),
                (op, Scalar::U32) => integer::<u32>(op, blocks),
                (op, Scalar::U64) => integer::<u64>(op, blocks),
                (op, Scalar::I8) => integer::<i8>(op, blocks),
                (op, Scalar::I16) => integer::<i16>(op, blocks),
                (op, Scalar::I32) => integer::<i32>(op, blocks),
                (op, Scalar::I64) => integer::<i64>(op, blocks),
                (op, Scalar::F32) => float::<f32>(op, blocks),
                (op, Scalar::F64) => float::<f64>(op, blocks),
                (op, Scalar::Bool) => boolean(op, blocks),
                (op, Scalar::C32) => complex::<f32>(op, blocks),
                (op, Scalar::C64) => complex::<f64>(op, blocks),
                (op, Scalar::F32At) => located::<f32, i32>(op, blocks),
                (op, Scalar::F64At) => located::<f64, i32>(op, blocks),
                (op, Scalar::I32At) => located::<i32, i32>(op, blocks),
                (op, Scalar::I64At) => located::<i64, i32>(op, blocks),
                (op, Scalar::I16At) => located::<i16, i32>(op, blocks),
                (op, Scalar::F80) => float::<F80>(op, blocks),
                (op, Scalar::C80) => complex::<F80>(op, blocks),
                (op, Scalar::F80At) => located::<F80, i32>(op, blocks),
                (op, Scalar::F32Pair) => located::<f32, f32>(op, blocks),
                (op, Scalar::F64Pair) => located::<f64, f64>(op, blocks),
            }
        }
    }
}

/// The beginnings of a left and a right block.
pub type Pair = (*mut u8, *const u8);

/// Pairs of blocks, all of the same length.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    pairs: &'a [Pair],
    bytes: usize,
    /// The block that gets the result, the first of its pair, is the right one.
    flipped: bool,
}

impl Blocks<'_> {
    /// # Safety
    /// As [`Operator::fold_pairs`], for elements of type `T`.
    unsafe fn each<T: Copy>(self, f: impl Fn(T, T) -> T) {
        // SAFETY: the same promise.
        unsafe {
            if self.flipped {
                self.each_in_order::<T>(|into, other| f(other, into));
            } else {
                self.each_in_order::<T>(f);
            }
        }
    }

    /// # Safety
    /// As [`each`](Self::each).
    unsafe fn each_in_order<T: Copy>(self, f: impl Fn(T, T) -> T) {
        for (into, other) in self.pairs {
            let (into, other) = (into.cast::<T>(), other.cast::<T>());
            for i in 0..self.bytes / size_of::<T>() {
                // SAFETY: element `i` is inside both blocks, which have `bytes` bytes, says the caller.
                unsafe {
                    let at = into.add(i);
                    at.write_unaligned(f(at.read_unaligned(), other.add(i).read_unaligned()));
                }
            }
        }
    }
}

trait Integer: Copy + Ord {
    fn wrapping_add_(self, other: Self) -> Self;
    fn wrapping_mul_(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn truth(self) -> bool;
    fn from_truth(truth: bool) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Integer for $ty {
            fn wrapping_add_(self, other: Self) -> Self { self.wrapping_add(other) }
            fn wrapping_mul_(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn and(self, other: Self) -> Self { self & other }
            fn or(self, other: Self) -> Self { self | other }
            fn xor(self, other: Self) -> Self { self ^ other }
            fn truth(self) -> bool { self != 0 }
            fn from_truth(truth: bool) -> Self { truth.into() }
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

/// # Safety
/// As [`Operator::fold_pairs`] for elements of type `T`.
unsafe fn integer<T: Integer>(op: Op, blocks: Blocks<'_>) {
    // SAFETY: blocks of elements of type `T`, says the caller.
    unsafe {
        match op {
            Op::Max => blocks.each::<T>(T::max),
            Op::Min => blocks.each::<T>(T::min),
            Op::Sum => blocks.each::<T>(T::wrapping_add_),
            Op::Product => blocks.each::<T>(T::wrapping_mul_),
            Op::BitwiseAnd => blocks.each::<T>(T::and),
            Op::BitwiseOr => blocks.each::<T>(T::or),
            Op::BitwiseXor => blocks.each::<T>(T::xor),
            Op::LogicalAnd => {
                blocks.each::<T>(|a, b| T::from_truth(a.truth() && b.truth()));
            }
            Op::LogicalOr => {
                blocks.each::<T>(|a, b| T::from_truth(a.truth() || b.truth()));
            }
            Op::LogicalXor => {
                blocks.each::<T>(|a, b| T::from_truth(a.truth() != b.truth()));
            }
            _ => unreachable!("refused by `is_defined`"),
        }
    }
}

trait Float: Copy + PartialOrd + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> {
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
}

impl Float for f32 {
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
    fn smaller(self, other: Self) -> Self {
        self.min(other)
    }
}

impl Float for f64 {
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
    fn smaller(self, other: Self) -> Self {
        self.min(other)
    }
}

impl Float for F80 {
    fn larger(self, other: Self) -> Self {
        if self >= other || other.is_nan() { self } else { other }
    }
    fn smaller(self, other: Self) -> Self {
        if self <= other || other.is_nan() { self } else { other }
    }
}

/// # Safety
/// As [`Operator::fold_pairs`] for elements of type `T`.
unsafe fn float<T: Float>(op: Op, blocks: Blocks<'_>) {
    // SAFETY: blocks of elements of type `T`, says the caller.
    unsafe {
        match op {
            Op::Max => blocks.each::<T>(T::larger),
            Op::Min => blocks.each::<T>(T::smaller),
            Op::Sum => blocks.each::<T>(|a, b| a + b),
            Op::Product => blocks.each::<T>(|a, b| a * b),
            _ => unreachable!("refused by `is_defined`"),
        }
    }
}

/// # Safety
/// As [`Operator::fold_pairs`] for bools.
unsafe fn boolean(op: Op, blocks: Blocks<'_>) {
    // SAFETY: blocks of bools, says the caller; these keep 0 and 1.
    unsafe {
        match op {
            Op::LogicalAnd | Op::BitwiseAnd => blocks.each::<u8>(|a, b| a & b),
            Op::LogicalOr | Op::BitwiseOr => blocks.each::<u8>(|a, b| a | b),
            Op::LogicalXor | Op::BitwiseXor => blocks.each::<u8>(|a, b| a ^ b),
            _ => unreachable!("refused by `is_defined`"),
        }
    }
}

/// # Safety
/// As [`Operator::fold_pairs`] for complex numbers of parts of type `T`.
unsafe fn complex<T>(op: Op, blocks: Blocks<'_>)
where
    T: Float + std::ops::Sub<Output = T>,
{
    // SAFETY: blocks of elements of type `T`, says the caller.
    unsafe {
        match op {
            Op::Sum => blocks.each::<[T; 2]>(|a, b| [a[0] + b[0], a[1] + b[1]]),
            Op::Product => {
                blocks.each::<[T; 2]>(|a, b| [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]])
            }
            _ => unreachable!("refused by `is_defined`"),
        }
    }
}

/// A value and its location as they are packed.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct At<T, L> {
    value: T,
    location: L,
}

/// # Safety
/// As [`Operator::fold_pairs`] for located values of type `T`.
unsafe fn located<T: Copy + PartialOrd, L: Copy + PartialOrd>(op: Op, blocks: Blocks<'_>) {
    let wins = |a: T, b: T| if op == Op::MaxLocation { a > b } else { a < b };
    let choose = |a: At<T, L>, b: At<T, L>| {
        let ((x, at_x), (y, at_y)) = ((a.value, a.location), (b.value, b.location));
        if wins(x, y) || (!wins(y, x) && at_x <= at_y) { a } else { b }
    };
    // SAFETY: blocks of located values, says the caller, packed as `At` is.
    unsafe { blocks.each::<At<T, L>>(choose) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold<T: Copy + PartialEq + std::fmt::Debug>(op: Op, scalar: Scalar, left: T, right: T) -> T {
        let (mut l, r) = ([left], [right]);
        // SAFETY: one element of the scalar's type each.
        unsafe {
            Operator { op, scalar }.fold(l.as_mut_ptr().cast(), r.as_ptr().cast(), size_of::<T>());
        }
        // To the right it is the same.
        let (left, mut r) = ([left], [right]);
        // SAFETY: one element of the scalar's type each.
        unsafe {
            let (left, right) = (left.as_ptr().cast(), r.as_mut_ptr().cast());
            Operator { op, scalar }.fold_right(left, right, size_of::<T>());
        }
        assert_eq!(l, r, "{op:?} of {scalar:?}");
        l[0]
    }

    #[test]
    fn each_reduction_does_what_mpi_says() {
        assert_eq!(fold(Op::Max, Scalar::I32, -3, 2), 2);
        assert_eq!(fold(Op::Min, Scalar::U8, 3u8, 2), 2);
        assert_eq!(fold(Op::Sum, Scalar::F64, 0.5, 0.25), 0.75);
        assert_eq!(fold(Op::Sum, Scalar::U8, 250u8, 10), 4, "wraps as C does");
        assert_eq!(fold(Op::Product, Scalar::I64, -3i64, 7), -21);
        assert_eq!(fold(Op::LogicalAnd, Scalar::I32, 6, 1), 1);
        assert_eq!(fold(Op::LogicalXor, Scalar::I32, 6, 1), 0);
        assert_eq!(fold(Op::BitwiseOr, Scalar::U16, 6u16, 1), 7);
        assert!(fold(Op::LogicalOr, Scalar::Bool, false, true));
        assert_eq!(fold(Op::Sum, Scalar::C64, [1f64, 2.0], [3.0, 4.0]), [4.0, 6.0]);
        assert_eq!(fold(Op::Product, Scalar::C64, [1f64, 2.0], [3.0, 4.0]), [-5.0, 10.0]);
        assert_eq!(fold(Op::MaxLocation, Scalar::I32At, [5, 7], [5, 3]), [5, 3]);
        assert_eq!(fold(Op::MinLocation, Scalar::I32At, [5, 7], [6, 3]), [5, 7]);
        assert_eq!(fold(Op::Replace, Scalar::I16, 5i16, 7), 7);
        assert_eq!(fold(Op::Nothing, Scalar::I16, 5i16, 7), 5);
        assert!(!Operator { op: Op::BitwiseAnd, scalar: Scalar::F32 }.is_defined());
        assert!(!Operator { op: Op::Sum, scalar: Scalar::Bool }.is_defined());
    }
}
