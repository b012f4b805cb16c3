//! Constructors of datatypes (MPI-4.1 sections 5.1.2 to 5.1.5, 5.1.9, 5.1.10, 19.1.5).

use std::cell::{Cell, RefCell};
use std::ffi::c_int;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::layout::{ArrayOrder, Construction, Datatype, DatatypeError, Dimension};

use super::darray;
use crate::call::{Call, functions};
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::numbers::{self, Whole, give};
use crate::object::datatype::{Contents, Type, Types, index_of_named};
use crate::object::{Attributes, TypeRef};

impl From<DatatypeError> for Box<Fault> {
    fn from(error: DatatypeError) -> Box<Fault> {
        let class = match error {
            DatatypeError::TooLarge => MPI_ERR_COUNT,
            _ => MPI_ERR_ARG,
        };
        fault(class, error.to_string())
    }
}

functions! {
    MPI_Type_contiguous / MPI_Type_contiguous_c(count: N, old: MPI_Datatype, new: *mut MPI_Datatype)
        on Nothing = contiguous;
    MPI_Type_vector / MPI_Type_vector_c(
        count: N, length: N, stride: N, old: MPI_Datatype, new: *mut MPI_Datatype,
    ) on Nothing = vector;
    MPI_Type_create_hvector / MPI_Type_create_hvector_c(
        count: N, length: N, stride: A, old: MPI_Datatype, new: *mut MPI_Datatype,
    ) on Nothing = hvector;
    MPI_Type_indexed / MPI_Type_indexed_c(
        count: N, lengths: *const N, displacements: *const N, old: MPI_Datatype,
        new: *mut MPI_Datatype,
    ) on Nothing = indexed;
    MPI_Type_create_hindexed / MPI_Type_create_hindexed_c(
        count: N, lengths: *const N, displacements: *const A, old: MPI_Datatype,
        new: *mut MPI_Datatype,
    ) on Nothing = hindexed;
    MPI_Type_create_indexed_block / MPI_Type_create_indexed_block_c(
        count: N, length: N, displacements: *const N, old: MPI_Datatype, new: *mut MPI_Datatype,
    ) on Nothing = indexed_block;
    MPI_Type_create_hindexed_block / MPI_Type_create_hindexed_block_c(
        count: N, length: N, displacements: *const A, old: MPI_Datatype, new: *mut MPI_Datatype,
    ) on Nothing = hindexed_block;
    MPI_Type_create_struct / MPI_Type_create_struct_c(
        count: N, lengths: *const N, displacements: *const A, types: *const MPI_Datatype,
        new: *mut MPI_Datatype,
    ) on Nothing = structure;
    MPI_Type_create_subarray / MPI_Type_create_subarray_c(
        dimensions: c_int, sizes: *const N, parts: *const N, starts: *const N, order: c_int,
        old: MPI_Datatype, new: *mut MPI_Datatype,
    ) on Nothing = subarray;
    MPI_Type_create_darray / MPI_Type_create_darray_c(
        size: c_int, rank: c_int, dimensions: c_int, sizes: *const N, distributions: *const c_int,
        arguments: *const c_int, processes: *const c_int, order: c_int, old: MPI_Datatype,
        new: *mut MPI_Datatype,
    ) on Nothing = distributed;
    MPI_Type_create_resized / MPI_Type_create_resized_c(
        old: MPI_Datatype, lower: A, extent: A, new: *mut MPI_Datatype,
    ) on Nothing = resized;
    MPI_Type_dup(old: MPI_Datatype, new: *mut MPI_Datatype) on Nothing = dup;
    MPI_Type_commit(datatype: *mut MPI_Datatype) on Nothing = commit;
    MPI_Type_free(datatype: *mut MPI_Datatype) on Nothing = free;
    MPI_Type_create_f90_real(digits: c_int, range: c_int, new: *mut MPI_Datatype)
        on Nothing = f90_real;
    MPI_Type_create_f90_complex(digits: c_int, range: c_int, new: *mut MPI_Datatype)
        on Nothing = f90_complex;
    MPI_Type_create_f90_integer(range: c_int, new: *mut MPI_Datatype) on Nothing = f90_integer;
}

/// The arguments of a constructor as `MPI_Type_get_contents` returns them: numbers are integers and addresses for the
/// plain form, counts for the large-count form.
struct Arguments {
    contents: Contents,
    is_large: bool,
}

impl Arguments {
    fn new<N: Whole>(combiner: i32, types: Vec<TypeRef>) -> Arguments {
        let contents = Contents { combiner, types, ..Contents::default() };
        Arguments { contents, is_large: N::IS_COUNT }
    }

    /// Numbers that are `int` in the plain form, `MPI_Count` in the large-count one.
    fn numbers(mut self, numbers: impl IntoIterator<Item = i64>) -> Arguments {
        match self.is_large {
            true => self.contents.counts.extend(numbers),
            false => self.contents.integers.extend(numbers.into_iter().map(numbers::int_of)),
        }
        self
    }

    /// Numbers that are `int` in both.
    fn integers(mut self, numbers: impl IntoIterator<Item = i64>) -> Arguments {
        self.contents.integers.extend(numbers.into_iter().map(numbers::int_of));
        self
    }

    /// Numbers that are `MPI_Aint` in the plain form, `MPI_Count` in the large-count one.
    fn addresses(mut self, numbers: impl IntoIterator<Item = i64>) -> Arguments {
        match self.is_large {
            true => self.contents.counts.extend(numbers),
            false => self.contents.addresses.extend(numbers.into_iter().map(numbers::place)),
        }
        self
    }
}

/// Returns a new datatype to the program.
///
/// # Safety
/// There is room for a handle.
unsafe fn give_type(
    types: &Types,
    datatype: Datatype,
    contents: Contents,
    to: *mut MPI_Datatype,
) -> Outcome {
    let made = Type {
        datatype,
        contents,
        is_committed: Cell::new(false),
        name: RefCell::default(),
        attributes: Attributes::default(),
    };
    // SAFETY: as the caller promises.
    unsafe { give(MPI_Datatype(types.made.add(made)), to) }
}

/// A type from which another is made, as given and in the engine's form.
fn old_type(call: Call, old: MPI_Datatype) -> Outcome<(TypeRef, Datatype)> {
    let found = TypeRef::of(&call.process.types, old)?;
    let datatype = found.datatype(&call.process.types)?;
    Ok((found, datatype))
}

/// Makes a datatype, and returns it to the program.
///
/// # Safety
/// There is room for a handle.
unsafe fn make(
    call: Call,
    construction: Construction,
    arguments: Arguments,
    new: *mut MPI_Datatype,
) -> Outcome {
    let datatype = Datatype::new(construction)?;
    // SAFETY: as the caller promises.
    unsafe { give_type(&call.process.types, datatype, arguments.contents, new) }
}

unsafe fn contiguous<N: Whole>(
    call: Call,
    count: N,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let count = numbers::count(count)? as i64;
    let arguments = Arguments::new::<N>(MPI_COMBINER_CONTIGUOUS, vec![old]).numbers([count]);
    // SAFETY: as the program promises.
    unsafe { make(call, Construction::Contiguous { count, of }, arguments, new) }
}

unsafe fn vector<N: Whole>(
    call: Call,
    count: N,
    length: N,
    stride: N,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let (count, block_length) = (numbers::count(count)? as i64, numbers::count(length)? as i64);
    let stride = stride.wide();
    let arguments =
        Arguments::new::<N>(MPI_COMBINER_VECTOR, vec![old]).numbers([count, block_length, stride]);
    // SAFETY: as the program promises.
    unsafe { make(call, Construction::Vector { count, block_length, stride, of }, arguments, new) }
}

unsafe fn hvector<N: Whole, A: Whole>(
    call: Call,
    count: N,
    length: N,
    stride: A,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let (count, block_length) = (numbers::count(count)? as i64, numbers::count(length)? as i64);
    let stride = stride.wide();
    let arguments = Arguments::new::<N>(MPI_COMBINER_HVECTOR, vec![old])
        .numbers([count, block_length])
        .addresses([stride]);
    let stride = numbers::place(stride);
    let construction = Construction::Hvector { count, block_length, stride, of };
    // SAFETY: as the program promises.
    unsafe { make(call, construction, arguments, new) }
}

unsafe fn indexed<N: Whole>(
    call: Call,
    count: N,
    lengths: *const N,
    displacements: *const N,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let count = numbers::count(count)?;
    // SAFETY: the program gives arrays of so many.
    let (lengths, places) =
        unsafe { (numbers::list(lengths, count)?, numbers::list(displacements, count)?) };
    expect_not_negative(&lengths)?;
    let arguments = Arguments::new::<N>(MPI_COMBINER_INDEXED, vec![old])
        .numbers([count as i64])
        .numbers(lengths.iter().copied())
        .numbers(places.iter().copied());
    let blocks = lengths.into_iter().zip(places).collect();
    // SAFETY: as the program promises.
    unsafe { make(call, Construction::Indexed { blocks, of }, arguments, new) }
}

fn expect_not_negative(lengths: &[i64]) -> Outcome {
    lengths.iter().try_for_each(|len| numbers::count(*len).map(|_| ()))
}

unsafe fn hindexed<N: Whole, A: Whole>(
    call: Call,
    count: N,
    lengths: *const N,
    displacements: *const A,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let count = numbers::count(count)?;
    // SAFETY: the program gives arrays of so many.
    let (lengths, places) =
        unsafe { (numbers::list(lengths, count)?, numbers::list(displacements, count)?) };
    expect_not_negative(&lengths)?;
    let arguments = Arguments::new::<N>(MPI_COMBINER_HINDEXED, vec![old])
        .numbers([count as i64])
        .numbers(lengths.iter().copied())
        .addresses(places.iter().copied());
    let blocks = lengths.into_iter().zip(places.into_iter().map(numbers::place)).collect();
    // SAFETY: as the program promises.
    unsafe { make(call, Construction::Hindexed { blocks, of }, arguments, new) }
}

unsafe fn indexed_block<N: Whole>(
    call: Call,
    count: N,
    length: N,
    displacements: *const N,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let (count, block_length) = (numbers::count(count)?, numbers::count(length)? as i64);
    // SAFETY: the program gives an array of so many.
    let displacements = unsafe { numbers::list(displacements, count)? };
    let arguments = Arguments::new::<N>(MPI_COMBINER_INDEXED_BLOCK, vec![old])
        .numbers([count as i64, block_length])
        .numbers(displacements.iter().copied());
    let construction = Construction::IndexedBlock { block_length, displacements, of };
    // SAFETY: as the program promises.
    unsafe { make(call, construction, arguments, new) }
}

unsafe fn hindexed_block<N: Whole, A: Whole>(
    call: Call,
    count: N,
    length: N,
    displacements: *const A,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let (count, block_length) = (numbers::count(count)?, numbers::count(length)? as i64);
    // SAFETY: the program gives an array of so many.
    let places = unsafe { numbers::list(displacements, count)? };
    let arguments = Arguments::new::<N>(MPI_COMBINER_HINDEXED_BLOCK, vec![old])
        .numbers([count as i64, block_length])
        .addresses(places.iter().copied());
    let displacements = places.into_iter().map(numbers::place).collect();
    let construction = Construction::HindexedBlock { block_length, displacements, of };
    // SAFETY: as the program promises.
    unsafe { make(call, construction, arguments, new) }
}

unsafe fn structure<N: Whole, A: Whole>(
    call: Call,
    count: N,
    lengths: *const N,
    displacements: *const A,
    types: *const MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let count = numbers::count(count)?;
    // SAFETY: the program gives arrays of so many.
    let (lengths, places, types) = unsafe {
        let handles = if count == 0 { &[] } else { std::slice::from_raw_parts(types, count) };
        let types: Outcome<Vec<(TypeRef, Datatype)>> =
            handles.iter().map(|handle| old_type(call, *handle)).collect();
        (numbers::list(lengths, count)?, numbers::list(displacements, count)?, types?)
    };
    expect_not_negative(&lengths)?;
    let (olds, datatypes): (Vec<TypeRef>, Vec<Datatype>) = types.into_iter().unzip();
    let arguments = Arguments::new::<N>(MPI_COMBINER_STRUCT, olds)
        .numbers([count as i64])
        .numbers(lengths.iter().copied())
        .addresses(places.iter().copied());
    let places = places.into_iter().map(numbers::place);
    let blocks = lengths.into_iter().zip(places).zip(datatypes);
    let blocks = blocks.map(|((len, at), of)| (len, at, of)).collect();
    // SAFETY: as the program promises.
    unsafe { make(call, Construction::Struct { blocks }, arguments, new) }
}

fn order_of(order: c_int) -> Outcome<ArrayOrder> {
    match order {
        MPI_ORDER_C => Ok(ArrayOrder::C),
        MPI_ORDER_FORTRAN => Ok(ArrayOrder::Fortran),
        _ => refuse!(MPI_ERR_ARG, "{order} is no order: MPI_ORDER_C and MPI_ORDER_FORTRAN are"),
    }
}

unsafe fn subarray<N: Whole>(
    call: Call,
    dimensions: c_int,
    sizes: *const N,
    parts: *const N,
    starts: *const N,
    order: c_int,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let n = numbers::count(dimensions)?;
    // SAFETY: the program gives arrays of so many.
    let (sizes, parts, starts) =
        unsafe { (numbers::list(sizes, n)?, numbers::list(parts, n)?, numbers::list(starts, n)?) };
    let arguments = Arguments::new::<N>(MPI_COMBINER_SUBARRAY, vec![old])
        .integers([n as i64])
        .numbers(sizes.iter().copied())
        .numbers(parts.iter().copied())
        .numbers(starts.iter().copied())
        .integers([order.into()]);
    let each = sizes.into_iter().zip(parts).zip(starts);
    let dimensions = each.map(|((size, part), start)| Dimension { size, part, start }).collect();
    let construction = Construction::Subarray { dimensions, order: order_of(order)?, of };
    // SAFETY: as the program promises.
    unsafe { make(call, construction, arguments, new) }
}

unsafe fn distributed<N: Whole>(
    call: Call,
    size: c_int,
    rank: c_int,
    dimensions: c_int,
    sizes: *const N,
    distributions: *const c_int,
    arguments: *const c_int,
    processes: *const c_int,
    order: c_int,
    old: MPI_Datatype,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let n = numbers::count(dimensions)?;
    // SAFETY: the program gives arrays of so many.
    let array = unsafe {
        darray::Array {
            size: size.into(),
            rank: rank.into(),
            sizes: numbers::list(sizes, n)?,
            distributions: numbers::list(distributions, n)?,
            arguments: numbers::list(arguments, n)?,
            processes: numbers::list(processes, n)?,
            order: order_of(order)?,
        }
    };
    let told = Arguments::new::<N>(MPI_COMBINER_DARRAY, vec![old])
        .integers([size.into(), rank.into(), n as i64])
        .numbers(array.sizes.iter().copied())
        .integers(array.distributions.iter().copied())
        .integers(array.arguments.iter().copied())
        .integers(array.processes.iter().copied())
        .integers([order.into()]);
    let datatype = array.datatype(of)?;
    // SAFETY: as the program promises.
    unsafe { give_type(&call.process.types, datatype, told.contents, new) }
}

unsafe fn resized<A: Whole>(
    call: Call,
    old: MPI_Datatype,
    lower: A,
    extent: A,
    new: *mut MPI_Datatype,
) -> Outcome {
    let (old, of) = old_type(call, old)?;
    let (lower, extent) = (lower.wide(), extent.wide());
    let arguments = Arguments::new::<A>(MPI_COMBINER_RESIZED, vec![old]).addresses([lower, extent]);
    let (lower_bound, extent) = (numbers::place(lower), numbers::place(extent));
    // SAFETY: as the program promises.
    unsafe { make(call, Construction::Resized { lower_bound, extent, of }, arguments, new) }
}

unsafe fn dup(call: Call, handle: MPI_Datatype, new: *mut MPI_Datatype) -> Outcome {
    let (old, of) = old_type(call, handle)?;
    let was_committed = match &old {
        TypeRef::Named(_) => true,
        TypeRef::Made(made) => made.is_committed.get(),
    };
    let attributes = call.process.types.with_attributes(handle, |all| all.copied(handle.0))?;
    let made = Type {
        datatype: Datatype::new(Construction::Dup(of))?,
        contents: Arguments::new::<c_int>(MPI_COMBINER_DUP, vec![old]).contents,
        is_committed: Cell::new(was_committed),
        name: RefCell::default(),
        attributes,
    };
    // SAFETY: the program gives room for a handle.
    unsafe { give(MPI_Datatype(call.process.types.made.add(made)), new) }
}

unsafe fn commit(call: Call, datatype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: the program gives its handle.
    if let TypeRef::Made(made) = TypeRef::of(&call.process.types, unsafe { *datatype })? {
        made.is_committed.set(true);
    }
    Ok(())
}

unsafe fn free(call: Call, datatype: *mut MPI_Datatype) -> Outcome {
    // SAFETY: the program gives its handle.
    let handle = unsafe { *datatype };
    let TypeRef::Made(made) = TypeRef::of(&call.process.types, handle)? else {
        refuse!(MPI_ERR_TYPE, "a predefined datatype cannot be freed");
    };
    if made.contents.is_selected() {
        refuse!(MPI_ERR_TYPE, "a datatype of MPI_Type_create_f90_* cannot be freed");
    }
    made.attributes.delete_all(handle.0)?;
    call.process.types.made.remove(handle.0);
    // SAFETY: as above.
    unsafe { *datatype = MPI_DATATYPE_NULL };
    Ok(())
}

/// Returns the type that these numbers select to the program: the same one each time.
///
/// # Safety
/// There is room for a handle.
unsafe fn selected(
    call: Call,
    (combiner, integers): (i32, Vec<i32>),
    named: Option<MPI_Datatype>,
    new: *mut MPI_Datatype,
) -> Outcome {
    let known =
        call.process.types.made.list().into_iter().find(|(_, made)| {
            made.contents.combiner == combiner && made.contents.integers == integers
        });
    if let Some((handle, _)) = known {
        // SAFETY: as the caller promises.
        unsafe { new.write(MPI_Datatype(handle)) };
        return Ok(());
    }
    let Some(named) = named.filter(|named| index_of_named(*named).is_some()) else {
        refuse!(MPI_ERR_ARG, "there is no Fortran type with precision and range {integers:?}");
    };
    let (_, of) = old_type(call, named)?;
    let contents = Contents { combiner, integers, ..Contents::default() };
    // SAFETY: as the caller promises.
    unsafe {
        give_type(&call.process.types, Datatype::new(Construction::Dup(of))?, contents, new)?;
        commit(call, new)
    }
}

/// The smallest of the reals of 4, 8 and 16 bytes that suffices: digits and decimal exponents of the first two.
fn real_for(digits: c_int, range: c_int) -> Option<usize> {
    let does = |of: c_int, asked: c_int| asked == MPI_UNDEFINED || asked <= of;
    match () {
        () if digits == MPI_UNDEFINED && range == MPI_UNDEFINED => None,
        () if does(6, digits) && does(37, range) => Some(0),
        () if does(15, digits) && does(307, range) => Some(1),
        () => None,
    }
}

unsafe fn f90_real(call: Call, digits: c_int, range: c_int, new: *mut MPI_Datatype) -> Outcome {
    let named = real_for(digits, range).map(|at| [MPI_REAL4, MPI_REAL8][at]);
    // SAFETY: as the program promises.
    unsafe { selected(call, (MPI_COMBINER_F90_REAL, vec![digits, range]), named, new) }
}

unsafe fn f90_complex(call: Call, digits: c_int, range: c_int, new: *mut MPI_Datatype) -> Outcome {
    let named = real_for(digits, range).map(|at| [MPI_COMPLEX8, MPI_COMPLEX16][at]);
    // SAFETY: as the program promises.
    unsafe { selected(call, (MPI_COMBINER_F90_COMPLEX, vec![digits, range]), named, new) }
}

unsafe fn f90_integer(call: Call, range: c_int, new: *mut MPI_Datatype) -> Outcome {
    let named = match range {
        ..=2 => Some(MPI_INTEGER1),
        3..=4 => Some(MPI_INTEGER2),
        5..=9 => Some(MPI_INTEGER4),
        10..=18 => Some(MPI_INTEGER8),
        _ => None,
    };
    // SAFETY: as the program promises.
    unsafe { selected(call, (MPI_COMBINER_F90_INTEGER, vec![range]), named, new) }
}
