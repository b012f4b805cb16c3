//! Sending (MPI-4.1 sections 3.2, 3.4, 3.6, 3.7, 3.9): modes, immediate, persistent.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::operation;
use vrt_core::pe::{self, Mode, Outbound, Started};
use vrt_slot::report;

use crate::call::{Call, functions};
use crate::fault::{Fault, Outcome, fault, refuse};
use crate::numbers::{self, Whole};
use crate::object::buffer::{self, Outgoing, UNTYPED};
use crate::object::request::{Begun, Buffers, State};
use crate::object::{Comm, Request, Stat, Use};

functions! {
    MPI_Send / MPI_Send_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) on Comm(comm) = send;
    MPI_Ssend / MPI_Ssend_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) on Comm(comm) = ssend;
    MPI_Rsend / MPI_Rsend_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) on Comm(comm) = send;
    MPI_Bsend / MPI_Bsend_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) on Comm(comm) = bsend;
    MPI_Isend / MPI_Isend_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = isend;
    MPI_Issend / MPI_Issend_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = issend;
    MPI_Irsend / MPI_Irsend_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = isend;
    MPI_Ibsend / MPI_Ibsend_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = ibsend;
    MPI_Send_init / MPI_Send_init_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = send_init;
    MPI_Ssend_init / MPI_Ssend_init_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = ssend_init;
    MPI_Rsend_init / MPI_Rsend_init_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = send_init;
    MPI_Bsend_init / MPI_Bsend_init_c(
        buf: *const c_void, count: N, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = bsend_init;
    MPI_Buffer_attach / MPI_Buffer_attach_c(buffer: *mut c_void, size: N) on Nothing = attach;
    MPI_Buffer_detach / MPI_Buffer_detach_c(buffer: *mut c_void, size: *mut N) on Nothing = detach;
    MPI_Buffer_flush() on Nothing = flush;
    MPI_Buffer_iflush(request: *mut MPI_Request) on Nothing = iflush;
    MPI_Comm_attach_buffer / MPI_Comm_attach_buffer_c(comm: MPI_Comm, buffer: *mut c_void, size: N)
        on Comm(comm) = attach_comm;
    MPI_Comm_detach_buffer / MPI_Comm_detach_buffer_c(
        comm: MPI_Comm, buffer: *mut c_void, size: *mut N,
    ) on Comm(comm) = detach_comm;
    MPI_Comm_flush_buffer(comm: MPI_Comm) on Comm(comm) = flush_comm;
    MPI_Comm_iflush_buffer(comm: MPI_Comm, request: *mut MPI_Request) on Comm(comm) = iflush_comm;
}

/// The message of a send; `None` for a send to no process.
///
/// # Errors
/// The tag or the rank is invalid.
#[inline(always)]
pub(crate) fn outbound(
    comm: &Comm,
    (data, len): (*const u8, usize),
    dest: c_int,
    tag: c_int,
    mode: Mode,
) -> Outcome<Option<Outbound>> {
    if tag < 0 {
        return Err(wrong_tag(tag));
    }
    if dest == MPI_PROC_NULL {
        return Ok(None);
    }
    Ok(Some(Outbound {
        context: comm.span.context,
        to: comm.job_rank(dest)?,
        source: comm.span.rank,
        tag,
        data,
        len,
        mode,
        signature: UNTYPED,
    }))
}

#[cold]
fn wrong_tag(tag: c_int) -> Box<Fault> {
    let text = format!("the tag is {tag}: 0 to {} are allowed", c_int::MAX);
    fault(MPI_ERR_TAG, text)
}

/// # Safety
/// The elements are readable.
#[inline(always)]
unsafe fn send_by<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    to: (c_int, c_int, MPI_Comm),
) -> Outcome {
    if mode == Mode::Buffered {
        expect_room(call, count, datatype, to.2)?;
    }
    // SAFETY: the program gives elements that are readable.
    unsafe {
        match buffer::dense(buf, count, datatype)? {
            Some(len) => send_bytes(call, mode, (buf.cast(), len), to),
            None => send_elements(call, mode, (buf, count, datatype), to),
        }
    }
}

/// # Safety
/// The elements are readable.
#[inline(never)]
unsafe fn send_elements<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    to: (c_int, c_int, MPI_Comm),
) -> Outcome {
    // SAFETY: as the caller promises.
    unsafe {
        let data = Outgoing::of(&call.process.types, buf, count, datatype)?;
        send_bytes(call, mode, (data.at, data.len), to)
    }
}

/// # Safety
/// The data is readable.
#[inline(always)]
unsafe fn send_bytes(
    call: Call,
    mode: Mode,
    data: (*const u8, usize),
    (dest, tag, comm): (c_int, c_int, MPI_Comm),
) -> Outcome {
    let message = call.process.with_comm(comm, |comm| outbound(comm, data, dest, tag, mode))?;
    let Some(message) = message else { return Ok(()) };
    // SAFETY: the buffer, or the packed copy, stays during the call.
    unsafe { operation::block_on_send(call.may_block(), &message, call.site) };
    Ok(())
}

macro_rules! blocking {
    ($($name:ident $mode:ident;)*) => {$(
        unsafe fn $name<N: Whole>(
            call: Call,
            buf: *const c_void,
            count: N,
            datatype: MPI_Datatype,
            dest: c_int,
            tag: c_int,
            comm: MPI_Comm,
        ) -> Outcome {
            let (data, to) = ((buf, count, datatype), (dest, tag, comm));
            // SAFETY: as the program promises.
            unsafe { send_by(call, Mode::$mode, data, to) }
        }
    )*};
}
blocking! {
    send Standard;
    ssend Synchronous;
    bsend Buffered;
}

/// A buffered send requires a buffer from the program, though it is not used: what would not fit there with another MPI
/// is refused here, too.
fn expect_room<N: Whole>(call: Call, count: N, datatype: MPI_Datatype, comm: MPI_Comm) -> Outcome {
    let count = numbers::count(count)?;
    let of_comm = call.process.comm(comm)?.buffer.get();
    let (_, room) = if of_comm.1 > 0 { of_comm } else { call.process.buffer.get() };
    let needed = Use::of(&call.process.types, datatype)?.bytes(count)?;
    if needed > room {
        refuse!(
            MPI_ERR_BUFFER,
            "the message has {}, the buffer for buffered sends {room} (MPI_Buffer_attach)",
            report::count(needed, "byte")
        );
    }
    Ok(())
}

/// Starts a send; the copy that it may need is kept with its request.
///
/// # Safety
/// The data stays until the request is done.
unsafe fn begin(data: Outgoing, message: Option<Outbound>) -> Begun {
    let buffers = Buffers { outgoing: data.packed, unpack: None };
    let Some(message) = message else { return (State::done(Stat::EMPTY), buffers) };
    let pattern = operation::sent_to(&message);
    // SAFETY: as the caller promises, the data stays until the request is done.
    let state = match pe::with(|pe| unsafe { pe.engine.send(&message) }) {
        Started::Done(_) => State::done(Stat::EMPTY),
        Started::Pending(number, _) => State::Engine { number, pattern: Some(pattern) },
    };
    (state, buffers)
}

/// # Safety
/// The elements are readable until the request is done; there is room for a handle.
#[inline(always)]
unsafe fn isend_by<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    (dest, tag, on): (c_int, c_int, MPI_Comm),
    request: *mut MPI_Request,
) -> Outcome {
    if mode == Mode::Buffered {
        expect_room(call, count, datatype, on)?;
    }
    let comm = call.process.comm(on)?;
    // SAFETY: the program gives elements that stay until the request is done, and room for a handle.
    unsafe {
        let data = Outgoing::of(&call.process.types, buf, count, datatype)?;
        let message = outbound(&comm, (data.at, data.len), dest, tag, mode)?;
        Request::new(call.site, on, begin(data, message)).give(&call.process.requests, request);
    }
    Ok(())
}

/// # Safety
/// The elements are readable whenever the request is active; there is room for a handle.
unsafe fn init_by<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    (dest, tag, on): (c_int, c_int, MPI_Comm),
    request: *mut MPI_Request,
) -> Outcome {
    let comm = call.process.comm(on)?;
    let (count, datatype) = (numbers::count(count)?, Use::of(&call.process.types, datatype)?);
    let start = move || -> Outcome<(Outgoing, Option<Outbound>)> {
        // SAFETY: the program gives elements that are readable now, and whenever the request is active.
        unsafe {
            let data = Outgoing::of_elements(buf.cast(), count, &datatype)?;
            let message = outbound(&comm, (data.at, data.len), dest, tag, mode)?;
            Ok((data, message))
        }
    };
    // Wrong arguments are refused here, not at each start.
    start()?;
    let start = Box::new(move || {
        let (data, message) = start()?;
        // SAFETY: as above.
        Ok(unsafe { begin(data, message) })
    });
    // SAFETY: the program gives room for a handle.
    unsafe { Request::persistent(call.site, on, start).give(&call.process.requests, request) };
    Ok(())
}

macro_rules! requested {
    ($by:ident: $($name:ident $mode:ident;)*) => {$(
        unsafe fn $name<N: Whole>(
            call: Call,
            buf: *const c_void,
            count: N,
            datatype: MPI_Datatype,
            dest: c_int,
            tag: c_int,
            comm: MPI_Comm,
            request: *mut MPI_Request,
        ) -> Outcome {
            let (data, to) = ((buf, count, datatype), (dest, tag, comm));
            // SAFETY: as the program promises.
            unsafe { $by(call, Mode::$mode, data, to, request) }
        }
    )*};
}
requested! { isend_by:
    isend Standard;
    issend Synchronous;
    ibsend Buffered;
}
requested! { init_by:
    send_init Standard;
    ssend_init Synchronous;
    bsend_init Buffered;
}

fn attach<N: Whole>(call: Call, buffer: *mut c_void, size: N) -> Outcome {
    set_buffer(&call.process.buffer, buffer, numbers::count(size)?)
}

fn set_buffer(place: &Cell<(usize, usize)>, buffer: *mut c_void, size: usize) -> Outcome {
    if place.get().1 > 0 {
        refuse!(MPI_ERR_BUFFER, "a buffer of {} bytes is attached already", place.get().1);
    }
    // The library's own memory has no end.
    let is_automatic = std::ptr::eq(buffer, MPI_BUFFER_AUTOMATIC);
    place.set((buffer as usize, if is_automatic { usize::MAX } else { size }));
    Ok(())
}

unsafe fn detach<N: Whole>(call: Call, buffer: *mut c_void, size: *mut N) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { take_buffer(&call.process.buffer, buffer, size) }
}

/// # Safety
/// There is room for a pointer and a number.
unsafe fn take_buffer<N: Whole>(
    place: &Cell<(usize, usize)>,
    buffer: *mut c_void,
    size: *mut N,
) -> Outcome {
    let (at, len) = place.replace((0, 0));
    let len = if len == usize::MAX { 0 } else { len };
    // SAFETY: the program gives room for a pointer and a number.
    unsafe {
        buffer.cast::<usize>().write(at);
        numbers::give_exactly(len as i64, size)
    }
}

fn attach_comm<N: Whole>(call: Call, comm: MPI_Comm, buffer: *mut c_void, size: N) -> Outcome {
    set_buffer(&call.process.comm(comm)?.buffer, buffer, numbers::count(size)?)
}

unsafe fn detach_comm<N: Whole>(
    call: Call,
    comm: MPI_Comm,
    buffer: *mut c_void,
    size: *mut N,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { take_buffer(&call.process.comm(comm)?.buffer, buffer, size) }
}

/// Buffered messages are copied to the library's own memory, so there is nothing to wait for.
fn flush(_: Call) -> Outcome {
    Ok(())
}

unsafe fn iflush(call: Call, request: *mut MPI_Request) -> Outcome {
    let begun = (State::done(Stat::EMPTY), Buffers::default());
    // SAFETY: the program gives room for a handle.
    unsafe { Request::new(call.site, MPI_COMM_SELF, begun).give(&call.process.requests, request) };
    Ok(())
}

fn flush_comm(call: Call, comm: MPI_Comm) -> Outcome {
    call.process.comm(comm).map(|_| ())
}

unsafe fn iflush_comm(call: Call, comm: MPI_Comm, request: *mut MPI_Request) -> Outcome {
    call.process.comm(comm)?;
    // SAFETY: as the program promises.
    unsafe { iflush(call, request) }
}
