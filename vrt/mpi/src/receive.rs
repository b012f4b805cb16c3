//! Receiving (MPI-4.1 sections 3.2.4, 3.7, 3.9).

use std::ffi::{c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::mailbox::{self, Pattern};
use vrt_core::operation;
use vrt_core::pe::{self, Completion, Room, Started};

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::object::buffer::{self, Incoming, UNTYPED, finish};
use crate::object::request::{Begun, Buffers, State};
use crate::object::{Comm, Request, Stat, Use};

functions! {
    MPI_Recv / MPI_Recv_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        status: *mut MPI_Status,
    ) on Comm(comm) = recv;
    MPI_Irecv / MPI_Irecv_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = irecv;
    MPI_Recv_init / MPI_Recv_init_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) on Comm(comm) = recv_init;
}

/// The pattern of a receive; `None` for a receive from no process.
///
/// # Errors
/// The rank or the tag is invalid.
#[inline(always)]
pub(crate) fn pattern(comm: &Comm, source: c_int, tag: c_int) -> Outcome<Option<Pattern>> {
    let tag = match tag {
        0.. => tag,
        MPI_ANY_TAG => mailbox::ANY,
        _ => {
            refuse!(MPI_ERR_TAG, "the tag is {tag}: 0 to {} or MPI_ANY_TAG are allowed", c_int::MAX)
        }
    };
    let source = match source {
        MPI_ANY_SOURCE => mailbox::ANY,
        MPI_PROC_NULL => return Ok(None),
        _ => {
            comm.job_rank(source)?;
            source
        }
    };
    Ok(Some(Pattern { context: comm.span.context, source, tag }))
}

#[inline(always)]
unsafe fn recv<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let from = (source, tag, comm);
    // SAFETY: the program gives a buffer that stays during the call, and room for a status.
    unsafe {
        let Ok(Some(capacity)) = buffer::dense(buf, count, datatype) else {
            return recv_elements(call, (buf, count, datatype), from, status);
        };
        let room = Room { buffer: buf.cast(), capacity, signature: UNTYPED };
        if let Some(outcome) = wait_for(call, room, from, status)? {
            outcome.fitting()?;
        }
        Ok(())
    }
}

/// # Safety
/// The elements are writable, and there is room for a status, unless it is ignored.
#[inline(never)]
unsafe fn recv_elements<N: Whole>(
    call: Call,
    (buf, count, datatype): (*mut c_void, N, MPI_Datatype),
    from: (c_int, c_int, MPI_Comm),
    status: *mut MPI_Status,
) -> Outcome {
    let (source, tag, comm) = from;
    // SAFETY: as the caller promises.
    unsafe {
        // What comes from nobody may be described by nothing.
        if call.process.with_comm(comm, |comm| pattern(comm, source, tag))?.is_none() {
            Stat::NOBODY.give(status);
            return Ok(());
        }
        let Incoming { room, unpack } = Incoming::of(&call.process.types, buf, count, datatype)?;
        if let Some(outcome) = wait_for(call, room, from, status)? {
            finish(outcome, unpack.as_deref())?;
        }
    }
    Ok(())
}

/// Waits for a message and returns its status.
///
/// # Safety
/// The room is valid during the call, and there is room for a status, unless it is ignored.
#[inline(always)]
unsafe fn wait_for(
    call: Call,
    room: Room,
    (source, tag, comm): (c_int, c_int, MPI_Comm),
    status: *mut MPI_Status,
) -> Outcome<Option<Completion>> {
    let pattern = call.process.with_comm(comm, |comm| pattern(comm, source, tag))?;
    // SAFETY: as the caller promises.
    unsafe {
        let Some(pattern) = pattern else {
            Stat::NOBODY.give(status);
            return Ok(None);
        };
        let outcome = operation::block_on_receive(call.may_block(), pattern, room, call.site);
        Stat::of(&outcome).give(status);
        Ok(Some(outcome))
    }
}

/// Starts a receive; the destination of unpacking at its end is kept with its request.
///
/// # Safety
/// The elements are writable until the request is done.
unsafe fn begin(room: Incoming, pattern: Pattern) -> Begun {
    let buffers = Buffers { outgoing: None, unpack: room.unpack };
    // SAFETY: as the caller promises, the buffer stays until the request is done.
    let state = match pe::with(|pe| unsafe { pe.engine.begin_receive(pattern, room.room) }) {
        Started::Done(outcome) => State::Received(outcome),
        Started::Pending(number, _) => State::Engine { number, pattern: Some(pattern) },
    };
    (state, buffers)
}

/// A receive from no process, whatever its buffer.
fn from_nobody() -> Begun {
    (State::done(Stat::NOBODY), Buffers::default())
}

unsafe fn irecv<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    on: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = call.process.comm(on)?;
    // SAFETY: the program gives a buffer that stays until the request is done, and room for a handle.
    unsafe {
        let begun = match pattern(&comm, source, tag)? {
            Some(pattern) => {
                begin(Incoming::of(&call.process.types, buf, count, datatype)?, pattern)
            }
            None => from_nobody(),
        };
        Request::new(call.site, on, begun).give(&call.process.requests, request);
    }
    Ok(())
}

unsafe fn recv_init<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    on: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = call.process.comm(on)?;
    let Some(pattern) = pattern(&comm, source, tag)? else {
        let start = Box::new(|| Ok(from_nobody()));
        // SAFETY: the program gives room for a handle.
        unsafe { Request::persistent(call.site, on, start).give(&call.process.requests, request) };
        return Ok(());
    };
    let (count, datatype) = (numbers::count(count)?, Use::of(&call.process.types, datatype)?);
    datatype.bytes(count)?;
    let start = Box::new(move || {
        // The request keeps the communicator.
        let _ = &comm;
        // SAFETY: the program gives a buffer that is writable whenever the request is active.
        unsafe {
            let room = Incoming::of_elements(buf.cast(), count, datatype.clone())?;
            Ok(begin(room, pattern))
        }
    });
    // SAFETY: the program gives room for a handle.
    unsafe { Request::persistent(call.site, on, start).give(&call.process.requests, request) };
    Ok(())
}
