//! Operations among the neighbours of a topology (MPI-4.1 section 8.6).

use std::ffi::c_void;
use std::rc::Rc;

use vrt_abi::types::*;
use vrt_core::Site;
use vrt_core::comm::algorithms::Collective;
use vrt_core::comm::neighbors::{self, Neighbors};

use super::form::{Operation, forms, operation};
use super::parts::{Source, Target, input, output, put, targets, typed_targets};
use crate::call::Call;
use crate::fault::Outcome;
use crate::numbers::Whole;
use crate::object::Comm;
use crate::object::buffer::not_in_place;

forms! {
    MPI_Neighbor_allgather / MPI_Neighbor_allgather_c,
    MPI_Ineighbor_allgather / MPI_Ineighbor_allgather_c,
    MPI_Neighbor_allgather_init / MPI_Neighbor_allgather_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: N, recvtype: MPI_Datatype,
    ) = allgather<N>;
    MPI_Neighbor_allgatherv / MPI_Neighbor_allgatherv_c,
    MPI_Ineighbor_allgatherv / MPI_Ineighbor_allgatherv_c,
    MPI_Neighbor_allgatherv_init / MPI_Neighbor_allgatherv_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: *const N, displs: *const D, recvtype: MPI_Datatype,
    ) = allgatherv<N, D>;
    MPI_Neighbor_alltoall / MPI_Neighbor_alltoall_c,
    MPI_Ineighbor_alltoall / MPI_Ineighbor_alltoall_c,
    MPI_Neighbor_alltoall_init / MPI_Neighbor_alltoall_init_c(
        sendbuf: *const c_void, sendcount: N, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: N, recvtype: MPI_Datatype,
    ) = alltoall<N>;
    MPI_Neighbor_alltoallv / MPI_Neighbor_alltoallv_c,
    MPI_Ineighbor_alltoallv / MPI_Ineighbor_alltoallv_c,
    MPI_Neighbor_alltoallv_init / MPI_Neighbor_alltoallv_init_c(
        sendbuf: *const c_void, sendcounts: *const N, sdispls: *const D, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: *const N, rdispls: *const D, recvtype: MPI_Datatype,
    ) = alltoallv<N, D>;
    MPI_Neighbor_alltoallw / MPI_Neighbor_alltoallw_c,
    MPI_Ineighbor_alltoallw / MPI_Ineighbor_alltoallw_c,
    MPI_Neighbor_alltoallw_init / MPI_Neighbor_alltoallw_init_c(
        sendbuf: *const c_void, sendcounts: *const N, sdispls: *const MPI_Aint,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: *const N,
        rdispls: *const MPI_Aint, recvtypes: *const MPI_Datatype,
    ) = alltoallw<N>;
}

/// The neighbours of a rank.
///
/// # Errors
/// The communicator has no topology.
fn around(comm: &Comm) -> Outcome<Neighbors> {
    Ok(neighbors::neighbors(&comm.engine)?)
}

/// Sends a part to each neighbour and receives one from each.
fn exchange(
    comm: Rc<Comm>,
    site: Site,
    around: Neighbors,
    sources: Vec<Source>,
    targets: Vec<Target>,
) -> Outcome<Operation> {
    operation(move || {
        let (comm, around) = (Rc::clone(&comm), around.clone());
        let (sources, targets) = (sources.clone(), targets.clone());
        async move {
            // SAFETY: as the program promises.
            unsafe {
                let data: Vec<_> =
                    sources.iter().map(|source| source.read()).collect::<Outcome<_>>()?;
                let rooms: Vec<_> =
                    targets.iter().map(|target| target.room()).collect::<Outcome<_>>()?;
                let ins: Vec<_> = data.iter().map(input).collect();
                let outs: Vec<_> = rooms.iter().map(output).collect();
                let collective = Collective::begin(&comm.engine, site);
                neighbors::exchange(&collective, &around, &ins, &outs).await?;
                for (edge, room) in around.sources.iter().zip(&rooms) {
                    if edge.rank.is_some() {
                        put(room);
                    }
                }
            }
            Ok(())
        }
    })
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
    not_in_place(sendbuf)?;
    let comm = call.process.comm(comm)?;
    let around = around(&comm)?;
    let source = Source::of(&call.process.types, sendbuf, sendcount, sendtype)?;
    let target = Target::of(&call.process.types, recvbuf, recvcount, recvtype)?;
    let sources = vec![source; around.destinations.len()];
    let targets = target.parts(around.sources.len())?;
    exchange(comm, *call.site, around, sources, targets)
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
    not_in_place(sendbuf)?;
    let comm = call.process.comm(comm)?;
    let around = around(&comm)?;
    let source = Source::of(&call.process.types, sendbuf, sendcount, sendtype)?;
    let n = around.sources.len();
    // SAFETY: the program gives arrays of so many.
    let targets =
        unsafe { targets(&call.process.types, recvbuf, (recvcounts, displs), recvtype, n)? };
    let sources = vec![source; around.destinations.len()];
    exchange(comm, *call.site, around, sources, targets)
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
    not_in_place(sendbuf)?;
    let comm = call.process.comm(comm)?;
    let around = around(&comm)?;
    let source = Target::of(&call.process.types, sendbuf.cast_mut(), sendcount, sendtype)?;
    let target = Target::of(&call.process.types, recvbuf, recvcount, recvtype)?;
    let sources = source.parts(around.destinations.len())?;
    let sources = sources.iter().map(Target::as_source).collect();
    let targets = target.parts(around.sources.len())?;
    exchange(comm, *call.site, around, sources, targets)
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
    not_in_place(sendbuf)?;
    let comm = call.process.comm(comm)?;
    let around = around(&comm)?;
    let (to, from) = (around.destinations.len(), around.sources.len());
    let at = sendbuf.cast_mut();
    // SAFETY: the program gives arrays of so many.
    let (sources, targets) = unsafe {
        (
            targets(&call.process.types, at, (sendcounts, sdispls), sendtype, to)?,
            targets(&call.process.types, recvbuf, (recvcounts, rdispls), recvtype, from)?,
        )
    };
    let sources = sources.iter().map(Target::as_source).collect();
    exchange(comm, *call.site, around, sources, targets)
}

unsafe fn alltoallw<N: Whole>(
    call: Call,
    sendbuf: *const c_void,
    sendcounts: *const N,
    sdispls: *const MPI_Aint,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const N,
    rdispls: *const MPI_Aint,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome<Operation> {
    not_in_place(sendbuf)?;
    let comm = call.process.comm(comm)?;
    let around = around(&comm)?;
    let (to, from) = (around.destinations.len(), around.sources.len());
    let at = sendbuf.cast_mut();
    // SAFETY: the program gives arrays of so many.
    let (sources, targets) = unsafe {
        (
            typed_targets(&call.process.types, at, (sendcounts, sdispls), sendtypes, to)?,
            typed_targets(&call.process.types, recvbuf, (recvcounts, rdispls), recvtypes, from)?,
        )
    };
    let sources = sources.iter().map(Target::as_source).collect();
    exchange(comm, *call.site, around, sources, targets)
}
