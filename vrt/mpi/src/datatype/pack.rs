//! Packing (MPI-4.1 section 5.2), also into the common representation of all systems, `external32`
//! (section 14.5.2): every number in big-endian order with a fixed size.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are checked by `part`, sizes by `bytes_of` and `Use::bytes`"
    )
)]

use std::ffi::{c_char, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_abi::{Kind, NamedDatatype};
use vrt_core::comm::bytes::zeroed;
use vrt_core::layout::LONGEST;

use super::elements::{parts, runs, size_of_named, sum};
use super::long_double;
use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::object::{TypeRef, Use};
use crate::text;
use vrt_slot::report;

functions! {
    MPI_Pack / MPI_Pack_c(
        inbuf: *const c_void, count: N, datatype: MPI_Datatype, outbuf: *mut c_void, size: N,
        position: *mut N, comm: MPI_Comm,
    ) on Comm(comm) = pack;
    MPI_Unpack / MPI_Unpack_c(
        inbuf: *const c_void, size: N, position: *mut N, outbuf: *mut c_void, count: N,
        datatype: MPI_Datatype, comm: MPI_Comm,
    ) on Comm(comm) = unpack;
    MPI_Pack_size / MPI_Pack_size_c(count: N, datatype: MPI_Datatype, comm: MPI_Comm, size: *mut N)
        on Comm(comm) = pack_size;
    MPI_Pack_external / MPI_Pack_external_c(
        form: *const c_char, inbuf: *const c_void, count: N, datatype: MPI_Datatype,
        outbuf: *mut c_void, size: A, position: *mut A,
    ) on Nothing = pack_external;
    MPI_Unpack_external / MPI_Unpack_external_c(
        form: *const c_char, inbuf: *const c_void, size: A, position: *mut A, outbuf: *mut c_void,
        count: N, datatype: MPI_Datatype,
    ) on Nothing = unpack_external;
    MPI_Pack_external_size / MPI_Pack_external_size_c(
        form: *const c_char, count: N, datatype: MPI_Datatype, size: *mut A,
    ) on Nothing = pack_external_size;
}

/// A part of a packed buffer: this many bytes from a position on.
///
/// # Errors
/// It is not inside the buffer.
fn part(size: i64, position: i64, len: usize, what: &str) -> Outcome<usize> {
    let end = i64::try_from(len).ok().and_then(|len| position.checked_add(len));
    if position < 0 || end.is_none_or(|end| end > size) {
        refuse!(
            MPI_ERR_TRUNCATE,
            "{} from position {position} on, not inside the {what} buffer of {size}",
            report::count(len, "byte")
        );
    }
    Ok(position as usize)
}

unsafe fn pack<N: Whole>(
    call: Call,
    inbuf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    size: N,
    position: *mut N,
    comm: MPI_Comm,
) -> Outcome {
    call.process.comm(comm)?;
    let (count, datatype) = (numbers::count(count)?, Use::of(&call.process.types, datatype)?);
    // SAFETY: the program gives such buffers, and a position.
    unsafe {
        let len = datatype.bytes(count)?;
        let at = part(size.wide(), (*position).wide(), len, "packed")?;
        let packed = datatype.pack(inbuf.cast(), count)?;
        std::ptr::copy_nonoverlapping(packed.as_ptr(), outbuf.cast::<u8>().add(at), len);
        numbers::give_exactly((at + len) as i64, position)
    }
}

unsafe fn unpack<N: Whole>(
    call: Call,
    inbuf: *const c_void,
    size: N,
    position: *mut N,
    outbuf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome {
    call.process.comm(comm)?;
    let (count, datatype) = (numbers::count(count)?, Use::of(&call.process.types, datatype)?);
    // SAFETY: the program gives such buffers, and a position.
    unsafe {
        let len = datatype.bytes(count)?;
        let at = part(size.wide(), (*position).wide(), len, "packed")?;
        if len > 0 {
            let packed = std::slice::from_raw_parts(inbuf.cast::<u8>().add(at), len);
            datatype.unpack(packed, outbuf.cast(), count);
        }
        numbers::give_exactly((at + len) as i64, position)
    }
}

unsafe fn pack_size<N: Whole>(
    call: Call,
    count: N,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
    size: *mut N,
) -> Outcome {
    call.process.comm(comm)?;
    let bytes = Use::of(&call.process.types, datatype)?.bytes(numbers::count(count)?)?;
    // SAFETY: the program gives room for a number.
    unsafe { numbers::give_fitting(bytes as i64, size) };
    Ok(())
}

/// Size of a predefined type in `external32`, if it differs from that in memory.
fn external_size(handle: MPI_Datatype) -> usize {
    match handle {
        MPI_LONG | MPI_UNSIGNED_LONG => 4,
        MPI_WCHAR => 2,
        _ => size_of_named(handle),
    }
}

/// The number of parts of an element whose byte order is converted separately.
fn parts_of(handle: MPI_Datatype) -> usize {
    match NamedDatatype::of(handle).map(|named| named.kind) {
        Some(Kind::Complex | Kind::LongDoubleComplex) => 2,
        _ => 1,
    }
}

fn expect_external32(form: *const c_char) -> Outcome {
    // SAFETY: the program gives a string.
    let form = unsafe { text::taken(form) };
    if form != "external32" {
        refuse!(MPI_ERR_ARG, "the data representation `{form}` is unknown: `external32` is");
    }
    Ok(())
}

/// The sizes of one element in memory and in `external32`.
fn sizes(datatype: &TypeRef) -> (usize, usize) {
    let parts = parts(datatype);
    (sum(&parts, &size_of_named), sum(&parts, &external_size))
}

/// Bytes of this many elements of `each` bytes.
fn bytes_of(each: usize, count: usize) -> Outcome<usize> {
    match each.checked_mul(count).filter(|bytes| *bytes <= LONGEST) {
        Some(bytes) => Ok(bytes),
        None => numbers::too_many(count, each),
    }
}

/// Visits basic elements: their bytes in memory and in `external32`.
fn each_number(datatype: &TypeRef, count: usize, mut f: impl FnMut(MPI_Datatype, usize, usize)) {
    let runs = runs(datatype);
    // Elements without data are done, however many they are.
    if runs.is_empty() {
        return;
    }
    for _ in 0..count {
        for (handle, n) in &runs {
            let parts = parts_of(*handle);
            let (inside, outside) =
                (size_of_named(*handle) / parts, external_size(*handle) / parts);
            (0..n * parts).for_each(|_| f(*handle, inside, outside));
        }
    }
}

/// Whether it is C's `long double`, or consists of such numbers.
fn is_long_double(handle: MPI_Datatype) -> bool {
    let kind = NamedDatatype::of(handle).map(|named| named.kind);
    matches!(kind, Some(Kind::LongDouble | Kind::LongDoubleComplex))
}

fn is_signed(handle: MPI_Datatype) -> bool {
    NamedDatatype::of(handle).is_some_and(|named| named.kind == Kind::Signed)
}

unsafe fn pack_external<N: Whole, A: Whole>(
    call: Call,
    form: *const c_char,
    inbuf: *const c_void,
    count: N,
    handle: MPI_Datatype,
    outbuf: *mut c_void,
    size: A,
    position: *mut A,
) -> Outcome {
    expect_external32(form)?;
    let count = numbers::count(count)?;
    let (found, datatype) =
        (TypeRef::of(&call.process.types, handle)?, Use::of(&call.process.types, handle)?);
    let (_, outside) = sizes(&found);
    let len = bytes_of(outside, count)?;
    // SAFETY: the program gives such buffers, and a position.
    unsafe {
        let at = part(size.wide(), (*position).wide(), len, "packed")?;
        let packed = datatype.pack(inbuf.cast(), count)?;
        let (mut from, mut to) = (&packed[..], outbuf.cast::<u8>().add(at));
        let mut too_large = None;
        each_number(&found, count, |of, inside, outside| {
            let (number, rest) = from.split_at(inside);
            from = rest;
            if let (true, Ok(number)) = (is_long_double(of), number.try_into()) {
                to.cast::<[u8; long_double::LEN]>().write(long_double::to_external(number));
                to = to.add(outside);
                return;
            }
            // The lower bytes, the highest of them first.
            let fill = if is_signed(of) && number[outside - 1] & 0x80 != 0 { 0xff } else { 0 };
            if number[outside..].iter().any(|byte| *byte != fill) {
                too_large = Some(of);
            }
            for (i, byte) in number[..outside].iter().rev().enumerate() {
                to.add(i).write(*byte);
            }
            to = to.add(outside);
        });
        if let Some(of) = too_large {
            let name = of.name().unwrap_or_default();
            refuse!(MPI_ERR_CONVERSION, "a number of type {name} does not fit into external32");
        }
        numbers::give_exactly((at + len) as i64, position)
    }
}

unsafe fn unpack_external<N: Whole, A: Whole>(
    call: Call,
    form: *const c_char,
    inbuf: *const c_void,
    size: A,
    position: *mut A,
    outbuf: *mut c_void,
    count: N,
    handle: MPI_Datatype,
) -> Outcome {
    expect_external32(form)?;
    let count = numbers::count(count)?;
    let (found, datatype) =
        (TypeRef::of(&call.process.types, handle)?, Use::of(&call.process.types, handle)?);
    let (inside, outside) = sizes(&found);
    let len = bytes_of(outside, count)?;
    // SAFETY: the program gives such buffers, and a position.
    unsafe {
        let at = part(size.wide(), (*position).wide(), len, "packed")?;
        let mut from = inbuf.cast::<u8>().add(at);
        let mut packed = zeroed(bytes_of(inside, count)?)?;
        packed.clear();
        each_number(&found, count, |of, inside, outside| {
            if is_long_double(of) {
                let number = from.cast::<[u8; long_double::LEN]>().read();
                packed.extend(long_double::from_external(number));
                from = from.add(outside);
                return;
            }
            let negative = is_signed(of) && *from & 0x80 != 0;
            packed.extend((0..outside).rev().map(|i| *from.add(i)));
            packed.extend((outside..inside).map(|_| if negative { 0xff } else { 0u8 }));
            from = from.add(outside);
        });
        datatype.unpack(&packed, outbuf.cast(), count);
        numbers::give_exactly((at + len) as i64, position)
    }
}

unsafe fn pack_external_size<N: Whole, A: Whole>(
    call: Call,
    form: *const c_char,
    count: N,
    handle: MPI_Datatype,
    size: *mut A,
) -> Outcome {
    expect_external32(form)?;
    let (_, outside) = sizes(&TypeRef::of(&call.process.types, handle)?);
    // SAFETY: the program gives room for a number.
    unsafe { numbers::give_fitting(bytes_of(outside, numbers::count(count)?)? as i64, size) };
    Ok(())
}
