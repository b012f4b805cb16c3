//! Accesses (MPI-4.1 section 12.3): an operation on a rank's part is executed piece by piece, according to the datatype
//! at the target; the data of the origin is packed first if it has gaps.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "a piece lies in its elements, whose bytes are counted by `Use::bytes` and whose places by `Window::place`"
    )
)]

use std::ffi::{c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::comm::bytes::zeroed;
use vrt_core::comm::operator::{Op, Operator};
use vrt_core::layout::{Layout, Scalar};
use vrt_core::rma::access::Access;
use vrt_slot::report;

use super::place::Place;
use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::object::buffer::Outgoing;
use crate::object::request::{Buffers, State};
use crate::object::{Request, Stat, TypeRef, Use, Window, datatype};
use crate::op::Reduction;

functions! {
    MPI_Put / MPI_Put_c(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, win: MPI_Win,
    ) on Win(win) = put;
    MPI_Get / MPI_Get_c(
        origin: *mut c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, win: MPI_Win,
    ) on Win(win) = get;
    MPI_Accumulate / MPI_Accumulate_c(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) on Win(win) = accumulate;
    MPI_Get_accumulate / MPI_Get_accumulate_c(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, result: *mut c_void,
        result_count: N, result_type: MPI_Datatype, rank: c_int, displacement: MPI_Aint, count: N,
        datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    ) on Win(win) = get_accumulate;
    MPI_Fetch_and_op(
        origin: *const c_void, result: *mut c_void, datatype: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, op: MPI_Op, win: MPI_Win,
    ) on Win(win) = fetch_and_op;
    MPI_Compare_and_swap(
        origin: *const c_void, compare: *const c_void, result: *mut c_void, datatype: MPI_Datatype,
        rank: c_int, displacement: MPI_Aint, win: MPI_Win,
    ) on Win(win) = compare_and_swap;
    MPI_Rput / MPI_Rput_c(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) on Win(win) = rput;
    MPI_Rget / MPI_Rget_c(
        origin: *mut c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, win: MPI_Win,
        request: *mut MPI_Request,
    ) on Win(win) = rget;
    MPI_Raccumulate / MPI_Raccumulate_c(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
        request: *mut MPI_Request,
    ) on Win(win) = raccumulate;
    MPI_Rget_accumulate / MPI_Rget_accumulate_c(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, result: *mut c_void,
        result_count: N, result_type: MPI_Datatype, rank: c_int, displacement: MPI_Aint, count: N,
        datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win, request: *mut MPI_Request,
    ) on Win(win) = rget_accumulate;
}

fn expect_equal(origin: usize, target: usize) -> Outcome {
    if origin != target {
        let origin = report::count(origin, "byte");
        refuse!(MPI_ERR_TRUNCATE, "{origin} at the origin, {target} at the target");
    }
    Ok(())
}

unsafe fn put<N: Whole>(
    call: Call,
    origin: *const c_void,
    origin_count: N,
    origin_type: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    count: N,
    datatype: MPI_Datatype,
    win: MPI_Win,
) -> Outcome {
    let win = call.process.window(win)?;
    // SAFETY: the program gives such elements.
    unsafe {
        let data = Outgoing::of(&call.process.types, origin, origin_count, origin_type)?;
        let Some(place) = win.place(call, rank, displacement, count, datatype)? else {
            return Ok(());
        };
        expect_equal(data.len, place.len)?;
        let mut from = data.at;
        for (at, len) in place.pieces() {
            win.touch(call, place.rank, at, (len, 1), Access::Put { from })?;
            from = from.add(len);
        }
    }
    Ok(())
}

unsafe fn get<N: Whole>(
    call: Call,
    origin: *mut c_void,
    origin_count: N,
    origin_type: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    count: N,
    datatype: MPI_Datatype,
    win: MPI_Win,
) -> Outcome {
    let win = call.process.window(win)?;
    let own = Use::of(&call.process.types, origin_type)?;
    let own_count = numbers::count(origin_count)?;
    let Some(place) = win.place(call, rank, displacement, count, datatype)? else {
        return Ok(());
    };
    expect_equal(own.bytes(own_count)?, place.len)?;
    // SAFETY: the program gives room for such elements.
    unsafe {
        let mut packed = Vec::new();
        let mut to: *mut u8 = match own.direct(own_count) {
            Some(begin) => origin.cast::<u8>().wrapping_offset(begin),
            None => {
                packed = zeroed(place.len)?;
                packed.as_mut_ptr()
            }
        };
        for (at, len) in place.pieces() {
            win.touch(call, place.rank, at, (len, 1), Access::Get { to })?;
            to = to.add(len);
        }
        if own.direct(own_count).is_none() {
            own.unpack(&packed, origin.cast(), own_count);
        }
    }
    Ok(())
}

/// The built-in type of a datatype's elements, if all are the same.
fn scalar_of(datatype: &TypeRef) -> Option<Scalar> {
    match datatype {
        TypeRef::Named(named) => datatype::scalar_of_named(*named),
        TypeRef::Made(made) => made.datatype.layout().scalar_kind(),
    }
}

/// The operation on elements of a datatype, which is predefined or consists of one predefined type.
fn operator_of(call: Call, op: MPI_Op, handle: MPI_Datatype) -> Outcome<Operator> {
    let datatype = TypeRef::of(&call.process.types, handle)?;
    // Nothing is done to no elements, whatever the operation.
    if let TypeRef::Made(made) = &datatype
        && made.datatype.layout().size() == 0
    {
        return Reduction::operator(call.process, MPI_NO_OP, Some(Scalar::U8));
    }
    // Bytes of any type may be replaced or left.
    let any = matches!(op, MPI_REPLACE | MPI_NO_OP).then_some(Scalar::U8);
    Reduction::operator(call.process, op, scalar_of(&datatype).or(any))
}

/// Checks that the combined elements, of this many bytes, have the same type at the origin and at the target (MPI-4.1
/// section 12.3.4).
fn expect_same_elements(
    call: Call,
    operator: Operator,
    origin_type: MPI_Datatype,
    bytes: usize,
) -> Outcome {
    let combines = bytes > 0 && !matches!(operator.op, Op::Replace | Op::Nothing);
    match scalar_of(&TypeRef::of(&call.process.types, origin_type)?) {
        Some(origin) if combines && origin != operator.scalar => refuse!(
            MPI_ERR_TYPE,
            "elements of type {} at the origin, {} at the target",
            origin.name(),
            operator.scalar.name()
        ),
        _ => Ok(()),
    }
}

/// Folds packed elements into a rank's part; `fetched`, if given, gets the previous values, packed.
///
/// # Safety
/// As for [`fold_elements`].
unsafe fn fold(
    call: Call,
    win: &Window,
    place: &Place,
    operator: Operator,
    values: &[u8],
    fetched: Option<&mut [u8]>,
) -> Outcome {
    let (size, extent) = (operator.scalar.size(), operator.scalar.extent());
    if size == extent {
        let fetched = fetched.map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr);
        // SAFETY: as the caller promises.
        return unsafe { fold_elements(call, win, place, operator, values.as_ptr(), fetched) };
    }
    // Elements with gaps are given as they lie in memory.
    let (element, count) = (Layout::scalar(operator.scalar), place.len / size);
    let mut spread = vec![0u8; count * extent];
    let mut before = vec![0u8; if fetched.is_some() { count * extent } else { 0 }];
    // SAFETY: all of these have room for the elements.
    unsafe {
        element.unpack(values.as_ptr(), count * size, spread.as_mut_ptr(), count);
        let to = if fetched.is_some() { before.as_mut_ptr() } else { std::ptr::null_mut() };
        fold_elements(call, win, place, operator, spread.as_ptr(), to)?;
        if let Some(fetched) = fetched {
            element.pack(before.as_ptr(), count, fetched.as_mut_ptr());
        }
    }
    Ok(())
}

/// The same for elements in their memory layout; `fetched` may be null.
///
/// # Safety
/// `values` is readable, and `fetched`, if given, writable, for as many elements as the place has.
unsafe fn fold_elements(
    call: Call,
    win: &Window,
    place: &Place,
    operator: Operator,
    values: *const u8,
    fetched: *mut u8,
) -> Outcome {
    let extent = operator.scalar.extent();
    let mut done = 0;
    for (at, count) in place.elements(operator.scalar) {
        let fetched = if fetched.is_null() { fetched } else { fetched.wrapping_add(done) };
        let access = Access::Accumulate { from: values.wrapping_add(done), fetched, operator };
        // SAFETY: as the caller promises.
        unsafe { win.touch(call, place.rank, at, (count, extent), access)? };
        done += count * extent;
    }
    Ok(())
}

unsafe fn accumulate<N: Whole>(
    call: Call,
    origin: *const c_void,
    origin_count: N,
    origin_type: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let win = call.process.window(win)?;
    let operator = operator_of(call, op, datatype)?;
    let own = Use::of(&call.process.types, origin_type)?;
    let own_count = numbers::count(origin_count)?;
    let Some(place) = win.place(call, rank, displacement, count, datatype)? else {
        return Ok(());
    };
    expect_equal(own.bytes(own_count)?, place.len)?;
    expect_same_elements(call, operator, origin_type, place.len)?;
    // SAFETY: the program gives such elements.
    unsafe {
        let values = own.pack(origin.cast(), own_count)?;
        fold(call, &win, &place, operator, &values, None)
    }
}

unsafe fn get_accumulate<N: Whole>(
    call: Call,
    origin: *const c_void,
    origin_count: N,
    origin_type: MPI_Datatype,
    result: *mut c_void,
    result_count: N,
    result_type: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    count: N,
    datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let win = call.process.window(win)?;
    let operator = operator_of(call, op, datatype)?;
    let results = Use::of(&call.process.types, result_type)?;
    let result_count = numbers::count(result_count)?;
    let Some(place) = win.place(call, rank, displacement, count, datatype)? else {
        return Ok(());
    };
    expect_equal(results.bytes(result_count)?, place.len)?;
    // SAFETY: the program gives such elements; those of the origin are not looked at if there is nothing
    // to do with them.
    unsafe {
        let values = if operator.op == Op::Nothing {
            zeroed(place.len)?
        } else {
            let own = Use::of(&call.process.types, origin_type)?;
            let own_count = numbers::count(origin_count)?;
            expect_equal(own.bytes(own_count)?, place.len)?;
            expect_same_elements(call, operator, origin_type, place.len)?;
            own.pack(origin.cast(), own_count)?
        };
        let mut before = zeroed(place.len)?;
        fold(call, &win, &place, operator, &values, Some(&mut before))?;
        results.unpack(&before, result.cast(), result_count);
    }
    Ok(())
}

unsafe fn fetch_and_op(
    call: Call,
    origin: *const c_void,
    result: *mut c_void,
    datatype: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let one: c_int = 1;
    // SAFETY: as the program promises.
    unsafe {
        get_accumulate(
            call,
            origin,
            one,
            datatype,
            result,
            one,
            datatype,
            rank,
            displacement,
            one,
            datatype,
            op,
            win,
        )
    }
}

unsafe fn compare_and_swap(
    call: Call,
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    datatype: MPI_Datatype,
    rank: c_int,
    displacement: MPI_Aint,
    win: MPI_Win,
) -> Outcome {
    let win = call.process.window(win)?;
    let one: c_int = 1;
    let is_whole = datatype::scalar_of_named(datatype)
        .is_some_and(|scalar| scalar.is_integer() || scalar == Scalar::Bool);
    if !is_whole {
        refuse!(MPI_ERR_TYPE, "only integers, bytes and truth values are compared and swapped");
    }
    let Some(place) = win.place(call, rank, displacement, one, datatype)? else {
        return Ok(());
    };
    let swap = Access::CompareAndSwap {
        expected: compare.cast(),
        value: origin.cast(),
        before: result.cast(),
    };
    // SAFETY: the program gives one element each.
    unsafe { win.touch(call, place.rank, place.offset, (1, place.len), swap) }
}

/// Returns the request of a completed access.
///
/// # Safety
/// There is room for a handle.
unsafe fn give_done(call: Call, request: *mut MPI_Request) -> Outcome {
    let begun = (State::done(Stat::EMPTY), Buffers::default());
    // SAFETY: the program gives room for a handle.
    unsafe { Request::new(call.site, MPI_COMM_SELF, begun).give(&call.process.requests, request) };
    Ok(())
}

/// The forms with a request: an access is complete when its function returns.
macro_rules! requested {
    ($($name:ident = $access:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {$(
        unsafe fn $name<N: Whole>(
            call: Call,
            $($arg: $ty,)*
            request: *mut MPI_Request,
        ) -> Outcome {
            // SAFETY: as the program promises.
            unsafe {
                $access(call, $($arg),*)?;
                give_done(call, request)
            }
        }
    )*};
}
requested! {
    rput = put(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, win: MPI_Win,
    );
    rget = get(
        origin: *mut c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, win: MPI_Win,
    );
    raccumulate = accumulate(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, rank: c_int,
        displacement: MPI_Aint, count: N, datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    );
    rget_accumulate = get_accumulate(
        origin: *const c_void, origin_count: N, origin_type: MPI_Datatype, result: *mut c_void,
        result_count: N, result_type: MPI_Datatype, rank: c_int, displacement: MPI_Aint, count: N,
        datatype: MPI_Datatype, op: MPI_Op, win: MPI_Win,
    );
}
