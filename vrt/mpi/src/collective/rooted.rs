//! Operations that move data from or to one rank: broadcast, gather, scatter (MPI-4.1 sections 6.4 to 6.6).

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use vrt_abi::types::*;
use vrt_core::comm::algorithms::{Collective, Combined, In, Out};
use vrt_core::comm::bytes::zeroed;

use super::form::{Operation, combined, forms, operation};
use super::inter;
use super::parts::{
    Source, Target, datas, expect_equal, input, input_of, output, output_of, put, rooms, targets,
};
use super::root::{Root, root_of};
use crate::call::Call;
use crate::fault::Outcome;
use crate::numbers::{self, Whole};
use crate::object::Comm;
use crate::object::buffer::{is_in_place, not_in_place};

forms! {
    MPI_Bcast / MPI_Bcast_c, MPI_Ibcast / MPI_Ibcast_c, MPI_Bcast_init / MPI_Bcast_init_c(
        buf: *mut c_void, count: N, datatype: MPI_Datatype, root: c_int,
    ) = broadcast<N> now broadcast_now;
    MPI_Gather / MPI_Gather_c, MPI_Igather / MPI_Igather_c, MPI_Gather_init / MPI_Gather_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: N, recvtype: MPI_Datatype, root: c_int,
    ) = gather<N> now gather_now;
    MPI_Gatherv / MPI_Gatherv_c, MPI_Igatherv / MPI_Igatherv_c, MPI_Gatherv_init / MPI_Gatherv_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const N, displs: *const D, recvtype: MPI_Datatype, root: c_int,
    ) = gatherv<N, D>;
    MPI_Scatter / MPI_Scatter_c, MPI_Iscatter / MPI_Iscatter_c,
    MPI_Scatter_init / MPI_Scatter_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: N, recvtype: MPI_Datatype, root: c_int,
    ) = scatter<N>;
    MPI_Scatterv / MPI_Scatterv_c, MPI_Iscatterv / MPI_Iscatterv_c,
    MPI_Scatterv_init / MPI_Scatterv_init_c(
        sendbuf: *const c_void, sendcounts: *const N, displs: *const D, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcount: N, recvtype: MPI_Datatype, root: c_int,
    ) = scatterv<N, D>;
}

#[inline(always)]
unsafe fn broadcast_now<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    let target = Target::of(&call.process.types, buf, count, datatype)?;
    let (Some(out), false) = (target.direct(), comm.is_inter()) else { return Ok(false) };
    let root = match root_of(&comm, root)? {
        Root::There(root) => root,
        _ => numbers::index(comm.engine.rank),
    };
    // SAFETY: as the program promises.
    unsafe { combined(call, &comm, &Combined::broadcast(root, out)) }
}

unsafe fn broadcast<N: Whole>(
    call: Call,
    buf: *mut c_void,
    count: N,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    not_in_place(buf)?;
    let (comm, types, site) = (call.process.comm(comm)?, &call.process.types, *call.site);
    let target = Target::of(types, buf, count, datatype)?;
    let root = root_of(&comm, root)?;
    operation(move || {
        let (comm, target) = (Rc::clone(&comm), target.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::broadcast(&comm, root, &target, site).await;
                }
                let collective = Collective::begin(&comm.engine, site);
                let Root::There(at) = root else {
                    let data = target.as_source().read()?;
                    let out = Out(data.at.cast_mut(), data.len, input(&data).2);
                    return Ok(collective.broadcast(numbers::index(comm.engine.rank), out).await?);
                };
                let room = target.room()?;
                collective.broadcast(at, output(&room)).await?;
                put(&room);
                Ok(())
            }
        }
    })
}

#[inline(always)]
unsafe fn gather_now<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    if comm.is_inter() || is_in_place(sendbuf) {
        return Ok(false);
    }
    let root = root_of(&comm, root)?;
    let Some(data) = Source::of(&call.process.types, sendbuf, sendcount, sendtype)?.direct() else {
        return Ok(false);
    };
    let (at, out) = match root {
        Root::There(root) => (root, None),
        _ => {
            let target = Target::of(&call.process.types, recvbuf, recvcount, recvtype)?;
            expect_equal(data.1, target.len())?;
            match target.times(numbers::index(comm.engine.size))?.direct() {
                None => return Ok(false),
                out => (numbers::index(comm.engine.rank), out),
            }
        }
    };
    // SAFETY: as the program promises.
    unsafe { combined(call, &comm, &Combined::gather(Some(at), data, out)) }
}

unsafe fn gather<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, types, site) = (call.process.comm(comm)?, &call.process.types, *call.site);
    let root = root_of(&comm, root)?;
    let n = comm.engine.partners().len();
    let target = match root {
        Root::Here => Some(Target::of(types, recvbuf, recvcount, recvtype)?),
        _ => None,
    };
    let source =
        own_part(&comm, root, sendbuf, || Source::of(types, sendbuf, sendcount, sendtype))?;
    let source = match (source, &target) {
        (None, Some(target)) => target.nth(numbers::index(comm.engine.rank))?.as_source(),
        (source, _) => source.unwrap_or_else(Source::nothing),
    };
    let whole = match target {
        Some(target) => Some((target.times(n)?, target)),
        None => None,
    };
    operation(move || {
        let (comm, source, whole) = (Rc::clone(&comm), source.clone(), whole.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    let targets = whole.map(|(_, target)| target.parts(n)).transpose()?;
                    return inter::gather(&comm, root, &source, targets, site).await;
                }
                let collective = Collective::begin(&comm.engine, site);
                let Some((whole, target)) = whole else {
                    let Root::There(at) = root else { return Ok(()) };
                    let data = source.read()?;
                    return Ok(collective.gather(Some(at), input(&data), None).await?);
                };
                // In place, what is sent would lie in what is received.
                let data = source.copy()?;
                let room = whole.room()?;
                let (at, out) = (numbers::index(comm.engine.rank), Some(output(&room)));
                expect_equal(data.len(), target.len())?;
                collective.gather(Some(at), input_of(&data), out).await?;
                put(&room);
                Ok(())
            }
        }
    })
}

/// A rank's contribution: none if it is in place, which only the root may request; for an intercommunicator none from
/// the root's group.
fn own_part(
    comm: &Comm,
    root: Root,
    buf: *const c_void,
    make: impl FnOnce() -> Outcome<Source>,
) -> Outcome<Option<Source>> {
    match root {
        Root::Here if comm.is_inter() => Ok(Some(Source::nothing())),
        Root::Neighbor => Ok(Some(Source::nothing())),
        Root::Here if is_in_place(buf) => Ok(None),
        _ => {
            not_in_place(buf)?;
            make().map(Some)
        }
    }
}

unsafe fn gatherv<N: Whole, D: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const N,
    displs: *const D,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, types, site) = (call.process.comm(comm)?, &call.process.types, *call.site);
    let (root, n) = (root_of(&comm, root)?, comm.engine.partners().len());
    let parts = match root {
        // SAFETY: the root gives arrays of so many.
        Root::Here => Some(unsafe { targets(types, recvbuf, (recvcounts, displs), recvtype, n)? }),
        _ => None,
    };
    let source =
        own_part(&comm, root, sendbuf, || Source::of(types, sendbuf, sendcount, sendtype))?;
    let source = match (source, &parts) {
        (None, Some(parts)) => parts[numbers::index(comm.engine.rank)].as_source(),
        (source, _) => source.unwrap_or_else(Source::nothing),
    };
    operation(move || {
        let (comm, source, parts) = (Rc::clone(&comm), source.clone(), parts.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::gather(&comm, root, &source, parts, site).await;
                }
                let collective = Collective::begin(&comm.engine, site);
                let Some(parts) = parts else {
                    let Root::There(at) = root else { return Ok(()) };
                    let data = source.read()?;
                    return Ok(collective.gather_parts(Some(at), input(&data), None).await?);
                };
                let data = source.copy()?;
                let rooms = rooms(&parts)?;
                let outs: Vec<Out> = rooms.iter().map(output).collect();
                let at = numbers::index(comm.engine.rank);
                collective.gather_parts(Some(at), input_of(&data), Some(&outs)).await?;
                rooms.iter().for_each(|room| put(room));
                Ok(())
            }
        }
    })
}

unsafe fn scatter<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, types, site) = (call.process.comm(comm)?, &call.process.types, *call.site);
    let (root, n) = (root_of(&comm, root)?, comm.engine.partners().len());
    let source = match root {
        Root::Here => Some(Target::of(types, sendbuf.cast_mut(), sendcount, sendtype)?),
        _ => None,
    };
    let target =
        own_room(&comm, root, recvbuf, || Target::of(types, recvbuf, recvcount, recvtype))?;
    let whole = source.as_ref().map(|source| source.times(n)).transpose()?;
    operation(move || {
        let (comm, source, target) = (Rc::clone(&comm), source.clone(), target.clone());
        let whole = whole.clone();
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    let sources = match source {
                        Some(source) => {
                            Some(source.parts(n)?.iter().map(Target::as_source).collect())
                        }
                        None => None,
                    };
                    return inter::scatter(&comm, root, sources, target, site).await;
                }
                let collective = Collective::begin(&comm.engine, site);
                let me = numbers::index(comm.engine.rank);
                let data = whole.map(|whole| whole.as_source().read()).transpose()?;
                let input = data.as_ref().map(input);
                let at = if let Root::There(at) = root { at } else { me };
                let Some(target) = target else {
                    // In place: the root's own part stays where it is.
                    let len = source.as_ref().map_or(0, Target::len);
                    let mut own = zeroed(len)?;
                    let out = output_of(&mut own);
                    return Ok(collective.scatter(at, input, out).await?);
                };
                if let Some(source) = &source {
                    expect_equal(source.len(), target.len())?;
                }
                let room = target.room()?;
                collective.scatter(at, input, output(&room)).await?;
                put(&room);
                Ok(())
            }
        }
    })
}

/// A rank's room for the result: none if it is in place, which only the root may request.
fn own_room(
    comm: &Comm,
    root: Root,
    buf: *mut c_void,
    make: impl FnOnce() -> Outcome<Target>,
) -> Outcome<Option<Target>> {
    match root {
        Root::Here if comm.is_inter() || is_in_place(buf) => Ok(None),
        Root::Neighbor => Ok(None),
        _ => {
            not_in_place(buf)?;
            make().map(Some)
        }
    }
}

unsafe fn scatterv<N: Whole, D: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcounts: *const N,
    displs: *const D,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, types, site) = (call.process.comm(comm)?, &call.process.types, *call.site);
    let (root, n) = (root_of(&comm, root)?, comm.engine.partners().len());
    let parts = match root {
        // SAFETY: the root gives arrays of so many.
        Root::Here => Some(unsafe {
            let at = sendbuf.cast_mut();
            targets(types, at, (sendcounts, displs), sendtype, n)?
        }),
        _ => None,
    };
    let sources = parts.map(|parts| parts.iter().map(Target::as_source).collect::<Vec<Source>>());
    let target =
        own_room(&comm, root, recvbuf, || Target::of(types, recvbuf, recvcount, recvtype))?;
    operation(move || {
        let (comm, sources, target) = (Rc::clone(&comm), sources.clone(), target.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::scatter(&comm, root, sources, target, site).await;
                }
                let collective = Collective::begin(&comm.engine, site);
                let me = numbers::index(comm.engine.rank);
                let data = sources.as_deref().map(|sources| datas(sources)).transpose()?;
                let ins = data.as_ref().map(|data| data.iter().map(input).collect::<Vec<In>>());
                let at = if let Root::There(at) = root { at } else { me };
                let Some(target) = target else {
                    let len = sources.as_ref().map_or(0, |sources| sources[me].len());
                    let mut own = zeroed(len)?;
                    let out = output_of(&mut own);
                    return Ok(collective.scatter_parts(at, ins.as_deref(), out).await?);
                };
                let room = target.room()?;
                collective.scatter_parts(at, ins.as_deref(), output(&room)).await?;
                put(&room);
                Ok(())
            }
        }
    })
}
