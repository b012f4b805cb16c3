//! Datatypes made from others (MPI-4.1 section 5.1).
//!
//! Counts, block lengths and displacements of the plain constructors are in elements of the old
//! type, those of the `heterogeneous` ones in bytes. A type is flattened when it is made, so
//! committing it does nothing more.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::datatype::{Datatype, DatatypeRef, Kind, OwnedDatatype, UncommittedDatatype};
use crate::ffi::MPI_Datatype;
use crate::raw::{AsRaw, FromRaw, MatchesRaw};
use crate::{Address, Count};
use vrt_core::layout::Layout;

/// A datatype made by the program.
#[derive(Debug)]
pub struct UserDatatype(Arc<Layout>);

/// A datatype made by the program that can be a part of others, but not of messages yet.
#[derive(Debug)]
pub struct UncommittedUserDatatype(Arc<Layout>);

/// A datatype by reference that can be a part of others.
#[derive(Clone, Debug)]
pub struct UncommittedDatatypeRef<'a> {
    datatype: OwnedDatatype,
    lifetime: PhantomData<&'a ()>,
}

/// How the elements of an array lie in memory (MPI-4.1 section 5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayOrder {
    /// The last index runs fastest.
    C,
    /// The first index runs fastest.
    Fortran,
}

fn size_from(count: Count, what: &str) -> usize {
    usize::try_from(count).unwrap_or_else(|_| panic!("{what} of a datatype is {count}: negative"))
}

fn layout_of<D: UncommittedDatatype + ?Sized>(datatype: &D) -> Layout {
    datatype.datatype_ref().with_layout(Layout::clone)
}

/// Blocks of `(displacement in bytes, length in elements)`.
fn blocks(blocks: impl Iterator<Item = (Address, Count)>, old: &Layout) -> Layout {
    let parts: Vec<(isize, Layout)> =
        blocks.map(|(at, len)| (at, old.contiguous(size_from(len, "a block length")))).collect();
    Layout::concatenate(&parts)
}

fn expect_parallel(blocklengths: usize, displacements: usize) {
    assert!(
        blocklengths == displacements,
        "a datatype with {blocklengths} block lengths and {displacements} displacements: there \
         has to be one of each for every block"
    );
}

fn sub_array(
    sizes: &[Count],
    subsizes: &[Count],
    starts: &[Count],
    order: ArrayOrder,
    old: &Layout,
) -> Layout {
    assert!(
        sizes.len() == subsizes.len() && sizes.len() == starts.len(),
        "a subarray with {} sizes, {} subsizes and {} starts: there has to be one of each for \
         every dimension",
        sizes.len(),
        subsizes.len(),
        starts.len()
    );
    let (mut layout, mut stride, mut offset) = (old.clone(), old.extent(), 0isize);
    let mut dimension = |d: usize| {
        let (size, part) = (size_from(sizes[d], "a size"), size_from(subsizes[d], "a subsize"));
        let start = size_from(starts[d], "a start");
        assert!(
            start + part <= size,
            "dimension {d} of a subarray: {part} elements from {start} on do not lie in {size}"
        );
        layout = layout.repeat(part, stride);
        offset += start as isize * stride;
        stride *= size as isize;
    };
    match order {
        ArrayOrder::C => (0..sizes.len()).rev().for_each(&mut dimension),
        ArrayOrder::Fortran => (0..sizes.len()).for_each(&mut dimension),
    }
    Layout::concatenate(&[(offset, layout)]).resized(0, stride)
}

macro_rules! constructors {
    ($name:ident) => {
        impl $name {
            pub(crate) fn from_layout(layout: Layout) -> Self {
                $name(Arc::new(layout))
            }

            /// Elements one behind the other.
            ///
            /// # Panics
            /// When the count is negative.
            pub fn contiguous<D: UncommittedDatatype>(count: Count, oldtype: &D) -> Self {
                Self::from_layout(layout_of(oldtype).contiguous(size_from(count, "the count")))
            }

            /// Blocks at equal distances of `stride` elements.
            ///
            /// # Panics
            /// When the count or block length is negative.
            pub fn vector<D: UncommittedDatatype>(
                count: Count,
                blocklength: Count,
                stride: Count,
                oldtype: &D,
            ) -> Self {
                let bytes = stride as Address * oldtype.datatype_ref().extent();
                Self::heterogeneous_vector(count, blocklength, bytes, oldtype)
            }

            /// Blocks at equal distances of `stride` bytes.
            ///
            /// # Panics
            /// When the count or block length is negative.
            pub fn heterogeneous_vector<D: UncommittedDatatype>(
                count: Count,
                blocklength: Count,
                stride: Address,
                oldtype: &D,
            ) -> Self {
                let block =
                    layout_of(oldtype).contiguous(size_from(blocklength, "the block length"));
                Self::from_layout(block.repeat(size_from(count, "the count"), stride))
            }

            /// Blocks of different lengths.
            ///
            /// # Panics
            /// When the slices differ in length or a block length is negative.
            pub fn indexed<D: UncommittedDatatype>(
                blocklengths: &[Count],
                displacements: &[Count],
                oldtype: &D,
            ) -> Self {
                expect_parallel(blocklengths.len(), displacements.len());
                let old = layout_of(oldtype);
                let at = displacements.iter().map(|at| *at as Address * old.extent());
                Self::from_layout(blocks(at.zip(blocklengths.iter().copied()), &old))
            }

            /// Blocks of different lengths, displacements in bytes.
            ///
            /// # Panics
            /// As [`indexed`](Self::indexed).
            pub fn heterogeneous_indexed<D: UncommittedDatatype>(
                blocklengths: &[Count],
                displacements: &[Address],
                oldtype: &D,
            ) -> Self {
                expect_parallel(blocklengths.len(), displacements.len());
                let at = displacements.iter().copied();
                Self::from_layout(blocks(at.zip(blocklengths.iter().copied()), &layout_of(oldtype)))
            }

            /// Blocks of equal length.
            ///
            /// # Panics
            /// When the block length is negative.
            pub fn indexed_block<D: UncommittedDatatype>(
                blocklength: Count,
                displacements: &[Count],
                oldtype: &D,
            ) -> Self {
                let old = layout_of(oldtype);
                let at =
                    displacements.iter().map(|at| (*at as Address * old.extent(), blocklength));
                Self::from_layout(blocks(at, &old))
            }

            /// Blocks of equal length, displacements in bytes.
            ///
            /// # Panics
            /// When the block length is negative.
            pub fn heterogeneous_indexed_block<D: UncommittedDatatype>(
                blocklength: Count,
                displacements: &[Address],
                oldtype: &D,
            ) -> Self {
                let at = displacements.iter().map(|at| (*at, blocklength));
                Self::from_layout(blocks(at, &layout_of(oldtype)))
            }

            /// Blocks of different types; displacements in bytes. The end is moved up to a multiple
            /// of the strictest alignment, as C does with structures.
            ///
            /// # Panics
            /// When the slices differ in length or a block length is negative.
            pub fn structured<D>(
                blocklengths: &[Count],
                displacements: &[Address],
                types: &[D],
            ) -> Self
            where
                D: UncommittedDatatype + MatchesRaw<Raw = MPI_Datatype>,
            {
                expect_parallel(blocklengths.len(), displacements.len());
                expect_parallel(types.len(), displacements.len());
                let parts: Vec<(isize, Layout)> = displacements
                    .iter()
                    .zip(blocklengths)
                    .zip(types)
                    .map(|((at, len), old)| {
                        let len = size_from(*len, "a block length");
                        (*at, layout_of(old).contiguous(len))
                    })
                    .collect();
                Self::from_layout(Layout::concatenate(&parts).padded())
            }

            /// A part of an array of several dimensions; it has the extent of the whole array.
            ///
            /// # Panics
            /// When the slices differ in length, a number is negative, or the part does not lie in
            /// the array.
            pub fn subarray<D: UncommittedDatatype>(
                sizes: &[Count],
                subsizes: &[Count],
                starts: &[Count],
                order: ArrayOrder,
                oldtype: &D,
            ) -> Self {
                let old = layout_of(oldtype);
                Self::from_layout(sub_array(sizes, subsizes, starts, order, &old))
            }

            /// The same data with another lower bound and extent, in bytes.
            pub fn resized<D: UncommittedDatatype>(
                lower_bound: Address,
                extent: Address,
                oldtype: &D,
            ) -> Self {
                Self::from_layout(layout_of(oldtype).resized(lower_bound, extent))
            }
        }

        impl Clone for $name {
            fn clone(&self) -> Self {
                self.dup()
            }
        }

        impl UncommittedDatatype for $name {
            type DuplicatedDatatype = $name;

            fn dup(&self) -> Self {
                Self::from_layout((*self.0).clone())
            }

            fn datatype_ref(&self) -> DatatypeRef<'_> {
                DatatypeRef(Kind::User(&self.0))
            }
        }

        // SAFETY: the handle is a number that stands for this datatype.
        unsafe impl AsRaw for $name {
            type Raw = MPI_Datatype;

            fn as_raw(&self) -> MPI_Datatype {
                self.datatype_ref().as_raw()
            }
        }

        impl FromRaw for $name {
            unsafe fn from_raw(handle: MPI_Datatype) -> Self {
                let layout = handle.0 as *const Layout;
                // SAFETY: the number is the address in an `Arc` that lives, as the caller promises.
                unsafe {
                    Arc::increment_strong_count(layout);
                    $name(Arc::from_raw(layout))
                }
            }
        }

        // SAFETY: nothing reads one as the other.
        unsafe impl MatchesRaw for $name {}

        impl<'a> From<&'a $name> for UncommittedDatatypeRef<'a> {
            fn from(datatype: &'a $name) -> Self {
                datatype.datatype_ref().into()
            }
        }
    };
}

constructors!(UserDatatype);
constructors!(UncommittedUserDatatype);

impl UserDatatype {
    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.0
    }

    /// The datatype by reference.
    pub fn as_ref(&self) -> DatatypeRef<'_> {
        self.datatype_ref()
    }
}

impl Datatype for UserDatatype {}

impl<'a> From<&'a UserDatatype> for DatatypeRef<'a> {
    fn from(datatype: &'a UserDatatype) -> Self {
        datatype.datatype_ref()
    }
}

impl UncommittedUserDatatype {
    /// Makes it fit for messages (section 5.1.9).
    pub fn commit(self) -> UserDatatype {
        UserDatatype(self.0)
    }

    /// The datatype by reference.
    pub fn as_ref(&self) -> UncommittedDatatypeRef<'_> {
        self.into()
    }
}

impl<'a> From<DatatypeRef<'a>> for UncommittedDatatypeRef<'a> {
    fn from(datatype: DatatypeRef<'a>) -> Self {
        UncommittedDatatypeRef { datatype: datatype.to_owned_type(), lifetime: PhantomData }
    }
}

impl UncommittedDatatype for UncommittedDatatypeRef<'_> {
    type DuplicatedDatatype = UncommittedUserDatatype;

    fn dup(&self) -> UncommittedUserDatatype {
        UncommittedUserDatatype::from_layout(layout_of(self))
    }

    fn datatype_ref(&self) -> DatatypeRef<'_> {
        self.datatype.datatype_ref()
    }
}

// SAFETY: the handle is a number that stands for this datatype.
unsafe impl AsRaw for UncommittedDatatypeRef<'_> {
    type Raw = MPI_Datatype;

    fn as_raw(&self) -> MPI_Datatype {
        self.datatype_ref().as_raw()
    }
}

// SAFETY: nothing reads one as the other.
unsafe impl MatchesRaw for UncommittedDatatypeRef<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Equivalence;

    fn bounds(t: &UserDatatype) -> (usize, isize, isize, isize, isize) {
        let t = t.as_ref();
        (t.size(), t.lower_bound(), t.extent(), t.true_lower_bound(), t.true_extent())
    }

    #[test]
    fn extents_are_as_the_standard_says() {
        let int = i32::equivalent_datatype();
        assert_eq!(bounds(&UserDatatype::vector(2, 3, 4, &int)), (24, 0, 28, 0, 28));
        assert_eq!(bounds(&UserDatatype::vector(2, 1, -2, &int)), (8, -8, 12, -8, 12));
        assert_eq!(bounds(&UserDatatype::indexed(&[3, 1], &[4, 0], &int)), (16, 0, 28, 0, 28));
        let types = [f64::equivalent_datatype(), u8::equivalent_datatype()];
        let padded = UserDatatype::structured(&[1, 1], &[0, 8], &types);
        assert_eq!(bounds(&padded), (9, 0, 16, 0, 9));
        let resized = UserDatatype::resized(-4, 32, &padded);
        assert_eq!(bounds(&resized), (9, -4, 32, 0, 9));
        assert_eq!(bounds(&UserDatatype::contiguous(0, &int)), (0, 0, 0, 0, 0));
    }

    #[test]
    fn a_subarray_has_the_extent_of_its_array() {
        let int = i32::equivalent_datatype();
        for (order, at) in [(ArrayOrder::C, (10 + 2) * 4), (ArrayOrder::Fortran, (1 + 2 * 5) * 4)] {
            let t = UserDatatype::subarray(&[5, 10], &[2, 3], &[1, 2], order, &int);
            assert_eq!((t.as_ref().size(), t.as_ref().extent()), (24, 200));
            assert_eq!(t.as_ref().true_lower_bound(), at);
        }
    }

    #[test]
    #[should_panic(expected = "3 elements from 8 on do not lie in 10")]
    fn a_subarray_outside_of_its_array_is_refused() {
        let int = i32::equivalent_datatype();
        UserDatatype::subarray(&[10], &[3], &[8], ArrayOrder::C, &int);
    }
}
