//! What the code made by `#[derive(Equivalence)]` calls. Not for programs.

use std::sync::OnceLock;

use crate::datatype::{DatatypeRef, Kind, UncommittedDatatype, UserDatatype};
use vrt_core::layout::{self, Construction, Layout};
use vrt_slot::hooks;

/// A datatype of the program itself: a static whose address means the same in every PE.
///
/// What it describes is found when a PE first needs it, and belongs to that PE; a rank holds only
/// the address, so it can move in between.
///
/// # Examples
///
/// ```
/// use vrt::datatype::internal::{DerivedDatatype, array, owned};
/// use vrt::traits::*;
///
/// static PLACE: DerivedDatatype =
///     DerivedDatatype::new(|| array(3, &owned(f64::equivalent_datatype())));
///
/// vrt::run_local(1, |_| assert_eq!(PLACE.as_ref().size(), 24));
/// ```
#[derive(Debug)]
pub struct DerivedDatatype {
    describe: fn() -> UserDatatype,
    datatype: OnceLock<layout::Datatype>,
}

impl DerivedDatatype {
    /// A datatype that a function describes.
    ///
    /// Example: [`DerivedDatatype`].
    pub const fn new(describe: fn() -> UserDatatype) -> DerivedDatatype {
        DerivedDatatype { describe, datatype: OnceLock::new() }
    }

    /// The datatype.
    ///
    /// Example: [`DerivedDatatype`].
    pub fn as_ref(&'static self) -> DatatypeRef<'static> {
        DatatypeRef(Kind::Derived(self))
    }

    /// What it means for memory, in this PE.
    pub(crate) fn layout(&'static self) -> &'static Layout {
        self.datatype().layout()
    }

    /// How it is made, in this PE.
    pub(crate) fn datatype(&'static self) -> &'static layout::Datatype {
        match self.datatype.get() {
            Some(datatype) => datatype,
            // The PE's, so not from the heap of the rank that happens to ask first.
            None => {
                hooks::runtime_heap(|| self.datatype.get_or_init(|| (self.describe)().into_made()))
            }
        }
    }
}

/// Any datatype as an owned one.
///
/// # Examples
///
/// ```
/// use vrt::datatype::internal::owned;
/// use vrt::traits::*;
///
/// assert_eq!(owned(f64::equivalent_datatype()).as_ref().size(), 8);
/// ```
pub fn owned<D: UncommittedDatatype>(datatype: D) -> UserDatatype {
    UserDatatype::of(datatype.datatype_ref().made())
}

/// An array of elements.
///
/// # Examples
///
/// ```
/// use vrt::datatype::internal::{array, owned};
/// use vrt::traits::*;
///
/// let place = array(3, &owned(f64::equivalent_datatype()));
/// assert_eq!(place.as_ref().size(), 24);
/// ```
pub fn array(count: usize, element: &UserDatatype) -> UserDatatype {
    let of = element.datatype_ref().made();
    UserDatatype::made(Construction::Contiguous { count: count as i64, of })
}

/// A structure of `size` bytes with fields at offsets.
///
/// # Examples
///
/// ```
/// use vrt::datatype::internal::{owned, structure};
/// use vrt::traits::*;
///
/// let fields = [(0, owned(i8::equivalent_datatype())), (8, owned(f64::equivalent_datatype()))];
/// let particle = structure(16, &fields);
/// assert_eq!((particle.as_ref().size(), particle.as_ref().extent()), (9, 16));
/// ```
pub fn structure(size: usize, fields: &[(usize, UserDatatype)]) -> UserDatatype {
    let blocks = fields
        .iter()
        .map(|(offset, field)| (1, *offset as isize, field.datatype_ref().made()))
        .collect();
    let of = UserDatatype::made(Construction::Struct { blocks }).into_made();
    UserDatatype::made(Construction::Resized { lower_bound: 0, extent: size as isize, of })
}
