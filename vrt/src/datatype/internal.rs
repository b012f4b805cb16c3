//! What the code made by `#[derive(Equivalence)]` calls. Not for programs.

use std::sync::OnceLock;

use crate::datatype::{DatatypeRef, Kind, UncommittedDatatype, UserDatatype};
use vrt_core::layout::Layout;
use vrt_slot::hooks;

/// A datatype of the program itself: a static whose address means the same in every PE.
///
/// What it describes is found when a PE first needs it, and belongs to that PE; a rank holds only
/// the address, so it can move in between.
#[derive(Debug)]
pub struct DerivedDatatype {
    describe: fn() -> UserDatatype,
    layout: OnceLock<Layout>,
}

impl DerivedDatatype {
    /// A datatype that a function describes.
    pub const fn new(describe: fn() -> UserDatatype) -> DerivedDatatype {
        DerivedDatatype { describe, layout: OnceLock::new() }
    }

    /// The datatype.
    pub fn as_ref(&'static self) -> DatatypeRef<'static> {
        DatatypeRef(Kind::Derived(self))
    }

    /// What it means for memory, in this PE.
    pub(crate) fn layout(&'static self) -> &'static Layout {
        match self.layout.get() {
            Some(layout) => layout,
            // The PE's, so not from the heap of the rank that happens to ask first.
            None => hooks::runtime_heap(|| {
                self.layout.get_or_init(|| (self.describe)().layout().as_ref().clone())
            }),
        }
    }
}

/// Any datatype as an owned one.
pub fn owned<D: UncommittedDatatype>(datatype: D) -> UserDatatype {
    UserDatatype::from_layout(datatype.datatype_ref().with_layout(Layout::clone))
}

/// An array of elements.
pub fn array(count: usize, element: &UserDatatype) -> UserDatatype {
    UserDatatype::from_layout(element.layout().contiguous(count))
}

/// A structure of `size` bytes with fields at offsets.
pub fn structure(size: usize, fields: &[(usize, UserDatatype)]) -> UserDatatype {
    let parts: Vec<(isize, Layout)> = fields
        .iter()
        .map(|(offset, field)| (*offset as isize, field.layout().as_ref().clone()))
        .collect();
    UserDatatype::from_layout(Layout::concatenate(&parts).resized(0, size as isize))
}
