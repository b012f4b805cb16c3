//! Buffers: places in memory with a datatype and a count, and their parts.

use crate::Count;
use crate::datatype::{Datatype, Equivalence};

/// Something that has a datatype.
///
/// # Safety
/// As [`Equivalence`], for the elements of the value.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// let numbers = [1.5f64, 2.5];
/// assert_eq!(numbers.as_datatype(), f64::equivalent_datatype());
/// assert_eq!(numbers[0].as_datatype(), f64::equivalent_datatype());
/// ```
pub unsafe trait AsDatatype {
    /// The kind of datatype.
    type Out: Datatype;

    /// The datatype of the elements.
    ///
    /// Example: [`AsDatatype`].
    fn as_datatype(&self) -> Self::Out;
}

/// A countable collection of elements.
///
/// # Safety
/// `len_in_elements` does not exceed what there is.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// let numbers = vec![1.5f64, 2.5];
/// assert_eq!((numbers.count(), numbers.len_in_elements()), (2, 2));
/// assert_eq!(numbers[0].count(), 1);
/// ```
pub unsafe trait Collection {
    /// Number of elements.
    ///
    /// Example: [`Collection`].
    ///
    /// # Panics
    /// When there are more than a [`Count`] can say; operations use
    /// [`len_in_elements`](Self::len_in_elements).
    fn count(&self) -> Count {
        match Count::try_from(self.len_in_elements()) {
            Ok(count) => count,
            Err(_) => panic!("{} elements are more than a count can say", self.len_in_elements()),
        }
    }

    /// Number of elements, however many.
    ///
    /// Example: [`Collection`].
    fn len_in_elements(&self) -> usize;
}

/// A place to read from.
///
/// # Safety
/// The pointer is readable for all elements.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// let numbers = [1.5f64, 2.5];
/// assert_eq!(numbers.pointer().cast::<f64>(), numbers.as_ptr());
/// ```
pub unsafe trait Pointer {
    /// Where the first element lies.
    ///
    /// Example: [`Pointer`].
    fn pointer(&self) -> *const std::ffi::c_void;
}

/// A place to write to.
///
/// # Safety
/// The pointer is writable for all elements.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// let mut numbers = [1.5f64, 2.5];
/// assert_eq!(numbers.pointer_mut().cast::<f64>(), numbers.as_mut_ptr());
/// ```
pub unsafe trait PointerMut {
    /// Where the first element lies.
    ///
    /// Example: [`PointerMut`].
    fn pointer_mut(&mut self) -> *mut std::ffi::c_void;
}

/// A buffer to send from.
///
/// # Safety
/// As its parts.
///
/// # Examples
///
/// ```
/// use vrt::World;
/// use vrt::traits::*;
///
/// fn send_to_right<B: Buffer + ?Sized>(world: &World, buffer: &B) {
///     world.process_at_rank((world.rank() + 1) % world.size()).send(buffer);
/// }
///
/// vrt::run_local(3, |world| {
///     send_to_right(world, &[1.5, 2.5]);
///     assert_eq!(world.any_process().receive_vec::<f64>().0, [1.5, 2.5]);
/// });
/// ```
pub unsafe trait Buffer: Pointer + Collection + AsDatatype {}

/// A buffer to receive into.
///
/// # Safety
/// As its parts.
///
/// # Examples
///
/// ```
/// use vrt::World;
/// use vrt::traits::*;
///
/// fn receive_from_left<B: BufferMut + ?Sized>(world: &World, buffer: &mut B) {
///     let left = (world.rank() + world.size() - 1) % world.size();
///     world.process_at_rank(left).receive_into(buffer);
/// }
///
/// vrt::run_local(3, |world| {
///     world.process_at_rank((world.rank() + 1) % 3).send(&[1u8, 2]);
///     let mut bytes = [0u8; 2];
///     receive_from_left(world, &mut bytes);
///     assert_eq!(bytes, [1, 2]);
/// });
/// ```
pub unsafe trait BufferMut: PointerMut + Collection + AsDatatype {}

macro_rules! buffers {
    ($([$($generics:tt)*] $ty:ty, |$self:ident| $len:expr, $at:expr, $at_mut:expr;)*) => {$(
        // SAFETY: elements of `T` lie one behind the other from the pointer on, `$len` of them.
        unsafe impl<T: Equivalence $($generics)*> AsDatatype for $ty {
            type Out = T::Out;

            fn as_datatype(&self) -> Self::Out {
                T::equivalent_datatype()
            }
        }

        // SAFETY: as above.
        unsafe impl<T: Equivalence $($generics)*> Collection for $ty {
            #[inline]
            fn len_in_elements(&self) -> usize {
                let $self = self;
                $len
            }
        }

        // SAFETY: as above.
        unsafe impl<T: Equivalence $($generics)*> Pointer for $ty {
            #[inline]
            fn pointer(&self) -> *const std::ffi::c_void {
                let $self = self;
                $at.cast()
            }
        }

        // SAFETY: as above.
        unsafe impl<T: Equivalence $($generics)*> PointerMut for $ty {
            #[inline]
            fn pointer_mut(&mut self) -> *mut std::ffi::c_void {
                let $self = self;
                $at_mut.cast()
            }
        }

        // SAFETY: as above.
        unsafe impl<T: Equivalence $($generics)*> Buffer for $ty {}
        // SAFETY: as above.
        unsafe impl<T: Equivalence $($generics)*> BufferMut for $ty {}
    )*};
}

buffers! {
    [] T, |_this| 1, std::ptr::from_ref(_this), std::ptr::from_mut(_this);
    [] [T], |this| this.len(), this.as_ptr(), this.as_mut_ptr();
    [] Vec<T>, |this| this.len(), this.as_ptr(), this.as_mut_ptr();
    [, const N: usize] [T; N], |_this| N, _this.as_ptr(), _this.as_mut_ptr();
}

/// Parts of a buffer, one for each rank (MPI-4.1 section 6.5, the operations ending in v).
///
/// # Examples
///
/// ```
/// use vrt::datatype::Partition;
/// use vrt::traits::*;
///
/// let parts = Partition::new(&[7, 8, 9], [1, 2], [0, 1]);
/// assert_eq!((parts.counts(), parts.displs()), (&[1, 2][..], &[0, 1][..]));
/// ```
pub trait Partitioned {
    /// Elements of each part.
    ///
    /// Example: [`Partitioned`].
    fn counts(&self) -> &[Count];

    /// Where each part begins, in elements from the buffer's beginning.
    ///
    /// Example: [`Partitioned`].
    fn displs(&self) -> &[Count];
}

/// A buffer to send parts of.
///
/// # Safety
/// Counts and displacements are those of parts that lie in the buffer, each time they are asked for.
///
/// # Examples
///
/// ```
/// use vrt::datatype::Partition;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let root = world.process_at_rank(0);
///     let mut mine = vec![0; 1 + world.rank() as usize];
///     if root.is_self() {
///         let parts = Partition::new(&[7, 8, 9], [1, 2], [0, 1]);
///         root.scatter_varcount_into_root(&parts, &mut mine);
///     } else {
///         root.scatter_varcount_into(&mut mine);
///     }
///     assert_eq!(mine, if root.is_self() { vec![7] } else { vec![8, 9] });
/// });
/// ```
pub unsafe trait PartitionedBuffer: Partitioned + Pointer + AsDatatype {}

/// A buffer to receive parts of.
///
/// # Safety
/// Counts and displacements are those of parts that lie in the buffer, each time they are asked for.
///
/// # Examples
///
/// ```
/// use vrt::datatype::PartitionMut;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let mine = vec![world.rank(); 1 + world.rank() as usize];
///     let mut all = [-1; 3];
///     let mut parts = PartitionMut::new(&mut all, [1, 2], [0, 1]);
///     world.all_gather_varcount_into(&mine, &mut parts);
///     assert_eq!(all, [0, 1, 1]);
/// });
/// ```
pub unsafe trait PartitionedBufferMut: Partitioned + PointerMut + AsDatatype {}
