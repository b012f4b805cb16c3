//! Datatypes (MPI-4.1 chapter 5): the predefined ones, and what a program makes of them.
//!
//! A message of a predefined type without gaps needs its size alone, which is a look into a table. A type
//! that the program has made is a [`Type`] in the rank's table: the engine's layout, and how it was made,
//! with the very handles that it was made of, as `MPI_Type_get_contents` tells.
//!
//! | file | subject |
//! |---|---|
//! | `make` | constructors |
//! | `darray` | distributed arrays |
//! | `ask` | sizes, extents, envelopes and contents |
//! | `elements` | the basic elements of a type, one after the other |
//! | `pack` | packing, also as `external32` |
//! | `long_double` | C's `long double` in `external32` |

mod ask;
mod darray;
mod elements;
mod long_double;
mod make;
mod pack;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_abi::{DATATYPES, Kind, NamedDatatype};
use vrt_core::layout::{Construction, Datatype, LONGEST, Layout, Scalar};

use crate::attribute::Attributes;
use crate::call::Export;
use crate::fault::{Outcome, refuse};
use crate::numbers;
use crate::process::Process;

pub(crate) use elements::{basic_elements, bytes_of_elements};

/// The functions on datatypes.
pub(crate) const EXPORTS: [&[Export]; 3] = [make::EXPORTS, ask::EXPORTS, pack::EXPORTS];

/// Handles of predefined datatypes, from the first on.
const FIRST: usize = MPI_DATATYPE_NULL.0;
const NAMED: usize = 0x100;

/// What is known of a predefined datatype at once.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    /// Bytes of data; 0: there is no such type.
    size: u16,
    /// It has gaps: its elements lie further apart.
    gaps: bool,
    /// For reductions.
    scalar: Option<Scalar>,
}

fn named_types() -> &'static [Named; NAMED] {
    static TABLE: OnceLock<[Named; NAMED]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = [Named::default(); NAMED];
        for datatype in DATATYPES {
            let scalar = scalar_of(datatype);
            let gaps = scalar.is_some_and(|scalar| !scalar.is_dense());
            let size =
                u16::try_from(scalar.map_or(datatype.size, Scalar::size)).unwrap_or(u16::MAX);
            table[datatype.handle.0.wrapping_sub(FIRST)] = Named { size, gaps, scalar };
        }
        table
    })
}

/// What the engine calls it, if it knows more of it than its length.
fn scalar_of(datatype: &NamedDatatype) -> Option<Scalar> {
    Some(match (datatype.kind, datatype.size) {
        (Kind::Signed | Kind::Logical | Kind::Char, 1) => Scalar::I8,
        (Kind::Signed | Kind::Logical, 2) => Scalar::I16,
        (Kind::Signed | Kind::Logical | Kind::Char, 4) => Scalar::I32,
        (Kind::Signed | Kind::Logical, 8) => Scalar::I64,
        (Kind::Unsigned | Kind::Byte | Kind::Packed, 1) => Scalar::U8,
        (Kind::Unsigned, 2) => Scalar::U16,
        (Kind::Unsigned, 4) => Scalar::U32,
        (Kind::Unsigned, 8) => Scalar::U64,
        (Kind::Bool, 1) => Scalar::Bool,
        (Kind::Float, 4) => Scalar::F32,
        (Kind::Float, 8) => Scalar::F64,
        (Kind::LongDouble, _) => Scalar::F80,
        (Kind::Complex, 8) => Scalar::C32,
        (Kind::Complex, 16) => Scalar::C64,
        (Kind::LongDoubleComplex, _) => Scalar::C80,
        (Kind::Pair { .. }, _) => match datatype.handle {
            MPI_FLOAT_INT => Scalar::F32At,
            MPI_DOUBLE_INT => Scalar::F64At,
            MPI_LONG_INT => Scalar::I64At,
            MPI_2INT | MPI_2INTEGER => Scalar::I32At,
            MPI_SHORT_INT => Scalar::I16At,
            MPI_LONG_DOUBLE_INT => Scalar::F80At,
            MPI_2REAL => Scalar::F32Pair,
            MPI_2DOUBLE_PRECISION => Scalar::F64Pair,
            _ => return None,
        },
        _ => return None,
    })
}

/// The place of a predefined datatype in tables of them, if it is one.
pub(crate) fn index_of_named(handle: MPI_Datatype) -> Option<usize> {
    let index = handle.0.wrapping_sub(FIRST);
    (index < NAMED && named_types()[index].size > 0).then_some(index)
}

/// A predefined datatype, in memory of the caller.
pub(crate) fn make_named(handle: MPI_Datatype) -> Option<Datatype> {
    let Named { size, scalar, .. } = named_types()[index_of_named(handle)?];
    if let Some(scalar) = scalar {
        return Datatype::new(Construction::Named(scalar)).ok();
    }
    let byte = Datatype::new(Construction::Named(Scalar::U8)).ok()?;
    Datatype::new(Construction::Contiguous { count: size.into(), of: byte }).ok()
}

/// What reductions know of a predefined type.
pub(crate) fn scalar_of_named(handle: MPI_Datatype) -> Option<Scalar> {
    named_types()[index_of_named(handle)?].scalar
}

/// What reductions know of a datatype: those that are selected by Fortran's precision and range count as
/// predefined.
pub(crate) fn scalar_in_reductions(process: &Process, handle: MPI_Datatype) -> Option<Scalar> {
    if let Some(scalar) = scalar_of_named(handle) {
        return Some(scalar);
    }
    let made = process.types.get(handle.0).filter(|made| made.contents.is_selected())?;
    made.datatype.layout().scalar_kind()
}

/// A datatype that a program has made.
#[derive(Debug)]
pub(crate) struct Type {
    /// What it means for memory.
    pub(crate) datatype: Datatype,
    /// How it was made.
    pub(crate) contents: Contents,
    /// It may be used for messages.
    pub(crate) is_committed: Cell<bool>,
    pub(crate) name: RefCell<String>,
    pub(crate) attributes: Attributes,
}

/// How a datatype was made (MPI-4.1 section 5.1.13).
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) combiner: i32,
    pub(crate) integers: Vec<i32>,
    pub(crate) addresses: Vec<isize>,
    /// In the place of integers and addresses, of one that was made by a large-count function.
    pub(crate) counts: Vec<i64>,
    pub(crate) types: Vec<TypeRef>,
}

impl Contents {
    /// Whether it was selected by Fortran's precision and range.
    pub(crate) fn is_selected(&self) -> bool {
        [MPI_COMBINER_F90_REAL, MPI_COMBINER_F90_COMPLEX, MPI_COMBINER_F90_INTEGER]
            .contains(&self.combiner)
    }
}

/// A datatype by which another was made.
#[derive(Clone, Debug)]
pub(crate) enum TypeRef {
    Named(MPI_Datatype),
    Made(Rc<Type>),
}

impl TypeRef {
    /// The datatype that a handle stands for.
    ///
    /// # Errors
    /// It stands for none.
    pub(crate) fn of(process: &Process, handle: MPI_Datatype) -> Outcome<TypeRef> {
        if index_of_named(handle).is_some() {
            return Ok(TypeRef::Named(handle));
        }
        match process.types.get(handle.0) {
            Some(made) => Ok(TypeRef::Made(made)),
            None => no_type(handle),
        }
    }

    /// As the engine has it.
    pub(crate) fn datatype(&self, process: &Process) -> Outcome<Datatype> {
        match self {
            TypeRef::Made(made) => Ok(made.datatype.clone()),
            TypeRef::Named(handle) => match process.named(*handle) {
                Some(named) => Ok(named),
                None => no_type(*handle),
            },
        }
    }
}

#[cold]
fn no_type<T>(handle: MPI_Datatype) -> Outcome<T> {
    match handle {
        MPI_DATATYPE_NULL => refuse!(MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL"),
        MPI_Datatype(number) => {
            refuse!(MPI_ERR_TYPE, "{number:#x} is no datatype, or one that was freed")
        }
    }
}

/// Bytes of an element of a predefined datatype without gaps.
#[inline(always)]
pub(crate) fn dense(handle: MPI_Datatype) -> Option<usize> {
    let index = handle.0.wrapping_sub(FIRST);
    if index >= NAMED {
        return None;
    }
    let Named { size, gaps, .. } = named_types()[index];
    (size > 0 && !gaps).then_some(size.into())
}

/// A datatype as messages use it.
#[derive(Clone, Debug)]
pub(crate) enum Use {
    /// Its elements lie side by side: so many bytes each.
    Dense(usize),
    /// Anything else.
    Laid(Layout),
}

impl Use {
    /// What a handle stands for, to be used for messages.
    ///
    /// # Errors
    /// It stands for no datatype, or for one that is not committed.
    #[inline(always)]
    pub(crate) fn of(process: &Process, handle: MPI_Datatype) -> Outcome<Use> {
        match dense(handle) {
            Some(size) => Ok(Use::Dense(size)),
            None => Use::of_other(process, handle),
        }
    }

    #[inline(never)]
    fn of_other(process: &Process, handle: MPI_Datatype) -> Outcome<Use> {
        let found = TypeRef::of(process, handle)?;
        if let TypeRef::Made(made) = &found
            && !made.is_committed.get()
        {
            refuse!(MPI_ERR_TYPE, "the datatype is not committed (MPI_Type_commit)");
        }
        Ok(Use::Laid(found.datatype(process)?.layout().clone()))
    }

    /// Bytes of data of one element.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        match self {
            Use::Dense(size) => *size,
            Use::Laid(layout) => layout.size(),
        }
    }

    /// Bytes of data of so many elements.
    ///
    /// # Errors
    /// They are more than can be counted, or lie further apart.
    #[inline(always)]
    pub(crate) fn bytes(&self, count: usize) -> Outcome<usize> {
        let bytes = match self {
            Use::Dense(size) => count.checked_mul(*size).filter(|bytes| *bytes <= LONGEST),
            Use::Laid(layout) => layout.bytes(count),
        };
        match bytes {
            Some(bytes) => Ok(bytes),
            None => numbers::too_many(count, self.size()),
        }
    }

    /// How far the `nth` element lies from the first.
    ///
    /// # Errors
    /// Further than can be counted.
    pub(crate) fn distance(&self, nth: i64) -> Outcome<isize> {
        let distance = isize::try_from(nth).ok().and_then(|nth| nth.checked_mul(self.extent()));
        match distance.filter(|distance| distance.unsigned_abs() <= LONGEST) {
            Some(distance) => Ok(distance),
            None => {
                refuse!(MPI_ERR_ARG, "a displacement of {nth} elements is more than can be counted")
            }
        }
    }

    /// Where the data of so many elements begins and ends, in bytes from the address of the first one.
    pub(crate) fn reach(&self, count: usize) -> (isize, isize) {
        match self {
            Use::Dense(size) => {
                (0, isize::try_from(size.saturating_mul(count)).unwrap_or(isize::MAX))
            }
            Use::Laid(layout) => layout.reach(count),
        }
    }

    /// From one element to the next, in bytes.
    pub(crate) fn extent(&self) -> isize {
        match self {
            Use::Dense(size) => *size as isize,
            Use::Laid(layout) => layout.extent(),
        }
    }

    /// If so many elements lie in memory as they are sent: where they begin.
    #[inline(always)]
    pub(crate) fn direct(&self, count: usize) -> Option<isize> {
        match self {
            Use::Dense(_) => Some(0),
            Use::Laid(layout) => layout.direct(count),
        }
    }

    /// Packs elements.
    ///
    /// # Errors
    /// They are more than can be counted, or than there is memory.
    ///
    /// # Safety
    /// They are readable.
    pub(crate) unsafe fn pack(&self, from: *const u8, count: usize) -> Outcome<Vec<u8>> {
        let mut packed = numbers::zeroed(self.bytes(count)?)?;
        // SAFETY: as the caller promises; the vector is as long.
        unsafe {
            match self {
                Use::Dense(_) => {
                    std::ptr::copy_nonoverlapping(from, packed.as_mut_ptr(), packed.len());
                }
                Use::Laid(layout) => layout.pack(from, count, packed.as_mut_ptr()),
            }
        }
        Ok(packed)
    }

    /// Puts packed bytes into elements; the rest of these stays as it is.
    ///
    /// # Safety
    /// They are writable.
    pub(crate) unsafe fn unpack(&self, from: &[u8], to: *mut u8, count: usize) {
        let len = from.len().min(self.size().saturating_mul(count));
        // SAFETY: as the caller promises.
        unsafe {
            match self {
                Use::Dense(_) => std::ptr::copy_nonoverlapping(from.as_ptr(), to, len),
                Use::Laid(layout) => layout.unpack(from.as_ptr(), len, to, count),
            }
        }
    }
}
