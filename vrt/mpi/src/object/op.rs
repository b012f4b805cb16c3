//! Operations of reductions that a program makes: its own functions.

use std::ffi::c_int;

use vrt_abi::types::*;
use vrt_core::comm::reduce_op::apply_unpacked;

use super::datatype::Use;
use crate::numbers;

/// An operation made by a program.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) function: UserFunction,
    pub(crate) commutes: bool,
}

/// Its function, which counts elements by an `int` or an `MPI_Count`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UserFunction {
    Plain(MPI_User_function),
    Large(MPI_User_function_c),
}

impl Op {
    /// `right = left op right` for packed elements.
    ///
    /// # Errors
    /// Those of [`apply_unpacked`].
    pub(crate) fn apply(
        &self,
        datatype: &Use,
        handle: MPI_Datatype,
        left: &[u8],
        right: &mut [u8],
    ) -> Result<(), vrt_core::Error> {
        let is_aligned = (left.as_ptr() as usize | right.as_ptr() as usize).is_multiple_of(16);
        match datatype {
            Use::Dense(size) if is_aligned => {
                let elements = (right.len().checked_div(*size).unwrap_or_default(), *size);
                self.call(left.as_ptr().cast_mut(), right.as_mut_ptr(), elements, handle);
                Ok(())
            }
            Use::Dense(size) => {
                // Elements lie where the program's compiler expects them.
                let words = right.len().div_ceil(16);
                let mut memory = vec![0u128; words.saturating_mul(2)];
                let at = memory.as_mut_ptr().cast::<u8>();
                // SAFETY: both halves of the memory have room for the elements.
                unsafe {
                    let other = at.add(words.saturating_mul(16));
                    std::ptr::copy_nonoverlapping(left.as_ptr(), at, left.len());
                    std::ptr::copy_nonoverlapping(right.as_ptr(), other, right.len());
                    self.call(
                        at,
                        other,
                        (right.len().checked_div(*size).unwrap_or_default(), *size),
                        handle,
                    );
                    std::ptr::copy_nonoverlapping(other, right.as_mut_ptr(), right.len());
                }
                Ok(())
            }
            Use::Laid(layout) => apply_unpacked(layout, left, right, |left, right, count| {
                self.call(left, right, (count, layout.extent().unsigned_abs()), handle);
                Ok(())
            }),
        }
    }

    /// Applies it to elements, given their number and distance in bytes.
    fn call(
        &self,
        left: *mut u8,
        right: *mut u8,
        (count, extent): (usize, usize),
        mut handle: MPI_Datatype,
    ) {
        // SAFETY: the program's own function, with elements of the type that it was called for.
        unsafe {
            match self.function {
                UserFunction::Plain(Some(function)) => {
                    // More elements than an `int` counts come in parts.
                    let (mut left, mut right, mut rest) = (left, right, count);
                    while rest > 0 {
                        let mut len = numbers::int(rest);
                        let part = rest.min(c_int::MAX.unsigned_abs() as usize);
                        function(left.cast(), right.cast(), &raw mut len, &raw mut handle);
                        let done = part.saturating_mul(extent);
                        (left, right) = (left.wrapping_add(done), right.wrapping_add(done));
                        rest = rest.saturating_sub(part);
                    }
                }
                UserFunction::Large(Some(function)) => {
                    let mut len = count as MPI_Count;
                    function(left.cast(), right.cast(), &raw mut len, &raw mut handle);
                }
                UserFunction::Plain(None) | UserFunction::Large(None) => {}
            }
        }
    }
}
