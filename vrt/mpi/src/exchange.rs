//! Sending combined with receiving (MPI-4.1 section 3.10).

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_abi::types::*;
use vrt_core::operation;
use vrt_core::pe::{self, Mode, Room, Started};

use crate::call::{Call, functions};
use crate::fault::Outcome;
use crate::numbers::{self, Whole};
use crate::object::buffer::{self, Incoming, Outgoing, UNTYPED, finish};
use crate::object::{Comm, Request, Stat, Use};
use crate::receive;
use crate::send::outbound;

functions! {
    MPI_Sendrecv / MPI_Sendrecv_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
        recvbuf: *mut c_void, recvcount: N, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
        comm: MPI_Comm, status: *mut MPI_Status,
    ) on Comm(comm) = sendrecv;
    MPI_Sendrecv_replace / MPI_Sendrecv_replace_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
        recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
    ) on Comm(comm) = sendrecv_replace;
    MPI_Isendrecv / MPI_Isendrecv_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
        recvbuf: *mut c_void, recvcount: N, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) on Comm(comm) = isendrecv;
    MPI_Isendrecv_replace / MPI_Isendrecv_replace_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
        recvtag: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) on Comm(comm) = isendrecv_replace;
}

unsafe fn sendrecv<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives buffers that stay during the call.
    unsafe {
        let sent = buffer::dense(sendbuf, sendcount, sendtype)?;
        let received = buffer::dense(recvbuf, recvcount, recvtype)?;
        if let (Some(len), Some(capacity)) = (sent, received) {
            let data = (sendbuf.cast(), len);
            let room = Room { buffer: recvbuf.cast(), capacity, signature: UNTYPED };
            let (to, from) = ((dest, sendtag), (source, recvtag));
            return exchange_bytes(call, comm, data, to, room, from, status);
        }
        let found = call.process.comm(comm)?;
        let data = Outgoing::of(&call.process.types, sendbuf, sendcount, sendtype)?;
        let room = Incoming::of(&call.process.types, recvbuf, recvcount, recvtype)?;
        exchange(call, &found, data, (dest, sendtag), room, (source, recvtag), status)
    }
}

/// [`exchange`] for contiguous bytes.
///
/// # Safety
/// Data and room are valid during the call; there is room for a status, or it is ignored.
#[inline(always)]
unsafe fn exchange_bytes(
    call: Call,
    comm: MPI_Comm,
    data: (*const u8, usize),
    (dest, sendtag): (c_int, c_int),
    room: Room,
    (source, recvtag): (c_int, c_int),
    status: *mut MPI_Status,
) -> Outcome {
    let (message, pattern) = call.process.with_comm(comm, |comm| {
        let message = outbound(comm, data, dest, sendtag, Mode::Standard)?;
        Ok((message, receive::pattern(comm, source, recvtag)?))
    })?;
    let (Some(message), Some(pattern)) = (message, pattern) else {
        let data = Outgoing { at: data.0, len: data.1, packed: None };
        let room = Incoming { room, unpack: None };
        let found = call.process.comm(comm)?;
        // SAFETY: as the caller promises.
        return unsafe {
            exchange(call, &found, data, (dest, sendtag), room, (source, recvtag), status)
        };
    };
    // SAFETY: as the caller promises.
    let outcome = unsafe {
        operation::block_on_exchange(call.may_block(), &message, pattern, room, call.site)
    };
    // SAFETY: as the caller promises.
    unsafe { Stat::of(&outcome).give(status) };
    outcome.fitting()?;
    Ok(())
}

/// Sends and receives at the same time, on the rank's stack.
///
/// # Safety
/// As for [`exchange_bytes`].
unsafe fn exchange(
    call: Call,
    comm: &Rc<Comm>,
    data: Outgoing,
    (dest, sendtag): (c_int, c_int),
    room: Incoming,
    (source, recvtag): (c_int, c_int),
    status: *mut MPI_Status,
) -> Outcome {
    let message = outbound(comm, (data.at, data.len), dest, sendtag, Mode::Standard)?;
    let pattern = receive::pattern(comm, source, recvtag)?;
    let may_block = call.may_block();
    // SAFETY: as the caller promises. The send comes first: a replaced buffer is copied by then.
    unsafe {
        let sent = match &message {
            Some(message) => pe::with(|pe| pe.engine.send(message)),
            None => Started::done(),
        };
        let received = match pattern {
            Some(pattern) => {
                let start = |engine: &mut pe::Engine| engine.receive(pattern, room.room);
                let outcome =
                    operation::block_on_request(may_block, start, Some(pattern), call.site);
                finish(outcome, room.unpack.as_deref())
            }
            None => Ok(Stat::NOBODY),
        };
        if let Started::Pending(number, _) = sent {
            let start = |engine: &mut pe::Engine| engine.outcome(number);
            let pattern = message.as_ref().map(operation::sent_to);
            operation::block_on_request(may_block, start, pattern, call.site);
        }
        received?.give(status);
    }
    Ok(())
}

unsafe fn sendrecv_replace<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let found = call.process.comm(comm)?;
    // SAFETY: the program gives a buffer that stays during the call; what is sent is a copy.
    unsafe {
        let data = copy_of(call, buf, count, datatype)?;
        let room = Incoming::of(&call.process.types, buf, count, datatype)?;
        exchange(call, &found, data, (dest, sendtag), room, (source, recvtag), status)
    }
}

/// A copy of a buffer that is overwritten by a receive.
///
/// # Safety
/// The elements are readable.
unsafe fn copy_of<N: Whole>(
    call: Call,
    buf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
) -> Outcome<Outgoing> {
    let (count, datatype) = (numbers::count(count)?, Use::of(&call.process.types, datatype)?);
    // SAFETY: as the caller promises.
    let packed = unsafe { datatype.pack(buf.cast(), count)? };
    Ok(Outgoing { at: packed.as_ptr(), len: packed.len(), packed: Some(packed) })
}

unsafe fn isendrecv<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: the program gives buffers that stay until the request is done.
    unsafe {
        let data = Outgoing::of(&call.process.types, sendbuf, sendcount, sendtype)?;
        let room = Incoming::of(&call.process.types, recvbuf, recvcount, recvtype)?;
        iexchange(call, comm, data, (dest, sendtag), room, (source, recvtag), request)
    }
}

unsafe fn isendrecv_replace<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: the program gives a buffer that stays until the request is done; what is sent is a copy.
    unsafe {
        let data = copy_of(call, buf, count, datatype)?;
        let room = Incoming::of(&call.process.types, buf, count, datatype)?;
        iexchange(call, comm, data, (dest, sendtag), room, (source, recvtag), request)
    }
}

/// Starts a send and a receive; the request is done when both are.
///
/// # Safety
/// Data and room are valid until the request is done; there is room for a handle.
unsafe fn iexchange(
    call: Call,
    on: MPI_Comm,
    data: Outgoing,
    (dest, sendtag): (c_int, c_int),
    room: Incoming,
    (source, recvtag): (c_int, c_int),
    request: *mut MPI_Request,
) -> Outcome {
    let comm = call.process.comm(on)?;
    let message = outbound(&comm, (data.at, data.len), dest, sendtag, Mode::Standard)?;
    let pattern = receive::pattern(&comm, source, recvtag)?;
    let site = *call.site;
    let future = async move {
        let (data, room) = (data, room);
        // SAFETY: as the caller promises; copies live in this future.
        unsafe {
            let stat = match (message, pattern) {
                (Some(message), Some(pattern)) => {
                    let outcome = operation::exchange(message, pattern, room.room, site).await?;
                    finish(outcome, room.unpack.as_deref())?
                }
                (Some(message), None) => {
                    operation::send(message, site).await?;
                    Stat::NOBODY
                }
                (None, Some(pattern)) => {
                    let outcome = operation::receive(pattern, room.room, site).await?;
                    finish(outcome, room.unpack.as_deref())?
                }
                (None, None) => Stat::NOBODY,
            };
            drop(data);
            Ok(stat)
        }
    };
    // SAFETY: the program gives room for a handle.
    unsafe { Request::task(call.site, on, Box::pin(future)).give(&call.process.requests, request) };
    Ok(())
}
