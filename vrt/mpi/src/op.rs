//! Operations of reductions (MPI-4.1 section 6.9).

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::operator::{Op as Predefined, Operator};
use vrt_core::comm::reduce_op::{ReduceOp, apply_unpacked, predefined};

use crate::call::{Call, functions};
use crate::datatype::{self, Use};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::process::Process;

/// An operation made by a program.
#[derive(Debug)]
pub(crate) struct Op {
    function: Function,
    commutes: bool,
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Plain(MPI_User_function),
    Large(MPI_User_function_c),
}

fn of_handle(op: MPI_Op) -> Option<Predefined> {
    Some(match op {
        MPI_SUM => Predefined::Sum,
        MPI_MIN => Predefined::Min,
        MPI_MAX => Predefined::Max,
        MPI_PROD => Predefined::Product,
        MPI_BAND => Predefined::BitwiseAnd,
        MPI_BOR => Predefined::BitwiseOr,
        MPI_BXOR => Predefined::BitwiseXor,
        MPI_LAND => Predefined::LogicalAnd,
        MPI_LOR => Predefined::LogicalOr,
        MPI_LXOR => Predefined::LogicalXor,
        MPI_MINLOC => Predefined::MinLocation,
        MPI_MAXLOC => Predefined::MaxLocation,
        MPI_REPLACE => Predefined::Replace,
        MPI_NO_OP => Predefined::Nothing,
        _ => return None,
    })
}

/// An operation on elements of a datatype, kept as long as it is needed.
#[derive(Clone)]
pub(crate) enum Reduction {
    Predefined(Operator),
    User { op: Rc<Op>, datatype: Use, handle: MPI_Datatype },
}

impl Reduction {
    /// The operation on elements of a datatype.
    ///
    /// # Errors
    /// The operation or datatype does not exist, or the operation is not defined for the datatype.
    #[inline]
    pub(crate) fn of(process: &Process, op: MPI_Op, handle: MPI_Datatype) -> Outcome<Reduction> {
        let datatype = Use::of(process, handle)?;
        let Some(known) = of_handle(op) else {
            return match process.ops.get(op.0) {
                Some(op) => Ok(Reduction::User { op, datatype, handle }),
                None => no_op(op),
            };
        };
        if matches!(known, Predefined::Replace | Predefined::Nothing) {
            refuse!(MPI_ERR_OP, "MPI_REPLACE and MPI_NO_OP are for one-sided operations only");
        }
        let scalar = datatype::scalar_in_reductions(process, handle);
        if scalar.is_none() {
            refuse!(
                MPI_ERR_OP,
                "a predefined operation on a type that is not: it needs an operation of the program's"
            );
        }
        Ok(Reduction::Predefined(predefined(known, scalar)?))
    }

    /// An operation for one-sided accesses, which must be predefined.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub(crate) fn operator(
        process: &Process,
        op: MPI_Op,
        scalar: Option<vrt_core::layout::Scalar>,
    ) -> Outcome<Operator> {
        match of_handle(op) {
            Some(known) => Ok(predefined(known, scalar)?),
            None if process.ops.get(op.0).is_some() => {
                refuse!(MPI_ERR_OP, "one-sided operations take predefined operations only")
            }
            None => no_op(op),
        }
    }

    /// In the engine's form.
    pub(crate) fn as_engine(&self) -> ReduceOp<'_> {
        match self {
            Reduction::Predefined(operator) => ReduceOp::Predefined(*operator),
            Reduction::User { op, datatype, handle } => {
                ReduceOp::User(Box::new(move |left: &[u8], right: &mut [u8]| {
                    op.apply(datatype, *handle, left, right)
                }))
            }
        }
    }
}

#[cold]
fn no_op<T>(op: MPI_Op) -> Outcome<T> {
    match op {
        MPI_OP_NULL => refuse!(MPI_ERR_OP, "the operation is MPI_OP_NULL"),
        MPI_Op(number) => {
            refuse!(MPI_ERR_OP, "{number:#x} is no operation, or one that was freed")
        }
    }
}

impl Op {
    /// `right = left op right` for packed elements.
    fn apply(
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
                Function::Plain(Some(function)) => {
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
                Function::Large(Some(function)) => {
                    let mut len = count as MPI_Count;
                    function(left.cast(), right.cast(), &raw mut len, &raw mut handle);
                }
                Function::Plain(None) | Function::Large(None) => {}
            }
        }
    }
}

functions! {
    MPI_Op_create(function: MPI_User_function, commutes: c_int, op: *mut MPI_Op) on Nothing = create;
    MPI_Op_create_c(function: MPI_User_function_c, commutes: c_int, op: *mut MPI_Op)
        on Nothing = create_large;
    MPI_Op_free(op: *mut MPI_Op) on Nothing = free;
    MPI_Op_commutative(op: MPI_Op, commutes: *mut c_int) on Nothing = commutative;
    MPI_Reduce_local / MPI_Reduce_local_c(
        inbuf: *const c_void, inoutbuf: *mut c_void, count: N, datatype: MPI_Datatype, op: MPI_Op,
    ) on Nothing = reduce_local;
}

unsafe fn create(
    call: Call,
    function: MPI_User_function,
    commutes: c_int,
    op: *mut MPI_Op,
) -> Outcome {
    let made = Op { function: Function::Plain(function), commutes: commutes != 0 };
    // SAFETY: the program gives room for a handle.
    unsafe { op.write(MPI_Op(call.process.ops.add(made))) };
    Ok(())
}

unsafe fn create_large(
    call: Call,
    function: MPI_User_function_c,
    commutes: c_int,
    op: *mut MPI_Op,
) -> Outcome {
    let made = Op { function: Function::Large(function), commutes: commutes != 0 };
    // SAFETY: the program gives room for a handle.
    unsafe { op.write(MPI_Op(call.process.ops.add(made))) };
    Ok(())
}

unsafe fn free(call: Call, op: *mut MPI_Op) -> Outcome {
    // SAFETY: the program gives its handle.
    unsafe {
        if of_handle(*op).is_some() {
            refuse!(MPI_ERR_OP, "a predefined operation cannot be freed");
        }
        if call.process.ops.remove((*op).0).is_none() {
            return no_op(*op);
        }
        *op = MPI_OP_NULL;
    }
    Ok(())
}

unsafe fn commutative(call: Call, op: MPI_Op, commutes: *mut c_int) -> Outcome {
    let known = match of_handle(op) {
        Some(Predefined::Replace | Predefined::Nothing) => false,
        Some(_) => true,
        None => match call.process.ops.get(op.0) {
            Some(op) => op.commutes,
            None => return no_op(op),
        },
    };
    // SAFETY: the program gives room for a flag.
    unsafe { commutes.write(known.into()) };
    Ok(())
}

unsafe fn reduce_local<N: Whole>(
    call: Call,
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Outcome {
    crate::buffer::not_in_place(inbuf)?;
    crate::buffer::not_in_place(inoutbuf)?;
    let reduction = Reduction::of(call.process, op, datatype)?;
    let (count, datatype) = (numbers::count(count)?, Use::of(call.process, datatype)?);
    // SAFETY: the program gives so many elements in both buffers.
    unsafe {
        let left = datatype.pack(inbuf.cast(), count)?;
        let mut right = datatype.pack(inoutbuf.cast(), count)?;
        reduction.as_engine().fold_right(&left, &mut right)?;
        datatype.unpack(&right, inoutbuf.cast(), count);
    }
    Ok(())
}
