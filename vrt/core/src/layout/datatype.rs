//! Datatypes as they were constructed, with their memory layout (MPI-4.1 sections 5.1.2 and 5.1.13).
//!
//! A [`Datatype`] keeps its [`Construction`], which MPI calls its envelope and contents: so a program can query how it
//! was made, it can be encoded and reconstructed elsewhere, and a binding can represent it by a number.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::layout::{Layout, Scalar};

/// A datatype. Clones share it.
#[derive(Clone, Debug)]
pub struct Datatype(Arc<Made>);

#[derive(Debug)]
struct Made {
    construction: Construction,
    layout: Layout,
}

/// How a datatype was constructed from others. Lengths and displacements are in elements of the old type if they are
/// `i64`, in bytes if they are `isize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Construction {
    /// A built-in one.
    Named(Scalar),
    /// A copy.
    Dup(Datatype),
    /// Consecutive elements.
    Contiguous {
        /// Their number.
        count: i64,
        /// Their type.
        of: Datatype,
    },
    /// Blocks at equal distances, given in elements.
    Vector {
        /// Number of blocks.
        count: i64,
        /// Elements per block.
        block_length: i64,
        /// The distance between the beginnings of two consecutive blocks.
        stride: i64,
        /// The element type.
        of: Datatype,
    },
    /// Blocks at equal distances, given in bytes.
    Hvector {
        /// Number of blocks.
        count: i64,
        /// Elements per block.
        block_length: i64,
        /// The distance between the beginnings of two consecutive blocks.
        stride: isize,
        /// The element type.
        of: Datatype,
    },
    /// Blocks of different lengths.
    Indexed {
        /// The number of elements and the displacement of each block.
        blocks: Vec<(i64, i64)>,
        /// The element type.
        of: Datatype,
    },
    /// The same, with displacements in bytes.
    Hindexed {
        /// The number of elements and the displacement of each block.
        blocks: Vec<(i64, isize)>,
        /// The element type.
        of: Datatype,
    },
    /// Blocks of equal lengths.
    IndexedBlock {
        /// Elements per block.
        block_length: i64,
        /// The displacement of each block.
        displacements: Vec<i64>,
        /// The element type.
        of: Datatype,
    },
    /// The same, with displacements in bytes.
    HindexedBlock {
        /// Elements per block.
        block_length: i64,
        /// The displacement of each block.
        displacements: Vec<isize>,
        /// The element type.
        of: Datatype,
    },
    /// Blocks of different types, padded at the end as C pads structures unless the bounds of all of them were set
    /// ([`Resized`](Construction::Resized)).
    Struct {
        /// The number of elements, the displacement and the type of each block.
        blocks: Vec<(i64, isize, Datatype)>,
    },
    /// A part of an array of several dimensions; it has the extent of the whole array.
    Subarray {
        /// For each dimension, the size of the array, the size of the part, and its start.
        dimensions: Vec<Dimension>,
        /// Which index varies fastest.
        order: ArrayOrder,
        /// The element type.
        of: Datatype,
    },
    /// The same data with another lower bound and extent.
    Resized {
        /// The lower bound of an element.
        lower_bound: isize,
        /// The distance between the beginnings of two consecutive elements.
        extent: isize,
        /// The original type.
        of: Datatype,
    },
}

/// One dimension of an array and of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimension {
    /// The size of the array.
    pub size: i64,
    /// The size of the part.
    pub part: i64,
    /// The start of the part.
    pub start: i64,
}

/// The order of an array's elements in memory (MPI-4.1 section 5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArrayOrder {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    Fortran,
}

/// Invalid arguments of a datatype constructor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatatypeError {
    /// A count or length is negative.
    #[error("{what} of a datatype is {value}: negative")]
    Negative {
        /// Its meaning.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// The datatype or a distance exceeds the limit.
    #[error("a datatype of more than 2^60 bytes, or that reaches further")]
    TooLarge,
    /// A part of an array is not inside the array.
    #[error(
        "dimension {dimension} of a subarray: {part} elements from {start} on do not lie in {size}"
    )]
    Outside {
        /// The dimension.
        dimension: usize,
        /// The size of the part.
        part: i64,
        /// Its start.
        start: i64,
        /// The size of the array.
        size: i64,
    },
}

impl Datatype {
    /// Constructs a datatype.
    ///
    /// # Errors
    /// A number is invalid.
    pub fn new(construction: Construction) -> Result<Datatype, DatatypeError> {
        let layout = construction.layout()?;
        if !layout.is_bounded() {
            return Err(DatatypeError::TooLarge);
        }
        Ok(Datatype(Arc::new(Made { construction, layout })))
    }

    /// How it was constructed.
    pub fn construction(&self) -> &Construction {
        &self.0.construction
    }

    /// Its memory layout.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The same datatype in separate memory that only the caller uses.
    pub fn copied(&self) -> Datatype {
        let construction = self.0.construction.copied();
        let layout = construction.layout().unwrap_or_else(|_| Layout::empty());
        Datatype(Arc::new(Made { construction, layout }))
    }

    /// Whether both are the same datatype, not whether they are equal.
    pub fn is(&self, other: &Datatype) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that identifies the datatype as long as it lives.
    pub fn as_number(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Another handle of the datatype identified by [`as_number`](Self::as_number).
    ///
    /// # Safety
    /// The number is that of a live datatype.
    pub unsafe fn from_number(number: usize) -> Datatype {
        let made = number as *const Made;
        // SAFETY: `as_number` of a datatype that lives, says the caller: the address in its `Arc`.
        unsafe {
            Arc::increment_strong_count(made);
            Datatype(Arc::from_raw(made))
        }
    }
}

impl PartialEq for Datatype {
    /// Whether both are made alike.
    fn eq(&self, other: &Datatype) -> bool {
        self.is(other) || self.0.construction == other.0.construction
    }
}

impl Serialize for Datatype {
    /// As its construction.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.construction.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Datatype {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Datatype, D::Error> {
        Datatype::new(Construction::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn not_negative(what: &'static str, value: i64) -> Result<usize, DatatypeError> {
    usize::try_from(value).map_err(|_| DatatypeError::Negative { what, value })
}

/// Blocks of one type: where each begins in bytes, and its elements.
fn blocks(
    blocks: impl Iterator<Item = (isize, i64)>,
    old: &Layout,
) -> Result<Layout, DatatypeError> {
    let part = |(at, len)| Ok((at, old.contiguous(not_negative("a block length", len)?)));
    let parts: Result<Vec<(isize, Layout)>, DatatypeError> = blocks.map(part).collect();
    Ok(Layout::concatenate(&parts?))
}

/// So many elements in bytes: those that are no number are further than any.
fn bytes(elements: i64, extent: isize) -> isize {
    match isize::try_from(elements) {
        Ok(elements) => elements.saturating_mul(extent),
        Err(_) => isize::MAX,
    }
}

fn sub_array(
    dimensions: &[Dimension],
    order: ArrayOrder,
    old: &Layout,
) -> Result<Layout, DatatypeError> {
    let (mut layout, mut stride, mut offset) = (old.clone(), old.extent(), 0isize);
    let mut add = |dimension: usize| {
        let Dimension { size, part, start } = dimensions[dimension];
        let elements = not_negative("a subsize", part)?;
        not_negative("a size", size)?;
        not_negative("a start", start)?;
        if start.checked_add(part).is_none_or(|end| end > size) {
            return Err(DatatypeError::Outside { dimension, part, start, size });
        }
        layout = layout.repeat(elements, stride);
        offset = offset.saturating_add(bytes(start, stride));
        stride = bytes(size, stride);
        Ok(())
    };
    match order {
        ArrayOrder::C => (0..dimensions.len()).rev().try_for_each(&mut add)?,
        ArrayOrder::Fortran => (0..dimensions.len()).try_for_each(&mut add)?,
    }
    Ok(Layout::concatenate(&[(offset, layout)]).resized(0, stride))
}

impl Construction {
    fn layout(&self) -> Result<Layout, DatatypeError> {
        let vector = |count, block_length, stride, old: &Layout| {
            let block = old.contiguous(not_negative("the block length", block_length)?);
            Ok(block.repeat(not_negative("the count", count)?, stride))
        };
        match self {
            Construction::Named(scalar) => Ok(Layout::scalar(*scalar)),
            Construction::Dup(of) => Ok(of.layout().clone()),
            Construction::Contiguous { count, of } => {
                Ok(of.layout().contiguous(not_negative("the count", *count)?))
            }
            Construction::Vector { count, block_length, stride, of } => {
                let stride = bytes(*stride, of.layout().extent());
                vector(*count, *block_length, stride, of.layout())
            }
            Construction::Hvector { count, block_length, stride, of } => {
                vector(*count, *block_length, *stride, of.layout())
            }
            Construction::Indexed { blocks: list, of } => {
                let extent = of.layout().extent();
                blocks(list.iter().map(|(len, at)| (bytes(*at, extent), *len)), of.layout())
            }
            Construction::Hindexed { blocks: list, of } => {
                blocks(list.iter().map(|(len, at)| (*at, *len)), of.layout())
            }
            Construction::IndexedBlock { block_length, displacements, of } => {
                let extent = of.layout().extent();
                let at = displacements.iter().map(|at| (bytes(*at, extent), *block_length));
                blocks(at, of.layout())
            }
            Construction::HindexedBlock { block_length, displacements, of } => {
                blocks(displacements.iter().map(|at| (*at, *block_length)), of.layout())
            }
            Construction::Struct { blocks } => {
                let part = |(len, at, of): &(i64, isize, Datatype)| {
                    Ok((*at, of.layout().contiguous(not_negative("a block length", *len)?)))
                };
                let parts: Result<Vec<(isize, Layout)>, DatatypeError> =
                    blocks.iter().map(part).collect();
                Ok(Layout::concatenate(&parts?).padded())
            }
            Construction::Subarray { dimensions, order, of } => {
                sub_array(dimensions, *order, of.layout())
            }
            Construction::Resized { lower_bound, extent, of } => {
                Ok(of.layout().resized(*lower_bound, *extent))
            }
        }
    }

    /// The types that it is made of.
    fn parts_mut(&mut self) -> Vec<&mut Datatype> {
        match self {
            Construction::Named(_) => Vec::new(),
            Construction::Dup(of)
            | Construction::Contiguous { of, .. }
            | Construction::Vector { of, .. }
            | Construction::Hvector { of, .. }
            | Construction::Indexed { of, .. }
            | Construction::Hindexed { of, .. }
            | Construction::IndexedBlock { of, .. }
            | Construction::HindexedBlock { of, .. }
            | Construction::Subarray { of, .. }
            | Construction::Resized { of, .. } => vec![of],
            Construction::Struct { blocks } => blocks.iter_mut().map(|(.., of)| of).collect(),
        }
    }

    fn copied(&self) -> Construction {
        let mut copy = self.clone();
        for part in copy.parts_mut() {
            *part = part.copied();
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding;
    use crate::layout::LONGEST;

    fn made(construction: Construction) -> Datatype {
        Datatype::new(construction).unwrap()
    }

    fn nested() -> Datatype {
        let int = made(Construction::Named(Scalar::I32));
        let row = made(Construction::Vector { count: 2, block_length: 1, stride: 3, of: int });
        let double = made(Construction::Named(Scalar::F64));
        made(Construction::Struct { blocks: vec![(1, 8, row), (2, 32, double)] })
    }

    #[test]
    fn what_is_written_is_made_again() {
        let datatype = nested();
        let bytes = encoding::encode(&datatype).unwrap();
        let again: Datatype = encoding::decode(&bytes).unwrap();
        assert_eq!((&again, again.layout()), (&datatype, datatype.layout()));
        assert!(!again.is(&datatype) && again.clone().is(&again));
    }

    #[test]
    fn a_copy_shares_nothing() {
        let datatype = nested();
        let copy = datatype.copied();
        assert_eq!((&copy, copy.layout()), (&datatype, datatype.layout()));
        let (Construction::Struct { blocks: ours }, Construction::Struct { blocks: theirs }) =
            (datatype.construction(), copy.construction())
        else {
            panic!("a struct")
        };
        assert!(ours.iter().zip(theirs).all(|((.., a), (.., b))| !a.is(b)));
    }

    #[test]
    fn impossible_numbers_are_named() {
        let int = made(Construction::Named(Scalar::I32));
        let error = Datatype::new(Construction::Contiguous { count: -2, of: int }).unwrap_err();
        assert_eq!(error.to_string(), "the count of a datatype is -2: negative");
    }

    /// Lower bound and extent.
    fn bounds(construction: Construction) -> (isize, isize) {
        let datatype = made(construction);
        (datatype.layout().lower_bound(), datatype.layout().extent())
    }

    #[test]
    fn bounds_that_were_set_stay() {
        let int = made(Construction::Named(Scalar::I32));
        let structure = |parts: &[(i64, isize, &Datatype)]| Construction::Struct {
            blocks: parts.iter().map(|(len, at, of)| (*len, *at, (*of).clone())).collect(),
        };
        for (lower_bound, extent) in [(0, 5), (0, 2), (-3, 9), (1, 7), (2, -5), (0, 0)] {
            let set = made(Construction::Resized { lower_bound, extent, of: int.clone() });
            let of = set.clone();
            // Three of them, some with one left out, and what stands for them in a structure.
            let (low, len) = (lower_bound + (2 * extent).min(0), extent + 2 * extent.abs());
            let dimension = Dimension { size: 3, part: 1, start: 1 };
            let all = [
                (Construction::Dup(of.clone()), (lower_bound, extent)),
                (Construction::Contiguous { count: 3, of: of.clone() }, (low, len)),
                (
                    Construction::Vector { count: 2, block_length: 1, stride: 2, of: of.clone() },
                    (low, len),
                ),
                (
                    Construction::Hvector {
                        count: 3,
                        block_length: 1,
                        stride: extent,
                        of: of.clone(),
                    },
                    (low, len),
                ),
                (
                    Construction::Indexed { blocks: vec![(1, 0), (1, 2)], of: of.clone() },
                    (low, len),
                ),
                (
                    Construction::Hindexed {
                        blocks: vec![(1, 2 * extent), (2, 0)],
                        of: of.clone(),
                    },
                    (low, len),
                ),
                (
                    Construction::IndexedBlock {
                        block_length: 1,
                        displacements: vec![2, 0],
                        of: of.clone(),
                    },
                    (low, len),
                ),
                (
                    Construction::Subarray {
                        dimensions: vec![dimension],
                        order: ArrayOrder::C,
                        of: of.clone(),
                    },
                    (0, 3 * extent),
                ),
                (structure(&[(3, 0, &set)]), (low, len)),
                (structure(&[(1, 0, &set), (1, 2 * extent, &set)]), (low, len)),
            ];
            for (construction, expected) in all {
                assert_eq!(bounds(construction.clone()), expected, "{construction:?}");
                let inner = made(construction);
                assert_eq!(bounds(structure(&[(1, 0, &inner)])), expected, "in {inner:?}");
                assert_eq!(bounds(structure(&[(0, 0, &int), (1, 0, &inner)])), expected);
            }
        }
    }

    #[test]
    fn a_structure_with_a_part_of_natural_bounds_is_padded() {
        let named = |scalar| made(Construction::Named(scalar));
        let (int, char) = (named(Scalar::I32), named(Scalar::I8));
        let resized = |lower_bound, extent| {
            made(Construction::Resized { lower_bound, extent, of: int.clone() })
        };
        let both = |a: (isize, Datatype), b: (isize, Datatype)| {
            bounds(Construction::Struct { blocks: vec![(1, a.0, a.1), (1, b.0, b.1)] })
        };
        assert_eq!(both((0, resized(0, 5)), (8, char.clone())), (0, 12));
        assert_eq!(both((0, int.clone()), (4, resized(0, 64))), (0, 68));
        assert_eq!(both((0, int.clone()), (4, char)), (0, 8));
    }

    #[test]
    fn a_type_without_data_has_bounds_but_no_place() {
        let byte = made(Construction::Named(Scalar::U8));
        let empty = made(Construction::Contiguous { count: 0, of: byte });
        let set = made(Construction::Resized { lower_bound: 4, extent: 10, of: empty });
        let two = made(Construction::Contiguous { count: 2, of: set });
        let layout = two.layout();
        assert_eq!((layout.lower_bound(), layout.extent()), (4, 20));
        assert_eq!((layout.true_lower_bound(), layout.true_extent()), (0, 0));
    }

    #[test]
    fn what_cannot_be_counted_is_no_datatype() {
        let of = made(Construction::Named(Scalar::F64));
        let extremes =
            [i64::MIN, i64::MIN + 1, -(1 << 61), 1 << 58, 1 << 61, i64::MAX - 1, i64::MAX];
        let refused = |construction: Construction| {
            let error = Datatype::new(construction.clone()).unwrap_err();
            let negative = matches!(error, DatatypeError::Negative { .. });
            assert!(negative || error == DatatypeError::TooLarge, "{construction:?}: {error}");
        };
        for n in extremes {
            let (of, at) = (of.clone(), n as isize);
            refused(Construction::Contiguous { count: n, of: of.clone() });
            for (count, block_length, stride) in [(n, 1, 1), (2, n, 1), (3, 1, n), (n, n, n)] {
                let of = of.clone();
                refused(Construction::Vector { count, block_length, stride, of: of.clone() });
                let stride = (stride as isize).saturating_mul(8);
                refused(Construction::Hvector { count: n, block_length, stride, of });
            }
            refused(Construction::Indexed { blocks: vec![(1, 0), (1, n)], of: of.clone() });
            refused(Construction::Indexed { blocks: vec![(1, 0), (n, 0)], of: of.clone() });
            let displacements = vec![0, n];
            refused(Construction::IndexedBlock { block_length: 1, displacements, of: of.clone() });
            refused(Construction::Struct { blocks: vec![(n, 0, of.clone()), (1, at, of.clone())] });
            let whole = Dimension { size: n, part: 1.min(n), start: 0 };
            for order in [ArrayOrder::C, ArrayOrder::Fortran] {
                let dimensions = vec![whole, whole];
                refused(Construction::Subarray { dimensions, order, of: of.clone() });
            }
            // So many bytes may be fewer than so many elements.
            if at.unsigned_abs() <= LONGEST {
                continue;
            }
            refused(Construction::Hindexed { blocks: vec![(1, at), (1, 0)], of: of.clone() });
            let displacements = vec![0, at];
            refused(Construction::HindexedBlock { block_length: 1, displacements, of: of.clone() });
            refused(Construction::Resized { lower_bound: at, extent: 8, of: of.clone() });
            refused(Construction::Resized { lower_bound: 0, extent: at, of });
        }
        // Each by itself is possible, one of the other is not.
        let long = made(Construction::Contiguous { count: 1 << 31, of });
        refused(Construction::Contiguous { count: 1 << 31, of: long });
    }

    #[test]
    fn a_number_stands_for_a_datatype() {
        let datatype = nested();
        // SAFETY: `datatype` lives.
        let same = unsafe { Datatype::from_number(datatype.as_number()) };
        assert!(same.is(&datatype));
    }
}
