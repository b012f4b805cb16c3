//! Probing (MPI-4.1 section 3.8).

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_core::mailbox::Pattern;
use vrt_core::operation;
use vrt_core::pe::{self, Probed, Started};

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::numbers::Whole;
use crate::object::buffer::{Incoming, finish};
use crate::object::request::{Buffers, State};
use crate::object::{Message, Request, Stat};
use crate::receive;

functions! {
    MPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status)
        on Comm(comm) = probe;
    MPI_Iprobe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, status: *mut MPI_Status)
        on Comm(comm) = iprobe;
    MPI_Mprobe(
        source: c_int, tag: c_int, comm: MPI_Comm, message: *mut MPI_Message, status: *mut MPI_Status,
    ) on Comm(comm) = mprobe;
    MPI_Improbe(
        source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) on Comm(comm) = improbe;
    MPI_Mrecv / MPI_Mrecv_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) on Nothing = mrecv;
    MPI_Imrecv / MPI_Imrecv_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, message: *mut MPI_Message,
        request: *mut MPI_Request,
    ) on Nothing = imrecv;
}

unsafe fn probe(
    call: Call,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let stat = match receive::pattern(&comm, source, tag)? {
        None => Stat::NOBODY,
        Some(pattern) => {
            let found = operation::drive(call.may_block(), operation::probe(pattern, *call.site));
            Stat::of_probed(&found)
        }
    };
    // SAFETY: the program gives room for a status.
    unsafe { stat.give(status) };
    Ok(())
}

unsafe fn iprobe(
    call: Call,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = call.process.comm(comm)?;
    let found = match receive::pattern(&comm, source, tag)? {
        None => Some(Stat::NOBODY),
        Some(pattern) => operation::look(call.may_block(), |engine| engine.probe(pattern))
            .map(|found| Stat::of_probed(&found)),
    };
    // SAFETY: the program gives room for a flag and a status.
    unsafe {
        flag.write(found.is_some().into());
        if let Some(stat) = found {
            stat.give(status);
        }
    }
    Ok(())
}

/// Returns the message found to the program.
///
/// # Safety
/// There is room for a handle and a status, unless that is ignored.
unsafe fn give(
    call: Call,
    on: MPI_Comm,
    found: Option<(u32, Probed)>,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) {
    let (handle, stat) = match found {
        None => (MPI_MESSAGE_NO_PROC, Stat::NOBODY),
        Some((number, found)) => {
            let message = Message { number, on, was_received: Cell::new(false) };
            (MPI_Message(call.process.messages.add(message)), Stat::of_probed(&found))
        }
    };
    // SAFETY: as the caller promises.
    unsafe {
        message.write(handle);
        stat.give(status);
    }
}

unsafe fn mprobe(
    call: Call,
    source: c_int,
    tag: c_int,
    on: MPI_Comm,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = call.process.comm(on)?;
    let found = match receive::pattern(&comm, source, tag)? {
        None => None,
        Some(pattern) => {
            let future = operation::matched_probe(pattern, *call.site);
            Some(operation::drive(call.may_block(), future))
        }
    };
    // SAFETY: the program gives room for a handle and a status.
    unsafe { give(call, on, found, message, status) };
    Ok(())
}

unsafe fn improbe(
    call: Call,
    source: c_int,
    tag: c_int,
    on: MPI_Comm,
    flag: *mut c_int,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = call.process.comm(on)?;
    let pattern: Option<Pattern> = receive::pattern(&comm, source, tag)?;
    let found = match pattern {
        None => None,
        Some(pattern) => match operation::look(call.may_block(), |it| it.matched_probe(pattern)) {
            Some(found) => Some(found),
            None => {
                // SAFETY: the program gives room for a flag.
                unsafe { flag.write(0) };
                return Ok(());
            }
        },
    };
    // SAFETY: the program gives room for a flag, a handle and a status.
    unsafe {
        flag.write(1);
        give(call, on, found, message, status);
    }
    Ok(())
}

/// The message of a handle, which is removed; `None` for the message from no process.
///
/// # Safety
/// The handle belongs to the program.
unsafe fn take(call: Call, handle: *mut MPI_Message) -> Outcome<Option<(u32, MPI_Comm)>> {
    // SAFETY: the program gives its handle.
    let number = unsafe { std::mem::replace(&mut *handle, MPI_MESSAGE_NULL) };
    if number == MPI_MESSAGE_NO_PROC {
        return Ok(None);
    }
    match call.process.messages.remove(number.0) {
        Some(message) if !message.was_received.replace(true) => {
            Ok(Some((message.number, message.on)))
        }
        _ => refuse!(MPI_ERR_REQUEST, "{:#x} is no message, or one that was received", number.0),
    }
}

unsafe fn mrecv<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Outcome {
    // SAFETY: the program gives a buffer that stays during the call, its handle, and room for a status.
    unsafe {
        let room = Incoming::of(&call.process.types, buf, count, datatype)?;
        let Some((number, _)) = take(call, message)? else {
            Stat::NOBODY.give(status);
            return Ok(());
        };
        let start = |engine: &mut pe::Engine| engine.receive_matched(number, room.room);
        let outcome = operation::block_on_request(call.may_block(), start, None, call.site);
        Stat::of(&outcome).give(status);
        finish(outcome, room.unpack.as_deref())?;
    }
    Ok(())
}

unsafe fn imrecv<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    message: *mut MPI_Message,
    request: *mut MPI_Request,
) -> Outcome {
    // SAFETY: the program gives a buffer that stays until the request is done, its handle, and room for
    // another.
    unsafe {
        let room = Incoming::of(&call.process.types, buf, count, datatype)?;
        let (state, on) = match take(call, message)? {
            None => (State::done(Stat::NOBODY), MPI_COMM_SELF),
            Some((number, on)) => {
                let started = pe::with(|pe| pe.engine.receive_matched(number, room.room));
                let state = match started {
                    Started::Done(outcome) => State::Received(outcome),
                    Started::Pending(number, _) => State::Engine { number, pattern: None },
                };
                (state, on)
            }
        };
        let buffers = Buffers { outgoing: None, unpack: room.unpack };
        Request::new(call.site, on, (state, buffers)).give(&call.process.requests, request);
    }
    Ok(())
}
