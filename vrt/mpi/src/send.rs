//! Sending (MPI-4.1 sections 3.2, 3.4, 3.6 to 3.11): modes, immediate, persistent, and combined with a receive.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::operation;
use vrt_core::pe::{self, Mode, Outbound, Room, Started};

use crate::buffer::{self, Incoming, Outgoing, UNTYPED};
use crate::call::{Call, functions};
use crate::communicator::Comm;
use crate::datatype::Use;
use crate::fault::{Outcome, refuse};
use crate::numbers::{self, Whole};
use crate::receive;
use crate::request::{Begun, Buffers, Request, State};
use crate::status::Stat;
use vrt_slot::report;

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
#[inline(always)]
fn outbound(
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
fn wrong_tag(tag: c_int) -> Box<crate::fault::Fault> {
    let text = format!("the tag is {tag}: 0 to {} are allowed", c_int::MAX);
    crate::fault::fault(MPI_ERR_TAG, text)
}

#[inline(always)]
unsafe fn send_by<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    to: (c_int, c_int, MPI_Comm),
) -> Outcome {
    // SAFETY: the program gives elements that are readable.
    unsafe {
        match buffer::dense(buf, count, datatype)? {
            Some(len) => send_bytes(call, mode, (buf.cast(), len), to),
            None => send_elements(call, mode, (buf, count, datatype), to),
        }
    }
}

#[inline(never)]
unsafe fn send_elements<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    to: (c_int, c_int, MPI_Comm),
) -> Outcome {
    // SAFETY: as the caller promises.
    unsafe {
        let data = Outgoing::of(call.process, buf, count, datatype)?;
        send_bytes(call, mode, (data.at, data.len), to)
    }
}

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

unsafe fn send<N: Whole>(
    call: Call,
    buf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { send_by(call, Mode::Standard, (buf, count, datatype), (dest, tag, comm)) }
}

unsafe fn ssend<N: Whole>(
    call: Call,
    buf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    // SAFETY: as the program promises.
    unsafe { send_by(call, Mode::Synchronous, (buf, count, datatype), (dest, tag, comm)) }
}

unsafe fn bsend<N: Whole>(
    call: Call,
    buf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    expect_room(call, numbers::count(count)?, datatype, comm)?;
    // SAFETY: as the program promises.
    unsafe { send_by(call, Mode::Buffered, (buf, count, datatype), (dest, tag, comm)) }
}

/// A buffered send requires a buffer from the program, though it is not used: what would not fit there with another MPI
/// is refused here, too.
fn expect_room(call: Call, count: usize, datatype: MPI_Datatype, comm: MPI_Comm) -> Outcome {
    let of_comm = call.process.comm(comm)?.buffer.get();
    let (_, room) = if of_comm.1 > 0 { of_comm } else { call.process.buffer.get() };
    let needed = Use::of(call.process, datatype)?.bytes(count)?;
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

#[inline(always)]
unsafe fn isend_by<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    (dest, tag, on): (c_int, c_int, MPI_Comm),
    request: *mut MPI_Request,
) -> Outcome {
    let comm = call.process.comm(on)?;
    // SAFETY: the program gives elements that stay until the request is done, and room for a handle.
    unsafe {
        let data = Outgoing::of(call.process, buf, count, datatype)?;
        let message = outbound(&comm, (data.at, data.len), dest, tag, mode)?;
        Request::send(call, on, begin(data, message)).give(call, request);
    }
    Ok(())
}

macro_rules! immediate {
    ($($name:ident $mode:ident;)*) => {$(
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
            unsafe { isend_by(call, Mode::$mode, data, to, request) }
        }
    )*};
}
immediate! {
    isend Standard;
    issend Synchronous;
}

unsafe fn ibsend<N: Whole>(
    call: Call,
    buf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    expect_room(call, numbers::count(count)?, datatype, comm)?;
    let (data, to) = ((buf, count, datatype), (dest, tag, comm));
    // SAFETY: as the program promises.
    unsafe { isend_by(call, Mode::Buffered, data, to, request) }
}

unsafe fn init_by<N: Whole>(
    call: Call,
    mode: Mode,
    (buf, count, datatype): (*const c_void, N, MPI_Datatype),
    (dest, tag, on): (c_int, c_int, MPI_Comm),
    request: *mut MPI_Request,
) -> Outcome {
    let comm = call.process.comm(on)?;
    let (count, datatype) = (numbers::count(count)?, Use::of(call.process, datatype)?);
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
    let start = Box::new(move |_: Call| {
        let (data, message) = start()?;
        // SAFETY: as above.
        Ok(unsafe { begin(data, message) })
    });
    // SAFETY: the program gives room for a handle.
    unsafe { Request::persistent(call, on, start).give(call, request) };
    Ok(())
}

macro_rules! persistent {
    ($($name:ident $mode:ident;)*) => {$(
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
            unsafe { init_by(call, Mode::$mode, data, to, request) }
        }
    )*};
}
persistent! {
    send_init Standard;
    ssend_init Synchronous;
    bsend_init Buffered;
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
        let data = Outgoing::of(call.process, sendbuf, sendcount, sendtype)?;
        let room = Incoming::of(call.process, recvbuf, recvcount, recvtype)?;
        exchange(call, &found, data, (dest, sendtag), room, (source, recvtag), status)
    }
}

/// [`exchange`] for contiguous bytes.
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
                    operation::block_on_request(may_block, start, Some(pattern), *call.site);
                receive::finish(outcome, room.unpack.as_deref())
            }
            None => Ok(Stat::NOBODY),
        };
        if let Started::Pending(number, _) = sent {
            let start = |engine: &mut pe::Engine| engine.outcome(number);
            let pattern = message.as_ref().map(operation::sent_to);
            operation::block_on_request(may_block, start, pattern, *call.site);
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
        let room = Incoming::of(call.process, buf, count, datatype)?;
        exchange(call, &found, data, (dest, sendtag), room, (source, recvtag), status)
    }
}

/// A copy of a buffer that is overwritten by a receive.
unsafe fn copy_of<N: Whole>(
    call: Call,
    buf: *const c_void,
    count: N,
    datatype: MPI_Datatype,
) -> Outcome<Outgoing> {
    let (count, datatype) = (numbers::count(count)?, Use::of(call.process, datatype)?);
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
        let data = Outgoing::of(call.process, sendbuf, sendcount, sendtype)?;
        let room = Incoming::of(call.process, recvbuf, recvcount, recvtype)?;
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
        let room = Incoming::of(call.process, buf, count, datatype)?;
        iexchange(call, comm, data, (dest, sendtag), room, (source, recvtag), request)
    }
}

/// Starts a send and a receive; the request is done when both are.
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
                    receive::finish(outcome, room.unpack.as_deref())?
                }
                (Some(message), None) => {
                    operation::send(message, site).await?;
                    Stat::NOBODY
                }
                (None, Some(pattern)) => {
                    let outcome = operation::receive(pattern, room.room, site).await?;
                    receive::finish(outcome, room.unpack.as_deref())?
                }
                (None, None) => Stat::NOBODY,
            };
            drop(data);
            Ok(stat)
        }
    };
    // SAFETY: the program gives room for a handle.
    unsafe { Request::task(call, on, Box::pin(future)).give(call, request) };
    Ok(())
}

fn attach<N: Whole>(call: Call, buffer: *mut c_void, size: N) -> Outcome {
    set_buffer(&call.process.buffer, buffer, numbers::count(size)?)
}

fn set_buffer(
    place: &std::cell::Cell<(usize, usize)>,
    buffer: *mut c_void,
    size: usize,
) -> Outcome {
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

unsafe fn take_buffer<N: Whole>(
    place: &std::cell::Cell<(usize, usize)>,
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
    unsafe { Request::send(call, MPI_COMM_SELF, begun).give(call, request) };
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
