//! Datatypes (MPI-4.1 chapter 5): the predefined ones, and those made from them by a program.
//!
//! A message of a predefined type without gaps needs only its size, which is looked up in a table. A type made by the
//! program is a [`Type`] in the rank's table: the engine's layout, and its construction with the very handles that it
//! was made from, as `MPI_Type_get_contents` returns them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_abi::{DATATYPES, Kind, NamedDatatype};
use vrt_core::comm::bytes::zeroed;
use vrt_core::layout::{Construction, Datatype, LONGEST, Layout, Scalar};

use super::attribute::Attributes;
use crate::fault::{Outcome, refuse};
use crate::handles::{Kind as HandleKind, Table};
use crate::numbers;

/// Handles of predefined datatypes begin here.
const FIRST: usize = MPI_DATATYPE_NULL.0;
const NAMED: usize = 0x100;

/// The data of a predefined datatype that need no construction.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    /// Bytes of data; 0: the type does not exist.
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

/// The engine's built-in type for it, if there is one.
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

/// The index of a predefined datatype in tables of them, if it is one.
pub(crate) fn index_of_named(handle: MPI_Datatype) -> Option<usize> {
    let index = handle.0.wrapping_sub(FIRST);
    (index < NAMED && named_types()[index].size > 0).then_some(index)
}

/// A predefined datatype, in memory of the caller.
fn make_named(handle: MPI_Datatype) -> Option<Datatype> {
    let Named { size, scalar, .. } = named_types()[index_of_named(handle)?];
    if let Some(scalar) = scalar {
        return Datatype::new(Construction::Named(scalar)).ok();
    }
    let byte = Datatype::new(Construction::Named(Scalar::U8)).ok()?;
    Datatype::new(Construction::Contiguous { count: size.into(), of: byte }).ok()
}

/// The built-in type of a predefined datatype for reductions.
pub(crate) fn scalar_of_named(handle: MPI_Datatype) -> Option<Scalar> {
    named_types()[index_of_named(handle)?].scalar
}

/// The datatypes of a rank.
#[derive(Debug)]
pub(crate) struct Types {
    /// Those made by the program.
    pub(crate) made: Table<Type>,
    /// The predefined datatypes used so far, by their handles, as this rank's own.
    named: RefCell<Vec<Option<Datatype>>>,
    /// Attributes of predefined datatypes, by handle.
    attributes: RefCell<Vec<(MPI_Datatype, Rc<Attributes>)>>,
    /// The names given to predefined datatypes by the program.
    names: RefCell<Vec<(MPI_Datatype, String)>>,
}

impl Types {
    pub(crate) fn new() -> Types {
        Types {
            made: Table::new(HandleKind::Datatype),
            named: RefCell::default(),
            attributes: RefCell::default(),
            names: RefCell::default(),
        }
    }

    /// Uses the attributes of a datatype.
    ///
    /// # Errors
    /// The datatype does not exist; or those of the function.
    pub(crate) fn with_attributes<R>(
        &self,
        handle: MPI_Datatype,
        f: impl FnOnce(&Attributes) -> Outcome<R>,
    ) -> Outcome<R> {
        match TypeRef::of(self, handle)? {
            TypeRef::Made(made) => f(&made.attributes),
            TypeRef::Named(_) => {
                let mut all = self.attributes.borrow_mut();
                let known =
                    all.iter().find(|(of, _)| *of == handle).map(|(_, known)| known.clone());
                let attributes = known.unwrap_or_else(|| {
                    let new = Rc::new(Attributes::default());
                    all.push((handle, Rc::clone(&new)));
                    new
                });
                drop(all);
                f(&attributes)
            }
        }
    }

    /// Names a predefined datatype.
    pub(crate) fn name(&self, handle: MPI_Datatype, name: String) {
        let mut all = self.names.borrow_mut();
        all.retain(|(of, _)| *of != handle);
        all.push((handle, name));
    }

    /// The name given to a predefined datatype by the program.
    pub(crate) fn name_of(&self, handle: MPI_Datatype) -> Option<String> {
        let all = self.names.borrow();
        all.iter().find(|(of, _)| *of == handle).map(|(_, name)| name.clone())
    }

    /// A predefined datatype in the engine's form, in this rank's own memory.
    pub(crate) fn named(&self, handle: MPI_Datatype) -> Option<Datatype> {
        let index = index_of_named(handle)?;
        let mut named = self.named.borrow_mut();
        if named.len() <= index {
            named.resize(index.saturating_add(1), None);
        }
        if named[index].is_none() {
            named[index] = make_named(handle);
        }
        named[index].clone()
    }

    /// The built-in type of a datatype for reductions: types selected by Fortran's precision and range count as
    /// predefined.
    pub(crate) fn scalar_in_reductions(&self, handle: MPI_Datatype) -> Option<Scalar> {
        if let Some(scalar) = scalar_of_named(handle) {
            return Some(scalar);
        }
        let made = self.made.get(handle.0).filter(|made| made.contents.is_selected())?;
        made.datatype.layout().scalar_kind()
    }
}

/// A datatype made by a program.
#[derive(Debug)]
pub(crate) struct Type {
    /// Its engine datatype.
    pub(crate) datatype: Datatype,
    /// How it was constructed.
    pub(crate) contents: Contents,
    /// It may be used for messages.
    pub(crate) is_committed: Cell<bool>,
    pub(crate) name: RefCell<String>,
    pub(crate) attributes: Attributes,
}

/// How a datatype was constructed (MPI-4.1 section 5.1.13).
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) combiner: i32,
    pub(crate) integers: Vec<i32>,
    pub(crate) addresses: Vec<isize>,
    /// Replaces integers and addresses for a type made by a large-count function.
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

/// A datatype from which another was made.
#[derive(Clone, Debug)]
pub(crate) enum TypeRef {
    Named(MPI_Datatype),
    Made(Rc<Type>),
}

impl TypeRef {
    /// The datatype of a handle.
    ///
    /// # Errors
    /// The handle is invalid.
    pub(crate) fn of(types: &Types, handle: MPI_Datatype) -> Outcome<TypeRef> {
        if index_of_named(handle).is_some() {
            return Ok(TypeRef::Named(handle));
        }
        match types.made.get(handle.0) {
            Some(made) => Ok(TypeRef::Made(made)),
            None => no_type(handle),
        }
    }

    /// The engine's datatype.
    pub(crate) fn datatype(&self, types: &Types) -> Outcome<Datatype> {
        match self {
            TypeRef::Made(made) => Ok(made.datatype.clone()),
            TypeRef::Named(handle) => match types.named(*handle) {
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

/// Bytes per element of a predefined datatype without gaps.
#[inline(always)]
pub(crate) fn dense(handle: MPI_Datatype) -> Option<usize> {
    let index = handle.0.wrapping_sub(FIRST);
    if index >= NAMED {
        return None;
    }
    let Named { size, gaps, .. } = named_types()[index];
    (size > 0 && !gaps).then_some(size.into())
}

/// A datatype in the form that messages need.
#[derive(Clone, Debug)]
pub(crate) enum Use {
    /// Its elements are contiguous: this many bytes each.
    Dense(usize),
    /// Anything else.
    Laid(Layout),
}

impl Use {
    /// The datatype of a handle, for use in messages.
    ///
    /// # Errors
    /// The handle is no datatype, or one that is not committed.
    #[inline(always)]
    pub(crate) fn of(types: &Types, handle: MPI_Datatype) -> Outcome<Use> {
        match dense(handle) {
            Some(size) => Ok(Use::Dense(size)),
            None => Use::of_other(types, handle),
        }
    }

    #[inline(never)]
    fn of_other(types: &Types, handle: MPI_Datatype) -> Outcome<Use> {
        let found = TypeRef::of(types, handle)?;
        if let TypeRef::Made(made) = &found
            && !made.is_committed.get()
        {
            refuse!(MPI_ERR_TYPE, "the datatype is not committed (MPI_Type_commit)");
        }
        Ok(Use::Laid(found.datatype(types)?.layout().clone()))
    }

    /// Bytes of data of one element.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        match self {
            Use::Dense(size) => *size,
            Use::Laid(layout) => layout.size(),
        }
    }

    /// Bytes of data of this many elements.
    ///
    /// # Errors
    /// They are too large, or lie too far apart.
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

    /// The distance of the `nth` element from the first.
    ///
    /// # Errors
    /// The distance is too large.
    pub(crate) fn distance(&self, nth: i64) -> Outcome<isize> {
        let distance = isize::try_from(nth).ok().and_then(|nth| nth.checked_mul(self.extent()));
        match distance.filter(|distance| distance.unsigned_abs() <= LONGEST) {
            Some(distance) => Ok(distance),
            None => {
                refuse!(MPI_ERR_ARG, "a displacement of {nth} elements is more than can be counted")
            }
        }
    }

    /// Where the data of this many elements begins and ends, in bytes from the address of the first one.
    pub(crate) fn reach(&self, count: usize) -> (isize, isize) {
        match self {
            Use::Dense(size) => {
                (0, isize::try_from(size.saturating_mul(count)).unwrap_or(isize::MAX))
            }
            Use::Laid(layout) => layout.reach(count),
        }
    }

    /// The distance between two consecutive elements, in bytes.
    pub(crate) fn extent(&self) -> isize {
        match self {
            Use::Dense(size) => *size as isize,
            Use::Laid(layout) => layout.extent(),
        }
    }

    /// The beginning of this many elements, if their layout in memory is the packed one.
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
    /// They are too large, or there is not enough memory.
    ///
    /// # Safety
    /// They are readable.
    pub(crate) unsafe fn pack(&self, from: *const u8, count: usize) -> Outcome<Vec<u8>> {
        let mut packed = zeroed(self.bytes(count)?)?;
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

    /// Unpacks bytes into elements; their remaining bytes are unchanged.
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
