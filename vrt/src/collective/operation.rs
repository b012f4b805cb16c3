//! The operations that reductions apply (MPI-4.1 section 6.9).

use std::fmt;

use crate::collective::checks::expect_bytes;
use crate::collective::reduce_op::{Closure, Function, UnsafeUserFunction, reduce_op};
use crate::datatype::{Buffer, BufferMut, DynBuffer, DynBufferMut, UncommittedDatatype, wire};
use crate::operation::{At, OrRefuse, site};
use vrt_core::comm::bytes::expect_type;
use vrt_core::comm::operator::Op;

pub(crate) mod sealed {
    use super::Function;

    /// Things that can be applied to contributions.
    pub trait Applies {
        /// What it does.
        fn function(&self) -> Function<'_>;
    }
}
use sealed::Applies;

/// A reduction: a [`SystemOperation`] such as the sum, or one of the program, such as a [`UserOperation`].
pub trait Operation: Applies {
    /// Whether the order of operands does not matter. Operands keep the order of ranks anyway.
    fn is_commutative(&self) -> bool {
        match self.function() {
            Function::Predefined(op) => !matches!(op, Op::Replace | Op::Nothing),
            Function::Closure { commutes, .. } | Function::C { commutes, .. } => commutes,
        }
    }
}

impl<T: Applies + ?Sized> Applies for &T {
    fn function(&self) -> Function<'_> {
        (**self).function()
    }
}

impl<T: Applies + ?Sized> Operation for T {}

/// A predefined reduction (section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemOperation(pub(crate) Op);

macro_rules! system_operations {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {
        impl SystemOperation {
            $($(#[$doc])* pub fn $name() -> SystemOperation { SystemOperation(Op::$op) })*
        }
    };
}

system_operations! {
    /// The largest.
    max => Max,
    /// The smallest.
    min => Min,
    /// The sum; integers wrap.
    sum => Sum,
    /// The product; integers wrap.
    product => Product,
    /// Whether all are not zero.
    logical_and => LogicalAnd,
    /// The bits set in all.
    bitwise_and => BitwiseAnd,
    /// Whether any is not zero.
    logical_or => LogicalOr,
    /// The bits set in any.
    bitwise_or => BitwiseOr,
    /// Whether an odd number of them are not zero.
    logical_xor => LogicalXor,
    /// The bits set in an odd number of them.
    bitwise_xor => BitwiseXor,
    /// The largest with its location (`MPI_MAXLOC`), of [`Located`](crate::datatype::Located)
    /// values.
    max_location => MaxLocation,
    /// The smallest with its location (`MPI_MINLOC`), of [`Located`](crate::datatype::Located)
    /// values.
    min_location => MinLocation,
    /// The second operand (`MPI_REPLACE`); for windows.
    replace => Replace,
    /// The first operand (`MPI_NO_OP`); for windows.
    no_op => Nothing,
}

impl Applies for SystemOperation {
    fn function(&self) -> Function<'_> {
        Function::Predefined(self.0)
    }
}

/// A reduction given as a closure (section 6.9.5): of `(x, y)` it makes `y = x op y`, element by
/// element, and has to be associative.
///
/// Operands are combined in the order of ranks, in a fixed tree over them, so the result has the
/// same bits wherever ranks are.
///
/// # Examples
///
/// ```
/// use vrt::collective::UserOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let mut gcd = 0u32;
///     let op = UserOperation::commutative(|x, y| {
///         let (x, y): (&[u32], &mut [u32]) = (x.downcast().unwrap(), y.downcast().unwrap());
///         for (x, y) in x.iter().zip(y) {
///             let (mut a, mut b) = (*x, *y);
///             while b != 0 {
///                 (a, b) = (b, a % b);
///             }
///             *y = a;
///         }
///     });
///     world.all_reduce_into(&(12 * (world.rank() as u32 + 1)), &mut gcd, &op);
///     assert_eq!(gcd, 12);
/// });
/// ```
pub struct UserOperation<'a> {
    function: Box<Closure<'a>>,
    commutes: bool,
}

impl fmt::Debug for UserOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserOperation").field("commutes", &self.commutes).finish_non_exhaustive()
    }
}

impl<'a> UserOperation<'a> {
    /// A reduction that only is associative.
    pub fn associative<F>(function: F) -> Self
    where
        F: Fn(DynBuffer<'_>, DynBufferMut<'_>) + Sync + 'a,
    {
        Self::new(false, function)
    }

    /// A reduction that is commutative too.
    pub fn commutative<F>(function: F) -> Self
    where
        F: Fn(DynBuffer<'_>, DynBufferMut<'_>) + Sync + 'a,
    {
        Self::new(true, function)
    }

    /// A reduction.
    pub fn new<F>(commute: bool, function: F) -> Self
    where
        F: Fn(DynBuffer<'_>, DynBufferMut<'_>) + Sync + 'a,
    {
        UserOperation { function: Box::new(function), commutes: commute }
    }
}

impl Applies for UserOperation<'_> {
    fn function(&self) -> Function<'_> {
        Function::Closure { function: &*self.function, commutes: self.commutes }
    }
}

/// A reduction given as a C function.
pub struct UnsafeUserOperation {
    function: UnsafeUserFunction,
    commutes: bool,
}

impl fmt::Debug for UnsafeUserOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("UnsafeUserOperation");
        out.field("commutes", &self.commutes).finish_non_exhaustive()
    }
}

impl UnsafeUserOperation {
    /// A reduction that only is associative.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub unsafe fn associative(function: UnsafeUserFunction) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::new(false, function) }
    }

    /// A reduction that is commutative too.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub unsafe fn commutative(function: UnsafeUserFunction) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::new(true, function) }
    }

    /// A reduction.
    ///
    /// # Safety
    /// The function reads as many elements of the first operands as it is told, and reads and
    /// writes as many of the second ones, of the type that the operation is used with; it does not
    /// unwind.
    pub unsafe fn new(commute: bool, function: UnsafeUserFunction) -> Self {
        UnsafeUserOperation { function, commutes: commute }
    }
}

impl Applies for UnsafeUserOperation {
    fn function(&self) -> Function<'_> {
        Function::C { function: self.function, commutes: self.commutes }
    }
}

/// Folds one buffer into another without any communication (section 6.9.7): `inoutbuf = inbuf op
/// inoutbuf`.
///
/// # Panics
/// When the buffers are not equally long, or the operation is not defined for their elements.
///
/// # Examples
///
/// ```
/// use vrt::collective::{SystemOperation, reduce_local_into};
///
/// let mut largest = [1, 5];
/// reduce_local_into(&[3, 4], &mut largest, SystemOperation::max());
/// assert_eq!(largest, [3, 5]);
/// ```
#[track_caller]
pub fn reduce_local_into<S, R, O>(inbuf: &S, inoutbuf: &mut R, op: O)
where
    S: Buffer + ?Sized,
    R: BufferMut + ?Sized,
    O: Operation,
{
    let site = site!("reduce_local_into");
    let datatype = inbuf.as_datatype().datatype_ref().to_owned_type();
    let op = reduce_op(op.function(), &datatype).at(site).or_refuse();
    let from = wire::outgoing(inbuf);
    let mut to = wire::incoming_filled(inoutbuf);
    expect_bytes("receive buffer", to.len, from.len).at(site).or_refuse();
    expect_type(from.signature, to.signature, from.len).at(site).or_refuse();
    if from.len == 0 {
        return;
    }
    // SAFETY: both are borrowed and have this length.
    let (left, right) = unsafe {
        (
            std::slice::from_raw_parts(from.at, from.len),
            std::slice::from_raw_parts_mut(to.at, to.len),
        )
    };
    op.fold_right(left, right).at(site).or_refuse();
    to.finish_all().at(site).or_refuse();
}
