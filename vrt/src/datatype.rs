//! What messages are made of.
//!
//! The names and traits of the `mpi` crate's `datatype` module. [`Equivalence`] relates a Rust
//! type to a datatype; a [`Buffer`] is a place in memory with a datatype and a count. The engine
//! below moves bytes; a datatype is a number that says how many, and of what kind for reductions.

use std::marker::PhantomData;

use crate::Count;

/// What reductions need to know of a built-in type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub(crate) enum Scalar {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    Bool,
}

/// A datatype by its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatatypeRef<'a> {
    pub(crate) scalar: Scalar,
    lifetime: PhantomData<&'a ()>,
}

/// A built-in datatype.
pub type SystemDatatype = DatatypeRef<'static>;

impl DatatypeRef<'_> {
    /// Bytes of one element.
    pub fn size(&self) -> usize {
        match self.scalar {
            Scalar::U8 | Scalar::I8 | Scalar::Bool => 1,
            Scalar::U16 | Scalar::I16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 8,
        }
    }
}

/// Something that describes elements of messages.
pub trait Datatype {
    /// The handle.
    fn as_ref(&self) -> DatatypeRef<'_>;
}

impl Datatype for DatatypeRef<'_> {
    fn as_ref(&self) -> DatatypeRef<'_> {
        *self
    }
}

impl<D: Datatype> Datatype for &D {
    fn as_ref(&self) -> DatatypeRef<'_> {
        (**self).as_ref()
    }
}

/// A Rust type with a datatype that describes its memory.
///
/// # Safety
/// The datatype describes all bytes of the type that carry values, and every value of those bytes
/// that a correct program can send is a valid value of the type.
pub unsafe trait Equivalence {
    /// The kind of datatype.
    type Out: Datatype;

    /// The datatype.
    fn equivalent_datatype() -> Self::Out;
}

macro_rules! equivalent {
    ($($ty:ty => $scalar:ident),* $(,)?) => {$(
        // SAFETY: a plain number (or bool, which is only ever sent from a bool).
        unsafe impl Equivalence for $ty {
            type Out = SystemDatatype;

            fn equivalent_datatype() -> SystemDatatype {
                DatatypeRef { scalar: Scalar::$scalar, lifetime: PhantomData }
            }
        }
    )*};
}

equivalent! {
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    f32 => F32, f64 => F64, bool => Bool,
}
#[cfg(target_pointer_width = "64")]
equivalent! { usize => U64, isize => I64 }

/// Something that has a datatype.
///
/// # Safety
/// As [`Equivalence`], for the elements of the value.
pub unsafe trait AsDatatype {
    /// The kind of datatype.
    type Out: Datatype;

    /// The datatype of the elements.
    fn as_datatype(&self) -> Self::Out;
}

/// A countable collection of elements.
///
/// # Safety
/// `len_in_elements` does not exceed what there is.
pub unsafe trait Collection {
    /// Number of elements.
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
    fn len_in_elements(&self) -> usize;
}

/// A place to read from.
///
/// # Safety
/// The pointer is readable for all elements.
pub unsafe trait Pointer {
    /// Where the first element lies.
    fn pointer(&self) -> *const std::ffi::c_void;
}

/// A place to write to.
///
/// # Safety
/// The pointer is writable for all elements.
pub unsafe trait PointerMut {
    /// Where the first element lies.
    fn pointer_mut(&mut self) -> *mut std::ffi::c_void;
}

/// A buffer to send from.
///
/// # Safety
/// As its parts.
pub unsafe trait Buffer: Pointer + Collection + AsDatatype {
    /// Bytes of the buffer.
    #[doc(hidden)]
    fn len_in_bytes(&self) -> usize {
        self.len_in_elements() * self.as_datatype().as_ref().size()
    }
}

/// A buffer to receive into.
///
/// # Safety
/// As its parts.
pub unsafe trait BufferMut: PointerMut + Collection + AsDatatype {
    /// Bytes of the buffer.
    #[doc(hidden)]
    fn len_in_bytes(&self) -> usize {
        self.len_in_elements() * self.as_datatype().as_ref().size()
    }
}

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

/// The traits of this module.
pub mod traits {
    pub use super::{
        AsDatatype, Buffer, BufferMut, Collection, Datatype, Equivalence, Pointer, PointerMut,
    };
}
