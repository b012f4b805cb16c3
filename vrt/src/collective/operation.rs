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
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// fn reduced(world: &vrt::World, op: impl Operation) -> i32 {
///     let mut result = 0;
///     world.all_reduce_into(&world.rank(), &mut result, op);
///     result
/// }
///
/// vrt::run_local(4, |world| {
///     assert_eq!(reduced(world, SystemOperation::sum()), 0 + 1 + 2 + 3);
///     assert_eq!(reduced(world, SystemOperation::max()), 3);
/// });
/// ```
pub trait Operation: Applies {
    /// Whether the order of operands does not matter. Operands keep the order of ranks anyway.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{Operation, SystemOperation};
    ///
    /// assert!(SystemOperation::sum().is_commutative());
    /// assert!(!SystemOperation::replace().is_commutative());
    /// ```
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
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     let (me, mut largest, mut all_small) = (world.rank(), 0, false);
///     world.all_reduce_into(&me, &mut largest, SystemOperation::max());
///     world.all_reduce_into(&(me < 10), &mut all_small, SystemOperation::logical_and());
///     assert_eq!((largest, all_small), (3, true));
/// });
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [1, 5];
    /// reduce_local_into(&[3, 4], &mut values, SystemOperation::max());
    /// assert_eq!(values, [3, 5]);
    /// ```
    max => Max,
    /// The smallest.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [1, 5];
    /// reduce_local_into(&[3, 4], &mut values, SystemOperation::min());
    /// assert_eq!(values, [1, 4]);
    /// ```
    min => Min,
    /// The sum; integers wrap.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [1u8, 200];
    /// reduce_local_into(&[3u8, 100], &mut values, SystemOperation::sum());
    /// assert_eq!(values, [4, 44]);
    /// ```
    sum => Sum,
    /// The product; integers wrap.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [2, 5];
    /// reduce_local_into(&[3, 4], &mut values, SystemOperation::product());
    /// assert_eq!(values, [6, 20]);
    /// ```
    product => Product,
    /// Whether all are not zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [true, true, false];
    /// reduce_local_into(&[true, false, false], &mut values, SystemOperation::logical_and());
    /// assert_eq!(values, [true, false, false]);
    /// ```
    logical_and => LogicalAnd,
    /// The bits set in all.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [0b1100, 0b1111];
    /// reduce_local_into(&[0b1010, 0b0101], &mut values, SystemOperation::bitwise_and());
    /// assert_eq!(values, [0b1000, 0b0101]);
    /// ```
    bitwise_and => BitwiseAnd,
    /// Whether any is not zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [true, true, false];
    /// reduce_local_into(&[true, false, false], &mut values, SystemOperation::logical_or());
    /// assert_eq!(values, [true, true, false]);
    /// ```
    logical_or => LogicalOr,
    /// The bits set in any.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [0b1100, 0b0001];
    /// reduce_local_into(&[0b1010, 0b0100], &mut values, SystemOperation::bitwise_or());
    /// assert_eq!(values, [0b1110, 0b0101]);
    /// ```
    bitwise_or => BitwiseOr,
    /// Whether an odd number of them are not zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [true, true, false];
    /// reduce_local_into(&[true, false, false], &mut values, SystemOperation::logical_xor());
    /// assert_eq!(values, [false, true, false]);
    /// ```
    logical_xor => LogicalXor,
    /// The bits set in an odd number of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{SystemOperation, reduce_local_into};
    ///
    /// let mut values = [0b1100, 0b1111];
    /// reduce_local_into(&[0b1010, 0b0101], &mut values, SystemOperation::bitwise_xor());
    /// assert_eq!(values, [0b0110, 0b1010]);
    /// ```
    bitwise_xor => BitwiseXor,
    /// The largest with its location (`MPI_MAXLOC`), of [`Located`](crate::datatype::Located)
    /// values.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::datatype::Located;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let mine = Located::new([2.5, 9.5, 9.5][world.rank() as usize], world.rank());
    ///     let mut largest = Located::default();
    ///     world.all_reduce_into(&mine, &mut largest, SystemOperation::max_location());
    ///     assert_eq!(largest, Located::new(9.5, 1));
    /// });
    /// ```
    max_location => MaxLocation,
    /// The smallest with its location (`MPI_MINLOC`), of [`Located`](crate::datatype::Located)
    /// values.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::datatype::Located;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let mine = Located::new([7, 3, 5][world.rank() as usize], world.rank());
    ///     let mut smallest = Located::default();
    ///     world.all_reduce_into(&mine, &mut smallest, SystemOperation::min_location());
    ///     assert_eq!(smallest, Located::new(3, 1));
    /// });
    /// ```
    min_location => MinLocation,
    /// The second operand (`MPI_REPLACE`); for windows.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, window) = (1 - world.rank(), world.allocate_window(vec![10]));
    ///     window.fence();
    ///     let before = window.fetch_and_op(other, 0, 7, SystemOperation::replace());
    ///     window.fence();
    ///     assert_eq!((before, window.load(0)), (10, 7));
    /// });
    /// ```
    replace => Replace,
    /// The first operand (`MPI_NO_OP`); for windows.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (other, window) = (1 - world.rank(), world.allocate_window(vec![10]));
    ///     window.fence();
    ///     // An atomic read: the value given does not matter.
    ///     let value = window.fetch_and_op(other, 0, 0, SystemOperation::no_op());
    ///     window.fence();
    ///     assert_eq!((value, window.load(0)), (10, 10));
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::UserOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // The left operand: in the end that of rank 0.
    ///     let first = UserOperation::associative(|x, y| {
    ///         y.downcast::<i32>().unwrap().copy_from_slice(x.downcast().unwrap());
    ///     });
    ///     let mut value = 0;
    ///     world.all_reduce_into(&(world.rank() + 5), &mut value, &first);
    ///     assert_eq!(value, 5);
    /// });
    /// ```
    pub fn associative<F>(function: F) -> Self
    where
        F: Fn(DynBuffer<'_>, DynBufferMut<'_>) + Sync + 'a,
    {
        Self::new(false, function)
    }

    /// A reduction that is commutative too.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::UserOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let capped_sum = UserOperation::commutative(|x, y| {
    ///         let (x, y): (&[u8], &mut [u8]) = (x.downcast().unwrap(), y.downcast().unwrap());
    ///         x.iter().zip(y).for_each(|(x, y)| *y = x.saturating_add(*y));
    ///     });
    ///     let mut sum = 0;
    ///     world.all_reduce_into(&100u8, &mut sum, &capped_sum);
    ///     assert_eq!(sum, 255);
    /// });
    /// ```
    pub fn commutative<F>(function: F) -> Self
    where
        F: Fn(DynBuffer<'_>, DynBufferMut<'_>) + Sync + 'a,
    {
        Self::new(true, function)
    }

    /// A reduction.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::{UserOperation, reduce_local_into};
    /// use vrt::traits::*;
    ///
    /// let largest = UserOperation::new(true, |x, y| {
    ///     let (x, y): (&[i32], &mut [i32]) = (x.downcast().unwrap(), y.downcast().unwrap());
    ///     x.iter().zip(y).for_each(|(x, y)| *y = (*x).max(*y));
    /// });
    /// let mut values = [1, 5];
    /// reduce_local_into(&[3, 4], &mut values, &largest);
    /// assert_eq!((values, largest.is_commutative()), ([3, 5], true));
    /// ```
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
///
/// # Examples
///
/// ```
/// use std::ffi::{c_int, c_void};
/// use std::slice::{from_raw_parts, from_raw_parts_mut};
///
/// use vrt::collective::UnsafeUserOperation;
/// use vrt::ffi::MPI_Datatype;
/// use vrt::traits::*;
///
/// unsafe extern "C" fn add(x: *mut c_void, y: *mut c_void, len: *mut c_int, _: *mut MPI_Datatype) {
///     // SAFETY: both are `len` numbers, in different places.
///     let (x, y) = unsafe {
///         let len = *len as usize;
///         (from_raw_parts(x.cast::<i32>(), len), from_raw_parts_mut(y.cast::<i32>(), len))
///     };
///     x.iter().zip(y).for_each(|(x, y)| *y += x);
/// }
///
/// vrt::run_local(3, |world| {
///     // SAFETY: `add` adds numbers of this type.
///     let sum = unsafe { UnsafeUserOperation::commutative(add) };
///     let mut total = 0;
///     world.all_reduce_into(&world.rank(), &mut total, &sum);
///     assert_eq!(total, 0 + 1 + 2);
/// });
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use std::ffi::{c_int, c_void};
    ///
    /// use vrt::collective::UnsafeUserOperation;
    /// use vrt::ffi::MPI_Datatype;
    /// use vrt::traits::*;
    ///
    /// unsafe extern "C" fn first(x: *mut c_void, y: *mut c_void, len: *mut c_int, _: *mut MPI_Datatype) {
    ///     // SAFETY: both are `len` numbers.
    ///     unsafe { y.cast::<i32>().copy_from(x.cast::<i32>(), *len as usize) };
    /// }
    ///
    /// vrt::run_local(3, |world| {
    ///     // SAFETY: `first` copies numbers of this type.
    ///     let op = unsafe { UnsafeUserOperation::associative(first) };
    ///     let mut value = 0;
    ///     world.all_reduce_into(&(world.rank() + 5), &mut value, &op);
    ///     assert_eq!(value, 5);
    /// });
    /// ```
    pub unsafe fn associative(function: UnsafeUserFunction) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::new(false, function) }
    }

    /// A reduction that is commutative too.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::ffi::{c_int, c_void};
    /// use std::slice::{from_raw_parts, from_raw_parts_mut};
    ///
    /// use vrt::collective::{UnsafeUserOperation, reduce_local_into};
    /// use vrt::ffi::MPI_Datatype;
    ///
    /// unsafe extern "C" fn max(x: *mut c_void, y: *mut c_void, len: *mut c_int, _: *mut MPI_Datatype) {
    ///     // SAFETY: both are `len` numbers, in different places.
    ///     let (x, y) = unsafe {
    ///         let len = *len as usize;
    ///         (from_raw_parts(x.cast::<f64>(), len), from_raw_parts_mut(y.cast::<f64>(), len))
    ///     };
    ///     x.iter().zip(y).for_each(|(x, y)| *y = x.max(*y));
    /// }
    ///
    /// // SAFETY: `max` compares numbers of this type.
    /// let op = unsafe { UnsafeUserOperation::commutative(max) };
    /// let mut largest = [1.0, 5.0];
    /// reduce_local_into(&[3.0, 4.0], &mut largest, &op);
    /// assert_eq!(largest, [3.0, 5.0]);
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use std::ffi::{c_int, c_void};
    ///
    /// use vrt::collective::UnsafeUserOperation;
    /// use vrt::ffi::MPI_Datatype;
    /// use vrt::traits::*;
    ///
    /// unsafe extern "C" fn first(x: *mut c_void, y: *mut c_void, len: *mut c_int, _: *mut MPI_Datatype) {
    ///     // SAFETY: both are `len` numbers.
    ///     unsafe { y.cast::<i32>().copy_from(x.cast::<i32>(), *len as usize) };
    /// }
    ///
    /// // SAFETY: `first` copies numbers of this type.
    /// let op = unsafe { UnsafeUserOperation::new(false, first) };
    /// assert!(!op.is_commutative());
    /// ```
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
/// When the buffers differ in bytes or in the type of their elements, or the operation is not defined for these.
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
