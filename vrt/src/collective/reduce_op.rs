//! What a reduction of the face does, as the engine applies it.
//!
//! Contributions are packed. A predefined operation works on them as they are; a user's operation
//! sees elements as they lie in memory. The lower rank's contribution is always the left operand.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vrt_core::comm::operator::{Op, Operator};
use vrt_core::comm::reduce_op::{self, ReduceOp, apply_unpacked};

use crate::Count;
use crate::datatype::{DatatypeRef, DynBuffer, DynBufferMut, OwnedDatatype};
use crate::error::ErrorKind;
use crate::ffi::MPI_Datatype;
use crate::raw::AsRaw;

/// What an operation does.
#[derive(Clone, Copy)]
pub enum Function<'a> {
    Predefined(Op),
    Closure { function: &'a Closure<'a>, commutes: bool },
    C { function: UnsafeUserFunction, commutes: bool },
}

pub(crate) type Closure<'a> = dyn Fn(DynBuffer<'_>, DynBufferMut<'_>) + Sync + 'a;

impl fmt::Debug for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Function::Predefined(op) => op.fmt(f),
            Function::Closure { .. } | Function::C { .. } => f.write_str("user operation"),
        }
    }
}

/// A reduction as C writes it: first operands, second operands and result, how many, of what type.
///
/// # Examples
///
/// ```
/// use std::ffi::{c_int, c_void};
///
/// use vrt::collective::{UnsafeUserFunction, UnsafeUserOperation, reduce_local_into};
/// use vrt::ffi::MPI_Datatype;
///
/// unsafe extern "C" fn first(x: *mut c_void, y: *mut c_void, len: *mut c_int, _: *mut MPI_Datatype) {
///     // SAFETY: both are `len` numbers.
///     unsafe { y.cast::<i32>().copy_from(x.cast::<i32>(), *len as usize) };
/// }
///
/// let function: UnsafeUserFunction = first;
/// // SAFETY: `first` copies numbers of this type.
/// let op = unsafe { UnsafeUserOperation::associative(function) };
/// let mut values = [0, 0];
/// reduce_local_into(&[3, 4], &mut values, &op);
/// assert_eq!(values, [3, 4]);
/// ```
pub type UnsafeUserFunction =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut MPI_Datatype);

/// An operation on elements of a datatype.
///
/// # Errors
/// The operation is predefined, but not for these elements.
pub(crate) fn reduce_op<'a>(
    function: Function<'a>,
    datatype: &OwnedDatatype,
) -> Result<ReduceOp<'a>, ErrorKind> {
    if let Some(operator) = predefined(function, datatype.datatype_ref())? {
        return Ok(ReduceOp::Predefined(operator));
    }
    let datatype = datatype.clone();
    Ok(ReduceOp::User(Box::new(move |left, right| {
        datatype.datatype_ref().with_layout(|layout| {
            apply_unpacked(layout, left, right, |left, right, count| {
                call(function, datatype.datatype_ref(), left, right, count)
            })
        })
    })))
}

/// A predefined operation on elements of a datatype; `None` when it is a user's.
///
/// # Errors
/// As [`reduce_op`](fn@reduce_op).
#[inline(always)]
pub(crate) fn predefined(
    function: Function<'_>,
    datatype: DatatypeRef<'_>,
) -> Result<Option<Operator>, ErrorKind> {
    let Function::Predefined(op) = function else { return Ok(None) };
    reduce_op::predefined(op, datatype.scalar()).map(Some)
}

fn call(
    function: Function<'_>,
    datatype: DatatypeRef<'_>,
    left: *mut u8,
    right: *mut u8,
    elements: usize,
) -> Result<(), ErrorKind> {
    let extent = datatype.with_layout(|layout| layout.extent());
    let (mut at, most) = (0, Count::MAX as usize);
    // More elements than a count can say come in parts.
    while elements > most && at < elements {
        let part = most.min(elements.saturating_sub(at));
        let offset = isize::try_from(at).unwrap_or(isize::MAX).saturating_mul(extent);
        call(
            function,
            datatype,
            left.wrapping_offset(offset),
            right.wrapping_offset(offset),
            part,
        )?;
        at = at.saturating_add(part);
    }
    let Some(len) = Count::try_from(elements).ok() else { return Ok(()) };
    let outcome = catch_unwind(AssertUnwindSafe(|| match function {
        Function::Predefined(_) => {}
        Function::Closure { function, .. } => {
            // SAFETY: both blocks hold as many elements and belong to the caller.
            let (left, right) = unsafe {
                (
                    DynBuffer::from_raw(left, len, datatype),
                    DynBufferMut::from_raw(right, len, datatype),
                )
            };
            function(left, right);
        }
        Function::C { function, .. } => {
            let (mut len, mut raw): (i32, MPI_Datatype) = (len, datatype.as_raw());
            // SAFETY: as above; whoever made the operation promised that it does what one does.
            unsafe { function(left.cast(), right.cast(), &raw mut len, &raw mut raw) };
        }
    }));
    outcome.map_err(|payload| {
        let why = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "(no message)".to_owned());
        ErrorKind::UserOperation { elements, why }
    })
}
