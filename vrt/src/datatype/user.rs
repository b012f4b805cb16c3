//! Datatypes made from others (MPI-4.1 section 5.1).
//!
//! Counts, block lengths and displacements of the plain constructors are in elements of the old
//! type, those of the `heterogeneous` ones in bytes. A type is flattened when it is made, so
//! committing it does nothing more. It is a serde value: how it was made.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::datatype::{Datatype, DatatypeRef, Kind, OwnedDatatype, UncommittedDatatype};
use crate::ffi::MPI_Datatype;
use crate::raw::{AsRaw, FromRaw, MatchesRaw};
use crate::{Address, Count};
pub use vrt_core::layout::ArrayOrder;
use vrt_core::layout::{self, Construction, Dimension};

/// A datatype made by the program.
///
/// # Examples
///
/// ```
/// use vrt::datatype::{UserDatatype, View};
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     // The second column of a matrix of three rows.
///     let column = UserDatatype::vector(3, 1, 2, &f64::equivalent_datatype());
///     let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
///     // SAFETY: from the second element on, three elements at a distance of two lie in the matrix.
///     let second = unsafe { View::with_count_and_datatype(&matrix[1..], 1, &column) };
///     other.send(&second);
///     assert_eq!(other.receive_vec::<f64>().0, [2.0, 4.0, 6.0]);
/// });
/// ```
#[derive(Debug)]
pub struct UserDatatype(layout::Datatype);

/// A datatype made by the program that can be a part of others, but not of messages yet.
///
/// # Examples
///
/// ```
/// use vrt::datatype::UncommittedUserDatatype;
/// use vrt::traits::*;
///
/// let pair = UncommittedUserDatatype::contiguous(2, &f64::equivalent_datatype());
/// let pairs = UncommittedUserDatatype::vector(3, 1, 2, &pair).commit();
/// assert_eq!(pairs.as_ref().size(), 3 * 2 * 8);
/// ```
#[derive(Debug)]
pub struct UncommittedUserDatatype(layout::Datatype);

/// A datatype by reference that can be a part of others.
///
/// # Examples
///
/// ```
/// use vrt::datatype::{UncommittedUserDatatype, UserDatatype};
/// use vrt::traits::*;
///
/// let pair = UncommittedUserDatatype::contiguous(2, &f64::equivalent_datatype());
/// let types = [pair.as_ref(), u8::equivalent_datatype().into()];
/// let record = UserDatatype::structured(&[1, 1], &[0, 16], &types);
/// assert_eq!(record.as_ref().size(), 17);
/// ```
#[derive(Clone, Debug)]
pub struct UncommittedDatatypeRef<'a> {
    datatype: OwnedDatatype,
    lifetime: PhantomData<&'a ()>,
}

/// The datatype that is made so.
///
/// # Panics
/// When a number is not possible.
pub(super) fn made(construction: Construction) -> layout::Datatype {
    layout::Datatype::new(construction).unwrap_or_else(|error| panic!("{error}"))
}

fn made_of<D: UncommittedDatatype + ?Sized>(datatype: &D) -> layout::Datatype {
    datatype.datatype_ref().made()
}

fn expect_parallel(blocklengths: usize, displacements: usize) {
    assert!(
        blocklengths == displacements,
        "a datatype with {blocklengths} block lengths and {displacements} displacements: there \
         has to be one of each for every block"
    );
}

/// Numbers as the engine has them.
fn wide(numbers: &[Count]) -> impl Iterator<Item = i64> {
    numbers.iter().map(|number| i64::from(*number))
}

fn dimensions(sizes: &[Count], subsizes: &[Count], starts: &[Count]) -> Vec<Dimension> {
    assert!(
        sizes.len() == subsizes.len() && sizes.len() == starts.len(),
        "a subarray with {} sizes, {} subsizes and {} starts: there has to be one of each for \
         every dimension",
        sizes.len(),
        subsizes.len(),
        starts.len()
    );
    let parts = wide(subsizes).zip(wide(starts));
    let dimension = |(size, (part, start))| Dimension { size, part, start };
    wide(sizes).zip(parts).map(dimension).collect()
}

macro_rules! constructors {
    ($name:ident) => {
        impl $name {
            pub(crate) fn of(datatype: layout::Datatype) -> Self {
                $name(datatype)
            }

            /// # Panics
            /// When a number is not possible.
            pub(crate) fn made(construction: Construction) -> Self {
                Self::of(made(construction))
            }

            /// Elements one behind the other.
            ///
            /// # Panics
            /// When the count is negative.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::UserDatatype;
            /// use vrt::traits::*;
            ///
            /// let place = UserDatatype::contiguous(3, &f64::equivalent_datatype());
            /// assert_eq!((place.as_ref().size(), place.as_ref().extent()), (24, 24));
            /// ```
            pub fn contiguous<D: UncommittedDatatype>(count: Count, oldtype: &D) -> Self {
                Self::made(Construction::Contiguous { count: count.into(), of: made_of(oldtype) })
            }

            /// Blocks at equal distances of `stride` elements.
            ///
            /// # Panics
            /// When the count or block length is negative.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::UserDatatype;
            /// use vrt::traits::*;
            ///
            /// // The elements 0 to 2 and 4 to 6.
            /// let blocks = UserDatatype::vector(2, 3, 4, &i32::equivalent_datatype());
            /// assert_eq!((blocks.as_ref().size(), blocks.as_ref().extent()), (6 * 4, 7 * 4));
            /// ```
            pub fn vector<D: UncommittedDatatype>(
                count: Count,
                blocklength: Count,
                stride: Count,
                oldtype: &D,
            ) -> Self {
                let (count, block_length) = (count.into(), blocklength.into());
                let (stride, of) = (stride.into(), made_of(oldtype));
                Self::made(Construction::Vector { count, block_length, stride, of })
            }

            /// Blocks at equal distances of `stride` bytes.
            ///
            /// # Panics
            /// When the count or block length is negative.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::UserDatatype;
            /// use vrt::traits::*;
            ///
            /// // A number of each of two records of 12 bytes.
            /// let numbers = UserDatatype::heterogeneous_vector(2, 1, 12, &f64::equivalent_datatype());
            /// assert_eq!((numbers.as_ref().size(), numbers.as_ref().extent()), (2 * 8, 12 + 8));
            /// ```
            pub fn heterogeneous_vector<D: UncommittedDatatype>(
                count: Count,
                blocklength: Count,
                stride: Address,
                oldtype: &D,
            ) -> Self {
                let (count, block_length) = (count.into(), blocklength.into());
                let of = made_of(oldtype);
                Self::made(Construction::Hvector { count, block_length, stride, of })
            }

            /// Blocks of different lengths.
            ///
            /// # Panics
            /// When the slices differ in length or a block length is negative.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::{UserDatatype, View};
            /// use vrt::traits::*;
            ///
            /// vrt::run_local(1, |world| {
            ///     let chosen = UserDatatype::indexed(&[2, 1], &[0, 4], &u8::equivalent_datatype());
            ///     // SAFETY: the elements 0, 1 and 4 lie in the array.
            ///     let view = unsafe { View::with_count_and_datatype(b"abcde", 1, &chosen) };
            ///     assert_eq!(world.pack(&view), b"abe");
            /// });
            /// ```
            pub fn indexed<D: UncommittedDatatype>(
                blocklengths: &[Count],
                displacements: &[Count],
                oldtype: &D,
            ) -> Self {
                expect_parallel(blocklengths.len(), displacements.len());
                let blocks = wide(blocklengths).zip(wide(displacements)).collect();
                Self::made(Construction::Indexed { blocks, of: made_of(oldtype) })
            }

            /// Blocks of different lengths, displacements in bytes.
            ///
            /// # Panics
            /// As [`indexed`](Self::indexed).
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::UserDatatype;
            /// use vrt::traits::*;
            ///
            /// // Two numbers at the beginning, one 24 bytes from there.
            /// let number = f64::equivalent_datatype();
            /// let chosen = UserDatatype::heterogeneous_indexed(&[2, 1], &[0, 24], &number);
            /// assert_eq!((chosen.as_ref().size(), chosen.as_ref().extent()), (3 * 8, 24 + 8));
            /// ```
            pub fn heterogeneous_indexed<D: UncommittedDatatype>(
                blocklengths: &[Count],
                displacements: &[Address],
                oldtype: &D,
            ) -> Self {
                expect_parallel(blocklengths.len(), displacements.len());
                let blocks = wide(blocklengths).zip(displacements.iter().copied()).collect();
                Self::made(Construction::Hindexed { blocks, of: made_of(oldtype) })
            }

            /// Blocks of equal length.
            ///
            /// # Panics
            /// When the block length is negative.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::{UserDatatype, View};
            /// use vrt::traits::*;
            ///
            /// vrt::run_local(1, |world| {
            ///     let pairs = UserDatatype::indexed_block(2, &[3, 0], &u8::equivalent_datatype());
            ///     // SAFETY: the elements 3, 4, 0 and 1 lie in the array.
            ///     let view = unsafe { View::with_count_and_datatype(b"abcde", 1, &pairs) };
            ///     assert_eq!(world.pack(&view), b"deab");
            /// });
            /// ```
            pub fn indexed_block<D: UncommittedDatatype>(
                blocklength: Count,
                displacements: &[Count],
                oldtype: &D,
            ) -> Self {
                let (block_length, of) = (blocklength.into(), made_of(oldtype));
                let displacements = wide(displacements).collect();
                Self::made(Construction::IndexedBlock { block_length, displacements, of })
            }

            /// Blocks of equal length, displacements in bytes.
            ///
            /// # Panics
            /// When the block length is negative.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::UserDatatype;
            /// use vrt::traits::*;
            ///
            /// // Two numbers at the beginning, two 20 bytes from there.
            /// let number = i32::equivalent_datatype();
            /// let pairs = UserDatatype::heterogeneous_indexed_block(2, &[0, 20], &number);
            /// assert_eq!((pairs.as_ref().size(), pairs.as_ref().extent()), (4 * 4, 20 + 8));
            /// ```
            pub fn heterogeneous_indexed_block<D: UncommittedDatatype>(
                blocklength: Count,
                displacements: &[Address],
                oldtype: &D,
            ) -> Self {
                let (block_length, of) = (blocklength.into(), made_of(oldtype));
                let displacements = displacements.to_vec();
                Self::made(Construction::HindexedBlock { block_length, displacements, of })
            }

            /// Blocks of different types; displacements in bytes. The end is moved up to a multiple
            /// of the strictest alignment, as C does with structures.
            ///
            /// # Panics
            /// When the slices differ in length or a block length is negative.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::UserDatatype;
            /// use vrt::traits::*;
            ///
            /// // As C has a `double` and a `char` behind it: the end is padded.
            /// let types = [f64::equivalent_datatype(), u8::equivalent_datatype()];
            /// let record = UserDatatype::structured(&[1, 1], &[0, 8], &types);
            /// assert_eq!((record.as_ref().size(), record.as_ref().extent()), (9, 16));
            /// ```
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
                let places = wide(blocklengths).zip(displacements);
                let blocks =
                    places.zip(types).map(|((len, at), old)| (len, *at, made_of(old))).collect();
                Self::made(Construction::Struct { blocks })
            }

            /// A part of an array of several dimensions; it has the extent of the whole array.
            ///
            /// # Panics
            /// When the slices differ in length, a number is negative, or the part does not lie in
            /// the array.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::{ArrayOrder, UserDatatype, View};
            /// use vrt::traits::*;
            ///
            /// vrt::run_local(1, |world| {
            ///     let byte = u8::equivalent_datatype();
            ///     let corner = UserDatatype::subarray(&[3, 3], &[2, 2], &[1, 1], ArrayOrder::C, &byte);
            ///     // SAFETY: the part lies in the array of three rows.
            ///     let view = unsafe { View::with_count_and_datatype(b"abcdefghi", 1, &corner) };
            ///     assert_eq!(world.pack(&view), b"efhi");
            /// });
            /// ```
            pub fn subarray<D: UncommittedDatatype>(
                sizes: &[Count],
                subsizes: &[Count],
                starts: &[Count],
                order: ArrayOrder,
                oldtype: &D,
            ) -> Self {
                let (dimensions, of) = (dimensions(sizes, subsizes, starts), made_of(oldtype));
                Self::made(Construction::Subarray { dimensions, order, of })
            }

            /// The same data with another lower bound and extent, in bytes.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::{UserDatatype, View};
            /// use vrt::traits::*;
            ///
            /// vrt::run_local(1, |world| {
            ///     // A column of two rows; the next column begins one element further on.
            ///     let column = UserDatatype::vector(2, 1, 3, &u8::equivalent_datatype());
            ///     let column = UserDatatype::resized(0, 1, &column);
            ///     // SAFETY: the first two columns lie in the array.
            ///     let view = unsafe { View::with_count_and_datatype(b"abcdef", 2, &column) };
            ///     assert_eq!(world.pack(&view), b"adbe");
            /// });
            /// ```
            pub fn resized<D: UncommittedDatatype>(
                lower_bound: Address,
                extent: Address,
                oldtype: &D,
            ) -> Self {
                Self::made(Construction::Resized { lower_bound, extent, of: made_of(oldtype) })
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
                Self::made(Construction::Dup(self.0.clone()))
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
                // SAFETY: the number is that of a datatype which lives, as the caller promises.
                $name(unsafe { layout::Datatype::from_number(handle.0) })
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
    pub(super) fn into_made(self) -> layout::Datatype {
        self.0
    }

    /// The datatype by reference.
    ///
    /// Example: [`DatatypeRef`].
    pub fn as_ref(&self) -> DatatypeRef<'_> {
        self.datatype_ref()
    }
}

impl Datatype for UserDatatype {}

impl Serialize for UserDatatype {
    /// As how it was made.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for UserDatatype {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UserDatatype, D::Error> {
        layout::Datatype::deserialize(deserializer).map(UserDatatype)
    }
}

impl<'a> From<&'a UserDatatype> for DatatypeRef<'a> {
    fn from(datatype: &'a UserDatatype) -> Self {
        datatype.datatype_ref()
    }
}

impl UncommittedUserDatatype {
    /// Makes it fit for messages (section 5.1.9).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::UncommittedUserDatatype;
    /// use vrt::traits::*;
    ///
    /// let pair = UncommittedUserDatatype::contiguous(2, &f64::equivalent_datatype()).commit();
    /// assert_eq!(pair.as_ref().size(), 16);
    /// ```
    pub fn commit(self) -> UserDatatype {
        UserDatatype(self.0)
    }

    /// The datatype by reference.
    ///
    /// Example: [`UncommittedDatatypeRef`].
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
        UncommittedUserDatatype::made(Construction::Dup(made_of(self)))
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
        // A packed record in a structure stays packed.
        let packed =
            UserDatatype::resized(0, 9, &UserDatatype::structured(&[1, 1], &[1, 0], &types));
        let record = UserDatatype::structured(&[2], &[0], &[packed.as_ref()]);
        assert_eq!(bounds(&record), (18, 0, 18, 0, 18));
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
