//! The datatypes that exist from the beginning, as data.

use crate::types::MPI_Datatype;

/// A datatype that exists from the beginning. Sizes are those of Linux on x86-64, and of Fortran
/// compilers without options that change them.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedDatatype {
    /// Its handle.
    pub handle: MPI_Datatype,
    /// The handle's name.
    pub name: &'static str,
    /// What its elements are.
    pub kind: Kind,
    /// Bytes of data in an element: of a pair without what is between and behind its halves.
    pub size: usize,
    /// Bytes from one element to the next.
    pub extent: usize,
    /// Addresses of elements are multiples of this.
    pub alignment: usize,
    /// The type of a language that it is made for; none of bytes and pairs.
    pub native: Option<Native>,
}

/// What the elements of a datatype are. How large they are is said beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers with a sign.
    Signed,
    /// Integers without one.
    Unsigned,
    /// Binary floating point of IEEE 754, of 2, 4, 8 or 16 bytes.
    Float,
    /// The x87's floating point of 80 bits, in 16 bytes.
    LongDouble,
    /// Two of [`Float`](Kind::Float), each of half the size.
    Complex,
    /// Two of [`LongDouble`](Kind::LongDouble).
    LongDoubleComplex,
    /// Letters, with which nothing is computed.
    Char,
    /// Truth values of C and C++.
    Bool,
    /// Truth values of Fortran.
    Logical,
    /// Bytes.
    Byte,
    /// What `MPI_Pack` made.
    Packed,
    /// A value and where it was found, for `MPI_MINLOC` and `MPI_MAXLOC`.
    Pair {
        /// The value's datatype; it is at the beginning.
        value: MPI_Datatype,
        /// The index' datatype.
        index: MPI_Datatype,
        /// How far from the beginning the index is.
        index_offset: usize,
    },
}

/// A type of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// Of C.
    C(&'static str),
    /// Of C++.
    Cxx(&'static str),
    /// Of Fortran.
    Fortran(&'static str),
}

mod list {
    #![allow(missing_docs)]
    use super::{Kind, NamedDatatype, Native};
    use crate::types::MPI_Datatype;

    /// In `PLACES`: no datatype has this value.
    pub(super) const NONE: u8 = u8::MAX;

    include!(concat!(env!("OUT_DIR"), "/datatypes.rs"));

    pub(super) fn of(handle: MPI_Datatype) -> Option<&'static NamedDatatype> {
        let place = PLACES.get(handle.0.wrapping_sub(FIRST))?;
        DATATYPES.get(usize::from(*place))
    }
}

/// All datatypes that exist from the beginning, without `MPI_DATATYPE_NULL` and second names.
pub static DATATYPES: &[NamedDatatype] = list::DATATYPES;

impl NamedDatatype {
    /// The datatype with this handle, if it exists from the beginning. It takes two loads.
    pub fn of(handle: MPI_Datatype) -> Option<&'static NamedDatatype> {
        list::of(handle)
    }
}
