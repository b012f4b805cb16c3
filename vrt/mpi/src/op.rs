//! Operations of reductions (MPI-4.1 section 6.9).

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::operator::{Op as Predefined, Operator};
use vrt_core::comm::reduce_op::{ReduceOp, predefined};
use vrt_core::layout::Scalar;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole, give};
use crate::object::buffer::not_in_place;
use crate::object::op::UserFunction;
use crate::object::{Op, Use};
use crate::process::Process;

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
        let datatype = Use::of(&process.types, handle)?;
        let Some(known) = of_handle(op) else {
            return match process.ops.get(op.0) {
                Some(op) => Ok(Reduction::User { op, datatype, handle }),
                None => no_op(op),
            };
        };
        if matches!(known, Predefined::Replace | Predefined::Nothing) {
            refuse!(MPI_ERR_OP, "MPI_REPLACE and MPI_NO_OP are for one-sided operations only");
        }
        let scalar = process.types.scalar_in_reductions(handle);
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
        scalar: Option<Scalar>,
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

macro_rules! create {
    ($($name:ident($function:ty) = $made:ident;)*) => {$(
        unsafe fn $name(
            call: Call,
            function: $function,
            commutes: c_int,
            op: *mut MPI_Op,
        ) -> Outcome {
            let made = Op { function: UserFunction::$made(function), commutes: commutes != 0 };
            // SAFETY: the program gives room for a handle.
            unsafe { give(MPI_Op(call.process.ops.add(made)), op) }
        }
    )*};
}
create! {
    create(MPI_User_function) = Plain;
    create_large(MPI_User_function_c) = Large;
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
    unsafe { give(known.into(), commutes) }
}

unsafe fn reduce_local<N: Whole>(
    call: Call,
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Outcome {
    not_in_place(inbuf)?;
    not_in_place(inoutbuf)?;
    let reduction = Reduction::of(call.process, op, datatype)?;
    let (count, datatype) = (numbers::count(count)?, Use::of(&call.process.types, datatype)?);
    // SAFETY: the program gives so many elements in both buffers.
    unsafe {
        let left = datatype.pack(inbuf.cast(), count)?;
        let mut right = datatype.pack(inoutbuf.cast(), count)?;
        reduction.as_engine().fold_right(&left, &mut right)?;
        datatype.unpack(&right, inoutbuf.cast(), count);
    }
    Ok(())
}
