//! Queries on datatypes: sizes and bounds, names, and how they were constructed (MPI-4.1 sections 5.1.7, 5.1.13, 7.8,
//! 19.1.5).

use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_abi::{DATATYPES, Kind, NamedDatatype};
use vrt_core::layout::Layout;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole, give};
use crate::object::TypeRef;
use crate::object::datatype::Contents;
use crate::text;

functions! {
    MPI_Type_size / MPI_Type_size_c(datatype: MPI_Datatype, size: *mut N) on Nothing = size;
    MPI_Type_size_x(datatype: MPI_Datatype, size: *mut MPI_Count) on Nothing = size;
    MPI_Type_get_extent / MPI_Type_get_extent_c(datatype: MPI_Datatype, lower: *mut A, extent: *mut A)
        on Nothing = extent;
    MPI_Type_get_extent_x(datatype: MPI_Datatype, lower: *mut MPI_Count, extent: *mut MPI_Count)
        on Nothing = extent;
    MPI_Type_get_true_extent / MPI_Type_get_true_extent_c(
        datatype: MPI_Datatype, lower: *mut A, extent: *mut A,
    ) on Nothing = true_extent;
    MPI_Type_get_true_extent_x(
        datatype: MPI_Datatype, lower: *mut MPI_Count, extent: *mut MPI_Count,
    ) on Nothing = true_extent;
    MPI_Type_get_envelope(
        datatype: MPI_Datatype, integers: *mut c_int, addresses: *mut c_int, types: *mut c_int,
        combiner: *mut c_int,
    ) on Nothing = envelope;
    MPI_Type_get_envelope_c(
        datatype: MPI_Datatype, integers: *mut MPI_Count, addresses: *mut MPI_Count,
        counts: *mut MPI_Count, types: *mut MPI_Count, combiner: *mut c_int,
    ) on Nothing = envelope_large;
    MPI_Type_get_contents(
        datatype: MPI_Datatype, max_integers: c_int, max_addresses: c_int, max_types: c_int,
        integers: *mut c_int, addresses: *mut MPI_Aint, types: *mut MPI_Datatype,
    ) on Nothing = contents;
    MPI_Type_get_contents_c(
        datatype: MPI_Datatype, max_integers: MPI_Count, max_addresses: MPI_Count,
        max_counts: MPI_Count, max_types: MPI_Count, integers: *mut c_int,
        addresses: *mut MPI_Aint, counts: *mut MPI_Count, types: *mut MPI_Datatype,
    ) on Nothing = contents_large;
    MPI_Type_set_name(datatype: MPI_Datatype, name: *const c_char) on Nothing = set_name;
    MPI_Type_get_name(datatype: MPI_Datatype, name: *mut c_char, len: *mut c_int)
        on Nothing = get_name;
    MPI_Type_match_size(class: c_int, size: c_int, datatype: *mut MPI_Datatype)
        on Nothing = match_size;
    MPI_Type_get_value_index(
        value: MPI_Datatype, index: MPI_Datatype, pair: *mut MPI_Datatype,
    ) on Nothing = value_index;
    MPI_Get_address(place: *const c_void, address: *mut MPI_Aint) on Nothing when Always = address;
}

fn with_layout<R>(call: Call, handle: MPI_Datatype, f: impl FnOnce(&Layout) -> R) -> Outcome<R> {
    Ok(f(TypeRef::of(&call.process.types, handle)?.datatype(&call.process.types)?.layout()))
}

unsafe fn size<N: Whole>(call: Call, datatype: MPI_Datatype, size: *mut N) -> Outcome {
    let bytes = with_layout(call, datatype, Layout::size)?;
    // SAFETY: the program gives room for a number.
    unsafe { numbers::give_fitting(bytes as i64, size) };
    Ok(())
}

macro_rules! bounds {
    ($($name:ident = $lower:ident, $extent:ident;)*) => {$(
        unsafe fn $name<A: Whole>(
            call: Call,
            datatype: MPI_Datatype,
            lower: *mut A,
            extent: *mut A,
        ) -> Outcome {
            let (low, len) = with_layout(call, datatype, |it| (it.$lower(), it.$extent()))?;
            // SAFETY: the program gives room for two numbers.
            unsafe {
                numbers::give_fitting(low as i64, lower);
                numbers::give_fitting(len as i64, extent);
            }
            Ok(())
        }
    )*};
}
bounds! {
    extent = lower_bound, extent;
    true_extent = true_lower_bound, true_extent;
}

/// How a datatype was constructed.
fn made(call: Call, handle: MPI_Datatype) -> Outcome<Contents> {
    Ok(match TypeRef::of(&call.process.types, handle)? {
        TypeRef::Made(made) => made.contents.clone(),
        TypeRef::Named(_) => Contents { combiner: MPI_COMBINER_NAMED, ..Contents::default() },
    })
}

unsafe fn envelope(
    call: Call,
    datatype: MPI_Datatype,
    integers: *mut c_int,
    addresses: *mut c_int,
    types: *mut c_int,
    combiner: *mut c_int,
) -> Outcome {
    let made = made(call, datatype)?;
    if !made.counts.is_empty() {
        refuse!(
            MPI_ERR_TYPE,
            "the datatype was made by a large-count function: MPI_Type_get_envelope_c tells of it"
        );
    }
    // SAFETY: the program gives room for four numbers.
    unsafe {
        integers.write(numbers::int(made.integers.len()));
        addresses.write(numbers::int(made.addresses.len()));
        types.write(numbers::int(made.types.len()));
        combiner.write(made.combiner);
    }
    Ok(())
}

unsafe fn envelope_large(
    call: Call,
    datatype: MPI_Datatype,
    integers: *mut MPI_Count,
    addresses: *mut MPI_Count,
    counts: *mut MPI_Count,
    types: *mut MPI_Count,
    combiner: *mut c_int,
) -> Outcome {
    let made = made(call, datatype)?;
    // SAFETY: the program gives room for five numbers.
    unsafe {
        integers.write(made.integers.len() as MPI_Count);
        addresses.write(made.addresses.len() as MPI_Count);
        counts.write(made.counts.len() as MPI_Count);
        types.write(made.types.len() as MPI_Count);
        combiner.write(made.combiner);
    }
    Ok(())
}

unsafe fn contents(
    call: Call,
    datatype: MPI_Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_types: c_int,
    integers: *mut c_int,
    addresses: *mut MPI_Aint,
    types: *mut MPI_Datatype,
) -> Outcome {
    let (room, nothing) = ([max_integers, max_addresses, max_types], std::ptr::null_mut());
    let [max_integers, max_addresses, max_types] = room.map(i64::from);
    if !made(call, datatype)?.counts.is_empty() {
        refuse!(
            MPI_ERR_TYPE,
            "the datatype was made by a large-count function: MPI_Type_get_contents_c tells of it"
        );
    }
    // SAFETY: as the program promises.
    unsafe {
        contents_large(
            call,
            datatype,
            max_integers,
            max_addresses,
            0,
            max_types,
            integers,
            addresses,
            nothing,
            types,
        )
    }
}

unsafe fn contents_large(
    call: Call,
    datatype: MPI_Datatype,
    max_integers: MPI_Count,
    max_addresses: MPI_Count,
    max_counts: MPI_Count,
    max_types: MPI_Count,
    integers: *mut c_int,
    addresses: *mut MPI_Aint,
    counts: *mut MPI_Count,
    types: *mut MPI_Datatype,
) -> Outcome {
    let made = made(call, datatype)?;
    if made.combiner == MPI_COMBINER_NAMED {
        refuse!(MPI_ERR_TYPE, "a predefined datatype was not made of anything");
    }
    let rooms = [
        ("integers", made.integers.len(), max_integers),
        ("addresses", made.addresses.len(), max_addresses),
        ("counts", made.counts.len(), max_counts),
        ("datatypes", made.types.len(), max_types),
    ];
    for (what, needed, room) in rooms {
        if room < needed as i64 {
            refuse!(MPI_ERR_ARG, "there is room for {room} {what}, {needed} are needed");
        }
    }
    // SAFETY: the program gives room for so many.
    unsafe {
        for (at, number) in made.integers.iter().enumerate() {
            integers.add(at).write(*number);
        }
        for (at, number) in made.addresses.iter().enumerate() {
            addresses.add(at).write(*number);
        }
        for (at, number) in made.counts.iter().enumerate() {
            counts.add(at).write(*number);
        }
        for (at, part) in made.types.iter().enumerate() {
            let handle = match part {
                TypeRef::Named(handle) => *handle,
                // A new handle of the same type, for the program to free.
                TypeRef::Made(made) => MPI_Datatype(call.process.types.made.add(Rc::clone(made))),
            };
            types.add(at).write(handle);
        }
    }
    Ok(())
}

unsafe fn set_name(call: Call, datatype: MPI_Datatype, name: *const c_char) -> Outcome {
    // SAFETY: the program gives a string.
    let name = unsafe { text::taken(name) };
    match TypeRef::of(&call.process.types, datatype)? {
        TypeRef::Made(made) => *made.name.borrow_mut() = name,
        TypeRef::Named(handle) => call.process.types.name(handle, name),
    }
    Ok(())
}

unsafe fn get_name(
    call: Call,
    datatype: MPI_Datatype,
    name: *mut c_char,
    len: *mut c_int,
) -> Outcome {
    let found = match datatype {
        MPI_DATATYPE_NULL => "MPI_DATATYPE_NULL".to_owned(),
        _ => match TypeRef::of(&call.process.types, datatype)? {
            TypeRef::Made(made) => made.name.borrow().clone(),
            TypeRef::Named(handle) => call.process.types.name_of(handle).unwrap_or_else(|| {
                NamedDatatype::of(handle).map_or(String::new(), |named| named.name.to_owned())
            }),
        },
    };
    // SAFETY: the program gives room for `MPI_MAX_OBJECT_NAME` characters.
    unsafe { text::give(&found, name, MPI_MAX_OBJECT_NAME as usize, len) };
    Ok(())
}

unsafe fn match_size(_: Call, class: c_int, size: c_int, datatype: *mut MPI_Datatype) -> Outcome {
    let found = match (class, size) {
        (MPI_TYPECLASS_INTEGER, 1) => MPI_INTEGER1,
        (MPI_TYPECLASS_INTEGER, 2) => MPI_INTEGER2,
        (MPI_TYPECLASS_INTEGER, 4) => MPI_INTEGER4,
        (MPI_TYPECLASS_INTEGER, 8) => MPI_INTEGER8,
        (MPI_TYPECLASS_INTEGER, 16) => MPI_INTEGER16,
        (MPI_TYPECLASS_REAL, 2) => MPI_REAL2,
        (MPI_TYPECLASS_REAL, 4) => MPI_REAL4,
        (MPI_TYPECLASS_REAL, 8) => MPI_REAL8,
        (MPI_TYPECLASS_REAL, 16) => MPI_REAL16,
        (MPI_TYPECLASS_COMPLEX, 4) => MPI_COMPLEX4,
        (MPI_TYPECLASS_COMPLEX, 8) => MPI_COMPLEX8,
        (MPI_TYPECLASS_COMPLEX, 16) => MPI_COMPLEX16,
        (MPI_TYPECLASS_COMPLEX, 32) => MPI_COMPLEX32,
        _ => refuse!(MPI_ERR_ARG, "there is no type of {size} bytes in class {class}"),
    };
    // SAFETY: the program gives room for a handle.
    unsafe { give(found, datatype) }
}

unsafe fn value_index(
    call: Call,
    value: MPI_Datatype,
    index: MPI_Datatype,
    pair: *mut MPI_Datatype,
) -> Outcome {
    TypeRef::of(&call.process.types, value)?;
    TypeRef::of(&call.process.types, index)?;
    let is_it = |of: &&NamedDatatype| match of.kind {
        Kind::Pair { value: v, index: i, .. } => v == value && i == index,
        _ => false,
    };
    let found = DATATYPES.iter().find(is_it).map_or(MPI_DATATYPE_NULL, |found| found.handle);
    // SAFETY: the program gives room for a handle.
    unsafe { give(found, pair) }
}

unsafe fn address(_: Call, place: *const c_void, address: *mut MPI_Aint) -> Outcome {
    // SAFETY: the program gives room for a number.
    unsafe { give(place as MPI_Aint, address) }
}
