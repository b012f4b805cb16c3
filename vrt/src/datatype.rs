//! What messages are made of (MPI-4.1 chapter 5).
//!
//! The names and traits of the `mpi` crate's `datatype` module. [`Equivalence`] relates a Rust
//! type to a datatype; a [`Buffer`] is a place in memory with a datatype and a count. The engine
//! below moves bytes: elements that lie in memory as they are sent go from where they lie, others
//! are packed first and unpacked at the end.
//!
//! A datatype is one of three things, and all can be copied and move with the rank that holds
//! them: the kind of a built-in value, the address of a static of the program (a derived one,
//! [`internal::DerivedDatatype`]), or a reference to a layout in the rank's own heap
//! ([`UserDatatype`]).
//!
//! | file | subject |
//! |---|---|
//! | `buffer` | buffers, and their parts |
//! | `user` | types made from others |
//! | `view` | buffers with another datatype, parts, dynamic types |
//! | `internal` | what `#[derive(Equivalence)]` needs |
//! | `wire` | the bytes of a buffer on their way in and out |

mod buffer;
pub mod internal;
mod user;
mod view;
pub(crate) mod wire;

use crate::Address;
use crate::ffi::MPI_Datatype;
use crate::raw::{AsRaw, MatchesRaw};
pub use buffer::{
    AsDatatype, Buffer, BufferMut, Collection, Partitioned, PartitionedBuffer,
    PartitionedBufferMut, Pointer, PointerMut,
};
pub use user::{ArrayOrder, UncommittedDatatypeRef, UncommittedUserDatatype, UserDatatype};
pub use view::{DynBuffer, DynBufferMut, MutView, Partition, PartitionMut, View};
pub(crate) use vrt_core::layout::{self, Construction, Layout, Scalar};
pub use vrt_core::layout::{Located, Signature};

/// A datatype by reference.
///
/// # Examples
///
/// ```
/// use vrt::datatype::UserDatatype;
/// use vrt::traits::*;
///
/// let pair = UserDatatype::contiguous(2, &f64::equivalent_datatype());
/// // Built-in types and those of the program are of one Rust type.
/// let types = [u8::equivalent_datatype(), pair.as_ref()];
/// assert_eq!(types.map(|datatype| datatype.size()), [1, 16]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DatatypeRef<'a>(pub(crate) Kind<'a>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    System(Scalar),
    Derived(&'static internal::DerivedDatatype),
    User(&'a layout::Datatype),
}

/// A built-in datatype.
///
/// # Examples
///
/// ```
/// use vrt::datatype::SystemDatatype;
/// use vrt::traits::*;
///
/// let number: SystemDatatype = i32::equivalent_datatype();
/// assert_eq!(number.size(), 4);
/// ```
pub type SystemDatatype = DatatypeRef<'static>;

impl<'a> DatatypeRef<'a> {
    pub(crate) const fn system(scalar: Scalar) -> DatatypeRef<'a> {
        DatatypeRef(Kind::System(scalar))
    }

    /// Bytes of data in one element (MPI-4.1 section 5.1.5).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::UserDatatype;
    /// use vrt::traits::*;
    ///
    /// // Of five numbers the first, the third and the fifth.
    /// let odd = UserDatatype::vector(3, 1, 2, &i32::equivalent_datatype());
    /// assert_eq!(odd.as_ref().size(), 3 * 4);
    /// ```
    #[inline]
    pub fn size(&self) -> usize {
        match self.0 {
            Kind::System(scalar) => scalar.size(),
            _ => self.with_layout(Layout::size),
        }
    }

    /// Bytes from the beginning of one element to that of the next (section 5.1.7).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::UserDatatype;
    /// use vrt::traits::*;
    ///
    /// // Of five numbers the first, the third and the fifth.
    /// let odd = UserDatatype::vector(3, 1, 2, &i32::equivalent_datatype());
    /// assert_eq!(odd.as_ref().extent(), 5 * 4);
    /// ```
    pub fn extent(&self) -> Address {
        self.with_layout(Layout::extent)
    }

    /// Bytes from where a buffer begins to the lower bound of its first element.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::UserDatatype;
    /// use vrt::traits::*;
    ///
    /// // A number with four bytes before it.
    /// let padded = UserDatatype::resized(-4, 12, &f64::equivalent_datatype());
    /// assert_eq!(padded.as_ref().lower_bound(), -4);
    /// ```
    pub fn lower_bound(&self) -> Address {
        self.with_layout(Layout::lower_bound)
    }

    /// Bytes from where a buffer begins to its first byte of data (section 5.1.8).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::UserDatatype;
    /// use vrt::traits::*;
    ///
    /// // The second of two numbers, with the extent of both.
    /// let second = UserDatatype::indexed(&[1], &[1], &f64::equivalent_datatype());
    /// let second = UserDatatype::resized(0, 16, &second);
    /// assert_eq!((second.as_ref().lower_bound(), second.as_ref().true_lower_bound()), (0, 8));
    /// ```
    pub fn true_lower_bound(&self) -> Address {
        self.with_layout(Layout::true_lower_bound)
    }

    /// Bytes from an element's first byte of data to its last.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::UserDatatype;
    /// use vrt::traits::*;
    ///
    /// // A number with eight bytes behind it.
    /// let padded = UserDatatype::resized(0, 16, &f64::equivalent_datatype());
    /// assert_eq!((padded.as_ref().extent(), padded.as_ref().true_extent()), (16, 8));
    /// ```
    pub fn true_extent(&self) -> Address {
        self.with_layout(Layout::true_extent)
    }

    /// Calls `f` with what the type means for memory. `f` does not suspend the rank: the layout of
    /// a derived type belongs to the PE.
    pub(crate) fn with_layout<R>(&self, f: impl FnOnce(&Layout) -> R) -> R {
        match self.0 {
            Kind::System(scalar) => f(&Layout::scalar(scalar)),
            Kind::Derived(derived) => {
                let result = in_own_frame(|| f(derived.layout()));
                vrt_slot::check::wipe_below();
                result
            }
            Kind::User(datatype) => f(datatype.layout()),
        }
    }

    /// What every part of it is, if that is one kind of value.
    #[inline]
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match self.0 {
            Kind::System(scalar) => Some(scalar),
            _ => self.with_layout(Layout::scalar_kind),
        }
    }

    /// What its elements are, for messages.
    #[inline(always)]
    pub(crate) fn signature(&self) -> Signature {
        match self.0 {
            Kind::System(scalar) => Signature::of_scalar(scalar),
            _ => self.with_layout(Layout::signature),
        }
    }

    /// The type as it was made, in the rank's memory.
    pub(crate) fn made(&self) -> layout::Datatype {
        match self.0 {
            Kind::System(scalar) => user::made(Construction::Named(scalar)),
            // The PE's, and its parts too.
            Kind::Derived(derived) => derived.datatype().copied(),
            Kind::User(datatype) => datatype.clone(),
        }
    }

    /// Keeps the type beyond the borrow.
    pub(crate) fn to_owned_type(self) -> OwnedDatatype {
        match self.0 {
            Kind::System(scalar) => OwnedDatatype::System(scalar),
            Kind::Derived(derived) => OwnedDatatype::Derived(derived),
            Kind::User(datatype) => OwnedDatatype::User(datatype.clone()),
        }
    }
}

/// Never inlined: addresses of the PE's memory stay in its frame, which is gone when the rank
/// suspends.
#[inline(never)]
fn in_own_frame<R>(f: impl FnOnce() -> R) -> R {
    f()
}

impl PartialEq for DatatypeRef<'_> {
    /// Whether both are the same datatype, not whether they have the same parts.
    fn eq(&self, other: &DatatypeRef<'_>) -> bool {
        match (self.0, other.0) {
            (Kind::System(a), Kind::System(b)) => a == b,
            (Kind::Derived(a), Kind::Derived(b)) => std::ptr::eq(a, b),
            (Kind::User(a), Kind::User(b)) => a.is(b),
            _ => false,
        }
    }
}

impl Eq for DatatypeRef<'_> {}

// SAFETY: the handle is a number that stands for this datatype.
unsafe impl AsRaw for DatatypeRef<'_> {
    type Raw = MPI_Datatype;

    fn as_raw(&self) -> MPI_Datatype {
        MPI_Datatype(match self.0 {
            Kind::System(scalar) => scalar as usize + 1,
            Kind::Derived(derived) => std::ptr::from_ref(derived) as usize,
            Kind::User(datatype) => datatype.as_number(),
        })
    }
}

// SAFETY: nothing reads one as the other.
unsafe impl MatchesRaw for DatatypeRef<'_> {}

/// A datatype that keeps itself alive.
#[derive(Clone, Debug)]
pub(crate) enum OwnedDatatype {
    System(Scalar),
    Derived(&'static internal::DerivedDatatype),
    User(layout::Datatype),
}

impl OwnedDatatype {
    pub(crate) fn datatype_ref(&self) -> DatatypeRef<'_> {
        DatatypeRef(match self {
            OwnedDatatype::System(scalar) => Kind::System(*scalar),
            OwnedDatatype::Derived(derived) => Kind::Derived(derived),
            OwnedDatatype::User(datatype) => Kind::User(datatype),
        })
    }
}

/// Something that describes elements, whether or not it can be used in messages yet.
///
/// # Examples
///
/// ```
/// use vrt::datatype::UserDatatype;
/// use vrt::traits::*;
///
/// fn pair<D: UncommittedDatatype>(of: &D) -> UserDatatype {
///     UserDatatype::contiguous(2, of)
/// }
///
/// assert_eq!(pair(&pair(&i32::equivalent_datatype())).as_ref().size(), 16);
/// ```
pub trait UncommittedDatatype: AsRaw<Raw = MPI_Datatype> {
    /// The type of a duplicate.
    type DuplicatedDatatype;

    /// Another datatype with the same parts (section 5.1.10).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::UserDatatype;
    /// use vrt::traits::*;
    ///
    /// let pair = UserDatatype::contiguous(2, &i32::equivalent_datatype());
    /// let other = pair.dup();
    /// assert_eq!(other.as_ref().size(), pair.as_ref().size());
    /// assert_ne!(other.as_ref(), pair.as_ref());
    /// ```
    fn dup(&self) -> Self::DuplicatedDatatype;

    /// The datatype.
    #[doc(hidden)]
    fn datatype_ref(&self) -> DatatypeRef<'_>;
}

/// Something that describes elements of messages.
///
/// # Examples
///
/// ```
/// use vrt::World;
/// use vrt::traits::*;
///
/// fn is_short<D: Datatype>(world: &World, elements: i32, datatype: &D) -> bool {
///     world.pack_size(elements, datatype) <= 4096
/// }
///
/// vrt::run_local(1, |world| {
///     assert!(is_short(world, 512, &f64::equivalent_datatype()));
///     assert!(!is_short(world, 513, &f64::equivalent_datatype()));
/// });
/// ```
pub trait Datatype: UncommittedDatatype {}

impl UncommittedDatatype for DatatypeRef<'_> {
    type DuplicatedDatatype = UserDatatype;

    fn dup(&self) -> UserDatatype {
        UserDatatype::made(Construction::Dup(self.made()))
    }

    #[inline]
    fn datatype_ref(&self) -> DatatypeRef<'_> {
        *self
    }
}

impl Datatype for DatatypeRef<'_> {}

impl<D: UncommittedDatatype> UncommittedDatatype for &D {
    type DuplicatedDatatype = D::DuplicatedDatatype;

    fn dup(&self) -> D::DuplicatedDatatype {
        (**self).dup()
    }

    #[inline]
    fn datatype_ref(&self) -> DatatypeRef<'_> {
        (**self).datatype_ref()
    }
}

impl<D: Datatype> Datatype for &D {}

/// A Rust type with a datatype that describes its memory.
///
/// # Safety
/// The datatype describes all bytes of the type that carry values, and every value of those bytes
/// that a correct program can send is a valid value of the type.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Equivalence)]
/// struct Particle {
///     place: [f32; 3],
///     charge: i8,
/// }
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     let mine = Particle { place: [1.0, 2.0, 3.0], charge: -1 };
///     other.send(&mine);
///     assert_eq!(other.receive::<Particle>().0, mine);
/// });
/// ```
pub unsafe trait Equivalence {
    /// The kind of datatype.
    type Out: Datatype;

    /// The datatype.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// assert_eq!(u32::equivalent_datatype().size(), 4);
    /// assert_ne!(u32::equivalent_datatype(), i32::equivalent_datatype());
    /// ```
    fn equivalent_datatype() -> Self::Out;
}

macro_rules! equivalent {
    ($($ty:ty => $scalar:ident),* $(,)?) => {$(
        // SAFETY: a plain number (or bool, which is only ever sent from a bool).
        unsafe impl Equivalence for $ty {
            type Out = SystemDatatype;

            fn equivalent_datatype() -> SystemDatatype {
                DatatypeRef::system(Scalar::$scalar)
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
#[cfg(feature = "complex")]
equivalent! { num_complex::Complex32 => C32, num_complex::Complex64 => C64 }
equivalent! {
    Located<f32> => F32At, Located<f64> => F64At,
    Located<i16> => I16At, Located<i32> => I32At, Located<i64> => I64At,
}

/// The address of a value, to compute displacements with (section 5.1.5).
///
/// # Examples
///
/// ```
/// use std::mem::offset_of;
///
/// use vrt::datatype::address_of;
///
/// struct Particle {
///     charge: i8,
///     place: [f64; 3],
/// }
///
/// let particle = Particle { charge: -1, place: [1.0, 2.0, 3.0] };
/// let displacement = address_of(&particle.place) - address_of(&particle);
/// assert_eq!(displacement, offset_of!(Particle, place) as isize);
/// ```
pub fn address_of<T>(x: &T) -> Address {
    std::ptr::from_ref(x) as Address
}

/// The traits of this module, and the derive macro [`Equivalence`](vrt_derive::Equivalence).
pub mod traits {
    pub use super::{
        AsDatatype, Buffer, BufferMut, Collection, Datatype, Equivalence, Partitioned,
        PartitionedBuffer, PartitionedBufferMut, Pointer, PointerMut, UncommittedDatatype,
    };
    pub use vrt_derive::Equivalence;
}
