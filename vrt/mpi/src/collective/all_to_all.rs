//! Operations that move data from all ranks to all: allgather, alltoall (MPI-4.1 sections 6.7 and 6.8).

use std::ffi::c_void;
use std::rc::Rc;

use vrt_abi::types::*;
use vrt_core::comm::algorithms::{Collective, Combined, In, Out};

use super::form::{Operation, combined, forms, operation};
use super::inter;
use super::parts::{
    Source, Target, datas, expect_equal, input, input_of, output, put, rooms, targets,
    typed_targets,
};

use crate::call::Call;
use crate::fault::Outcome;
use crate::numbers::{self, Whole};
use crate::object::Comm;
use crate::object::buffer::{is_in_place, not_in_place};

forms! {
    MPI_Allgather / MPI_Allgather_c, MPI_Iallgather / MPI_Iallgather_c,
    MPI_Allgather_init / MPI_Allgather_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: N, recvtype: MPI_Datatype,
    ) = allgather<N> now allgather_now;
    MPI_Allgatherv / MPI_Allgatherv_c, MPI_Iallgatherv / MPI_Iallgatherv_c,
    MPI_Allgatherv_init / MPI_Allgatherv_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const N, displs: *const D, recvtype: MPI_Datatype,
    ) = allgatherv<N, D>;
    MPI_Alltoall / MPI_Alltoall_c, MPI_Ialltoall / MPI_Ialltoall_c,
    MPI_Alltoall_init / MPI_Alltoall_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: N, recvtype: MPI_Datatype,
    ) = alltoall<N> now alltoall_now;
    MPI_Alltoallv / MPI_Alltoallv_c, MPI_Ialltoallv / MPI_Ialltoallv_c,
    MPI_Alltoallv_init / MPI_Alltoallv_init_c(
        sendbuf: *const c_void, sendcounts: *const N, sdispls: *const D, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: *const N, rdispls: *const D, recvtype: MPI_Datatype,
    ) = alltoallv<N, D>;
    MPI_Alltoallw / MPI_Alltoallw_c, MPI_Ialltoallw / MPI_Ialltoallw_c,
    MPI_Alltoallw_init / MPI_Alltoallw_init_c(
        sendbuf: *const c_void, sendcounts: *const N, sdispls: *const D,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const N,
        rdispls: *const D, recvtypes: *const MPI_Datatype,
    ) = alltoallw<N, D>;
}

#[inline(always)]
unsafe fn allgather_now<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    if comm.is_inter() || is_in_place(sendbuf) {
        return Ok(false);
    }
    let source = Source::of(&call.process.types, sendbuf, sendcount, sendtype)?;
    let target = Target::of(&call.process.types, recvbuf, recvcount, recvtype)?;
    let all = target.times(numbers::index(comm.engine.size))?;
    let (Some(data), Some(out)) = (source.direct(), all.direct()) else { return Ok(false) };
    expect_equal(data.1, target.len())?;
    // SAFETY: as the program promises.
    unsafe { combined(call, &comm, &Combined::gather(None, data, Some(out))) }
}

unsafe fn allgather<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(comm)?, *call.site);
    let target = Target::of(&call.process.types, recvbuf, recvcount, recvtype)?;
    let source = match is_in_place(sendbuf) && !comm.is_inter() {
        true => target.nth(numbers::index(comm.engine.rank))?.as_source(),
        false => {
            not_in_place(sendbuf)?;
            Source::of(&call.process.types, sendbuf, sendcount, sendtype)?
        }
    };
    let n = comm.engine.partners().len();
    if !comm.is_inter() {
        expect_equal(source.len(), target.len())?;
    }
    let whole = target.times(n)?;
    operation(move || {
        let (comm, source, target) = (Rc::clone(&comm), source.clone(), target.clone());
        let whole = whole.clone();
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::allgather(&comm, &source, &target.parts(n)?, site).await;
                }
                let data = source.copy()?;
                let room = whole.room()?;
                let collective = Collective::begin(&comm.engine, site);
                collective.gather(None, input_of(&data), Some(output(&room))).await?;
                put(&room);
                Ok(())
            }
        }
    })
}

unsafe fn allgatherv<N: Whole, D: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const N,
    displs: *const D,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(comm)?, *call.site);
    let n = comm.engine.partners().len();
    // SAFETY: the program gives arrays of so many.
    let parts =
        unsafe { targets(&call.process.types, recvbuf, (recvcounts, displs), recvtype, n)? };
    let source = match is_in_place(sendbuf) && !comm.is_inter() {
        true => parts[numbers::index(comm.engine.rank)].as_source(),
        false => {
            not_in_place(sendbuf)?;
            Source::of(&call.process.types, sendbuf, sendcount, sendtype)?
        }
    };
    operation(move || {
        let (comm, source, parts) = (Rc::clone(&comm), source.clone(), parts.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    return inter::allgather(&comm, &source, &parts, site).await;
                }
                let data = source.copy()?;
                let rooms = rooms(&parts)?;
                let outs: Vec<Out> = rooms.iter().map(output).collect();
                let collective = Collective::begin(&comm.engine, site);
                collective.gather_parts(None, input_of(&data), Some(&outs)).await?;
                rooms.iter().for_each(|room| put(room));
                Ok(())
            }
        }
    })
}

#[inline(always)]
unsafe fn alltoall_now<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    if comm.is_inter() || is_in_place(sendbuf) {
        return Ok(false);
    }
    let n = numbers::index(comm.engine.size);
    let source = Target::of(&call.process.types, sendbuf.cast_mut(), sendcount, sendtype)?;
    let target = Target::of(&call.process.types, recvbuf, recvcount, recvtype)?;
    expect_equal(source.len(), target.len())?;
    let (all, room) = (source.times(n)?.as_source(), target.times(n)?);
    let (Some(data), Some(out)) = (all.direct(), room.direct()) else { return Ok(false) };
    // SAFETY: as the program promises.
    unsafe { combined(call, &comm, &Combined::all_to_all(data, out)) }
}

unsafe fn alltoall<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(comm)?, *call.site);
    let n = comm.engine.partners().len();
    let target = Target::of(&call.process.types, recvbuf, recvcount, recvtype)?;
    let source = match is_in_place(sendbuf) && !comm.is_inter() {
        true => target.clone(),
        false => {
            not_in_place(sendbuf)?;
            Target::of(&call.process.types, sendbuf.cast_mut(), sendcount, sendtype)?
        }
    };
    if !comm.is_inter() {
        expect_equal(source.len(), target.len())?;
    }
    let is_copied = is_in_place(sendbuf);
    let (all, whole) = (source.times(n)?.as_source(), target.times(n)?);
    operation(move || {
        let (comm, source, target) = (Rc::clone(&comm), source.clone(), target.clone());
        let (all, whole) = (all.clone(), whole.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    let sources = source.parts(n)?;
                    let sources: Vec<Source> = sources.iter().map(Target::as_source).collect();
                    return inter::alltoall(&comm, &sources, &target.parts(n)?, site).await;
                }
                let mut data = all.read()?;
                if is_copied && data.packed.is_none() {
                    let copy = all.copy()?;
                    (data.at, data.packed) = (copy.as_ptr(), Some(copy));
                }
                let room = whole.room()?;
                let collective = Collective::begin(&comm.engine, site);
                collective.all_to_all(input(&data), output(&room)).await?;
                put(&room);
                Ok(())
            }
        }
    })
}

/// An alltoall with a separate part for each rank on both sides. If it is in place, the sent data is copied first.
fn alltoall_of(
    call: Call,
    comm: Rc<Comm>,
    sendbuf: *const c_void,
    sources: impl FnOnce() -> Outcome<Vec<Target>>,
    targets: Vec<Target>,
) -> Outcome<Operation> {
    let site = *call.site;
    let sources: Option<Vec<Source>> = match is_in_place(sendbuf) && !comm.is_inter() {
        true => None,
        false => {
            not_in_place(sendbuf)?;
            Some(sources()?.iter().map(Target::as_source).collect())
        }
    };
    operation(move || {
        let (comm, sources, targets) = (Rc::clone(&comm), sources.clone(), targets.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                if comm.is_inter() {
                    let sources = sources.unwrap_or_default();
                    return inter::alltoall(&comm, &sources, &targets, site).await;
                }
                let copies: Vec<Vec<u8>> = match &sources {
                    Some(_) => Vec::new(),
                    None => {
                        let copies = targets.iter().map(|target| target.as_source().copy());
                        copies.collect::<Outcome<_>>()?
                    }
                };
                let data = sources.as_deref().map(|sources| datas(sources)).transpose()?;
                let ins: Vec<In> = match &data {
                    Some(data) => data.iter().map(input).collect(),
                    None => copies.iter().map(|copy| input_of(copy)).collect(),
                };
                let rooms = rooms(&targets)?;
                let outs: Vec<Out> = rooms.iter().map(output).collect();
                let collective = Collective::begin(&comm.engine, site);
                collective.all_to_all_parts(&ins, &outs).await?;
                rooms.iter().for_each(|room| put(room));
                Ok(())
            }
        }
    })
}

unsafe fn alltoallv<N: Whole, D: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcounts: *const N,
    sdispls: *const D,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const N,
    rdispls: *const D,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let comm = call.process.comm(comm)?;
    let n = comm.engine.partners().len();
    // SAFETY: the program gives arrays of so many.
    unsafe {
        let room = targets(&call.process.types, recvbuf, (recvcounts, rdispls), recvtype, n)?;
        let at = sendbuf.cast_mut();
        let sources = || targets(&call.process.types, at, (sendcounts, sdispls), sendtype, n);
        alltoall_of(call, comm, sendbuf, sources, room)
    }
}

unsafe fn alltoallw<N: Whole, D: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcounts: *const N,
    sdispls: *const D,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const N,
    rdispls: *const D,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    let comm = call.process.comm(comm)?;
    let n = comm.engine.partners().len();
    // SAFETY: the program gives arrays of so many.
    unsafe {
        let room =
            typed_targets(&call.process.types, recvbuf, (recvcounts, rdispls), recvtypes, n)?;
        let at = sendbuf.cast_mut();
        let sources =
            || typed_targets(&call.process.types, at, (sendcounts, sdispls), sendtypes, n);
        alltoall_of(call, comm, sendbuf, sources, room)
    }
}
