//! Each collective operation from buffers to a future: checks, the bytes of the buffers, the
//! algorithm, and what has come put into its place.
//!
//! The blocking face drives these futures, async twins hand them out, immediate operations make
//! tasks of them, persistent ones make one for each start. All functions demand that the buffers
//! stay borrowed until the future is ready; what is wrong with the arguments is said at once.

use std::future::Future;

use crate::Count;
use crate::collective::fold::fold;
use crate::collective::operation::Operation;
use crate::datatype::wire::{self, Incoming, Outgoing};
use crate::datatype::{
    AsDatatype, DatatypeRef, OwnedDatatype, PartitionedBuffer, PartitionedBufferMut,
    UncommittedDatatype,
};
use crate::operation::OrRefuse;
use crate::operation::Site;
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::algorithms::{Collective, In, Out};
use vrt_core::comm::bytes::expect_type;

/// Checks that a buffer has the length that the other one asks for.
#[track_caller]
pub(crate) fn expect_bytes(what: &str, got: usize, expected: usize, site: Site) {
    if got != expected {
        let rank = vrt_core::pe::current_rank().unwrap_or_default();
        panic!("rank {rank} in {}: the {what} has {got} bytes, {expected} are expected", site);
    }
}

/// Checks that the result of a reduction is what the receive buffer has, or another integer.
#[inline]
#[track_caller]
pub(crate) fn expect_result(from: &Outgoing, to: &Incoming, site: Site) {
    expect_room(to.len, from.len, site);
    if !(from.signature.is_integer() && to.signature.is_integer()) {
        expect_type(from.signature, to.signature, from.len).or_refuse(site);
    }
}

/// Checks that the result of a reduction has room. The buffer may be longer: the contributions
/// say how long the result is.
#[track_caller]
pub(crate) fn expect_room(got: usize, needed: usize, site: Site) {
    if got < needed {
        expect_bytes("receive buffer", got, needed, site);
    }
}

/// Checks that what all contribute fits a buffer.
#[track_caller]
pub(crate) fn expect_gathered(comm: &CommunicatorHandle, from: usize, to: usize, site: Site) {
    expect_bytes("receive buffer", to, from * comm.size as usize, site);
}

/// Checks that buffers have an equal part for each rank.
#[track_caller]
pub(crate) fn expect_equal_parts(comm: &CommunicatorHandle, from: usize, to: usize, site: Site) {
    expect_bytes("receive buffer", to, from, site);
    let size = comm.size as usize;
    expect_bytes("send buffer", from, from / size * size, site);
}

/// Checks that a call for (or not for) the root is made by the right rank.
pub(crate) fn expect_root(comm: &CommunicatorHandle, at: i32, root: bool, site: Site) {
    let rank = comm.rank;
    if (rank == at) != root {
        let only = if root { "for the root only" } else { "for all ranks but the root" };
        panic!("{} is {only}: rank {rank} called it, the root is {at}", site);
    }
}

/// The elements' datatype.
pub(crate) fn datatype<B: AsDatatype + ?Sized>(buffer: &B) -> OwnedDatatype {
    buffer.as_datatype().datatype_ref().to_owned_type()
}

fn expect_parts(what: &str, counts: usize, comm: &CommunicatorHandle, site: Site) {
    if counts != comm.size as usize {
        panic!(
            "rank {} in {}: the {what} has {counts} parts, the communicator {} ranks",
            comm.rank, site, comm.size
        );
    }
}

fn place(displacement: Count, datatype: DatatypeRef<'_>) -> isize {
    displacement as isize * datatype.extent()
}

/// The bytes of each part of a buffer to send from, one for each rank of a communicator if given.
pub(crate) fn parts_out<B: PartitionedBuffer + ?Sized>(
    buffer: &B,
    comm: Option<&CommunicatorHandle>,
    site: Site,
) -> Vec<Outgoing> {
    if let Some(comm) = comm {
        expect_parts("send buffer", buffer.counts().len(), comm, site);
    }
    let (datatype, base) = (buffer.as_datatype(), buffer.pointer().cast::<u8>());
    let datatype = datatype.datatype_ref();
    let part = |(count, at): (&Count, &Count)| {
        let from = base.wrapping_offset(place(*at, datatype));
        // SAFETY: partitions check that their parts lie in their buffer.
        unsafe { wire::outgoing_elements(from, *count as usize, datatype) }
    };
    buffer.counts().iter().zip(buffer.displs()).map(part).collect()
}

/// Room for the bytes of each part of a buffer to receive into, one for each rank likewise.
pub(crate) fn parts_in<B: PartitionedBufferMut + ?Sized>(
    buffer: &mut B,
    comm: Option<&CommunicatorHandle>,
    site: Site,
) -> Vec<Incoming> {
    if let Some(comm) = comm {
        expect_parts("receive buffer", buffer.counts().len(), comm, site);
    }
    let (datatype, base) = (buffer.as_datatype(), buffer.pointer_mut().cast::<u8>());
    let datatype = datatype.datatype_ref();
    let part = |(count, at): (&Count, &Count)| {
        let to = base.wrapping_offset(place(*at, datatype));
        // SAFETY: partitions check that their parts lie in their buffer.
        unsafe { wire::incoming_elements(to, *count as usize, datatype, false) }
    };
    buffer.counts().iter().zip(buffer.displs()).map(part).collect()
}

fn ins(parts: &[Outgoing]) -> Vec<In> {
    parts.iter().map(Outgoing::input).collect()
}

fn outs(parts: &[Incoming]) -> Vec<Out> {
    parts.iter().map(Incoming::out).collect()
}

fn finish(parts: &mut [Incoming]) {
    parts.iter_mut().for_each(Incoming::finish_all);
}

pub(crate) fn barrier(comm: &CommunicatorHandle, site: Site) -> impl Future<Output = ()> + use<> {
    let collective = Collective::begin(comm, site);
    // SAFETY: no buffers.
    async move { unsafe { collective.barrier() }.await.or_refuse(site) }
}

pub(crate) fn broadcast(
    comm: &CommunicatorHandle,
    root: i32,
    mut data: Incoming,
    site: Site,
) -> impl Future<Output = ()> + use<> {
    let collective = Collective::begin(comm, site);
    async move {
        // SAFETY: as the caller promises.
        unsafe { collective.broadcast(root as usize, data.out()) }.await.or_refuse(site);
        data.finish_all();
    }
}

/// With a root, `to` is the root's alone.
pub(crate) fn gather(
    comm: &CommunicatorHandle,
    root: Option<i32>,
    from: Outgoing,
    mut to: Option<Incoming>,
    site: Site,
) -> impl Future<Output = ()> + use<> {
    if let Some(to) = &to {
        expect_gathered(comm, from.len, to.len, site);
        expect_type(from.signature, to.signature, from.len).or_refuse(site);
    }
    let collective = Collective::begin(comm, site);
    async move {
        let root = root.map(|root| root as usize);
        // SAFETY: as the caller promises.
        unsafe { collective.gather(root, from.input(), to.as_ref().map(Incoming::out)) }
            .await
            .or_refuse(site);
        to.iter_mut().for_each(Incoming::finish_all);
    }
}

pub(crate) fn gather_varcount(
    comm: &CommunicatorHandle,
    root: Option<i32>,
    from: Outgoing,
    mut to: Option<Vec<Incoming>>,
    site: Site,
) -> impl Future<Output = ()> + use<> {
    let collective = Collective::begin(comm, site);
    async move {
        let root = root.map(|root| root as usize);
        let parts = to.as_deref().map(outs);
        // SAFETY: as the caller promises.
        unsafe { collective.gather_parts(root, from.input(), parts.as_deref()) }
            .await
            .or_refuse(site);
        to.as_deref_mut().map(finish);
    }
}

pub(crate) fn scatter(
    comm: &CommunicatorHandle,
    root: i32,
    from: Option<Outgoing>,
    mut to: Incoming,
    site: Site,
) -> impl Future<Output = ()> + use<> {
    if let Some(from) = &from {
        expect_bytes("send buffer", from.len, to.len * comm.size as usize, site);
        expect_type(from.signature, to.signature, to.len).or_refuse(site);
    }
    let collective = Collective::begin(comm, site);
    async move {
        let from_in = from.as_ref().map(Outgoing::input);
        // SAFETY: as the caller promises.
        unsafe { collective.scatter(root as usize, from_in, to.out()) }.await.or_refuse(site);
        to.finish_all();
    }
}

pub(crate) fn scatter_varcount(
    comm: &CommunicatorHandle,
    root: i32,
    from: Option<Vec<Outgoing>>,
    mut to: Incoming,
    site: Site,
) -> impl Future<Output = ()> + use<> {
    let collective = Collective::begin(comm, site);
    async move {
        let parts = from.as_deref().map(ins);
        // SAFETY: as the caller promises.
        unsafe { collective.scatter_parts(root as usize, parts.as_deref(), to.out()) }
            .await
            .or_refuse(site);
        to.finish_all();
    }
}

pub(crate) fn all_to_all(
    comm: &CommunicatorHandle,
    from: Outgoing,
    mut to: Incoming,
    site: Site,
) -> impl Future<Output = ()> + use<> {
    expect_equal_parts(comm, from.len, to.len, site);
    expect_type(from.signature, to.signature, from.len).or_refuse(site);
    let collective = Collective::begin(comm, site);
    async move {
        // SAFETY: as the caller promises.
        unsafe { collective.all_to_all(from.input(), to.out()) }.await.or_refuse(site);
        to.finish_all();
    }
}

pub(crate) fn all_to_all_parts(
    comm: &CommunicatorHandle,
    from: Vec<Outgoing>,
    mut to: Vec<Incoming>,
    site: Site,
) -> impl Future<Output = ()> + use<> {
    expect_parts("send buffer", from.len(), comm, site);
    expect_parts("receive buffer", to.len(), comm, site);
    let collective = Collective::begin(comm, site);
    async move {
        let (input, out) = (ins(&from), outs(&to));
        // SAFETY: as the caller promises.
        unsafe { collective.all_to_all_parts(&input, &out) }.await.or_refuse(site);
        finish(&mut to);
    }
}

/// Without a root everybody gets the result; with one, `to` is the root's alone.
pub(crate) fn reduce<O: Operation>(
    comm: &CommunicatorHandle,
    root: Option<i32>,
    from: Outgoing,
    mut to: Option<Incoming>,
    datatype: OwnedDatatype,
    op: O,
    site: Site,
) -> impl Future<Output = ()> + use<O> {
    if let Some(to) = &to {
        expect_result(&from, to, site);
    }
    fold(op.function(), &datatype, site);
    let collective = Collective::begin(comm, site);
    async move {
        let fold = fold(op.function(), &datatype, site);
        let root = root.map(|root| root as usize);
        // SAFETY: as the caller promises.
        unsafe { collective.reduce(root, &fold, from.input(), to.as_ref().map(Incoming::out)) }
            .await
            .or_refuse(site);
        to.iter_mut().for_each(|to| to.finish(from.len));
    }
}

/// `lengths` are the bytes that each rank gets.
pub(crate) fn reduce_scatter<O: Operation>(
    comm: &CommunicatorHandle,
    from: Outgoing,
    mut to: Incoming,
    lengths: Vec<usize>,
    datatype: OwnedDatatype,
    op: O,
    site: Site,
) -> impl Future<Output = ()> + use<O> {
    expect_parts("list of counts", lengths.len(), comm, site);
    expect_bytes("receive buffer", to.len, lengths[comm.rank as usize], site);
    expect_bytes("send buffer", from.len, lengths.iter().sum(), site);
    if !(from.signature.is_integer() && to.signature.is_integer()) {
        expect_type(from.signature, to.signature, to.len).or_refuse(site);
    }
    fold(op.function(), &datatype, site);
    let collective = Collective::begin(comm, site);
    async move {
        let fold = fold(op.function(), &datatype, site);
        let (input, out) = (from.input(), to.out());
        // SAFETY: as the caller promises.
        unsafe { collective.reduce_scatter(&fold, input, &lengths, out) }.await.or_refuse(site);
        to.finish_all();
    }
}

pub(crate) fn scan<O: Operation>(
    comm: &CommunicatorHandle,
    from: Outgoing,
    mut to: Incoming,
    (datatype, op): (OwnedDatatype, O),
    exclusive: bool,
    site: Site,
) -> impl Future<Output = ()> + use<O> {
    expect_result(&from, &to, site);
    fold(op.function(), &datatype, site);
    let collective = Collective::begin(comm, site);
    let nothing_comes = exclusive && comm.rank == 0;
    async move {
        let fold = fold(op.function(), &datatype, site);
        // SAFETY: as the caller promises.
        unsafe { collective.scan(&fold, from.input(), to.out(), exclusive) }.await.or_refuse(site);
        if !nothing_comes {
            to.finish(from.len);
        }
    }
}
