//! Collective operations among neighbours (MPI-4.1 section 8.6).
//!
//! Messages go straight from rank to rank: all receives first, then all sends, then all are
//! awaited. Where a neighbour is missing (the edge of an open grid) nothing is sent, and that part
//! of the receive buffer stays as it is.

use crate::collective::start::{expect_bytes, parts_in, parts_out};
use crate::datatype::wire::{incoming_filled, outgoing};
use crate::datatype::{
    Buffer, BufferMut, Partitioned, PartitionedBuffer, PartitionedBufferMut, wire,
};
use crate::operation::Error;
use crate::operation::OrRefuse;
use crate::operation::site;
use crate::operation::try_block_on;
use crate::operation::{Pending, Site};
use crate::request::{Request, Scope, immediate};
use crate::topology::Communicator;
use vrt_core::comm::algorithms::{Collective, In, Out};
use vrt_core::comm::shape::Neighbors;
use vrt_core::comm::{CommunicatorHandle, shape};
use vrt_core::pe::{self, Started};

/// Collective operations of a communicator whose ranks are a grid or a graph: with the neighbours,
/// in their order (of a grid: for each dimension the one below, then the one above).
///
/// # Panics
/// All of them: when the communicator has no neighbourhood, or a buffer does not have a part for
/// each neighbour.
pub trait NeighborCollectives: Communicator {
    /// Sends the same to all neighbours, and receives from each.
    #[track_caller]
    fn neighbor_all_gather_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("neighbor_all_gather_into");
        let (neighbors, from) = (of(self.as_handle(), site), outgoing(sendbuf));
        let mut to = incoming_filled(recvbuf);
        let n = neighbors.sources.len();
        expect_bytes("receive buffer", to.len, from.len * n, site);
        let ins = vec![from.input(); neighbors.destinations.len()];
        run(self.as_handle(), neighbors, ins, to.out().parts(n), site);
        to.finish_all();
    }

    /// [`neighbor_all_gather_into`](Self::neighbor_all_gather_into), as a request.
    #[track_caller]
    fn immediate_neighbor_all_gather_into<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_neighbor_all_gather_into");
        let (neighbors, from) = (of(self.as_handle(), site), outgoing(sendbuf));
        let to = incoming_filled(recvbuf);
        let n = neighbors.sources.len();
        expect_bytes("receive buffer", to.len, from.len * n, site);
        let ins = vec![from.input(); neighbors.destinations.len()];
        let outs = to.out().parts(n);
        let future = begin(self.as_handle(), neighbors, (vec![from], ins), (vec![to], outs), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Sends the same to all neighbours, and receives from each, of different lengths.
    #[track_caller]
    fn neighbor_all_gather_varcount_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: Buffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("neighbor_all_gather_varcount_into");
        let (neighbors, from) = (of(self.as_handle(), site), outgoing(sendbuf));
        let mut to = parts_for(recvbuf, neighbors.sources.len(), site);
        let ins = vec![from.input(); neighbors.destinations.len()];
        let outs = to.iter().map(wire::Incoming::out).collect();
        run(self.as_handle(), neighbors, ins, outs, site);
        to.iter_mut().for_each(wire::Incoming::finish_all);
    }

    /// [`neighbor_all_gather_varcount_into`](Self::neighbor_all_gather_varcount_into), as a
    /// request.
    #[track_caller]
    fn immediate_neighbor_all_gather_varcount_into<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + PartitionedBufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_neighbor_all_gather_varcount_into");
        let (neighbors, from) = (of(self.as_handle(), site), outgoing(sendbuf));
        let to = parts_for(recvbuf, neighbors.sources.len(), site);
        let ins = vec![from.input(); neighbors.destinations.len()];
        let outs = to.iter().map(wire::Incoming::out).collect();
        let future = begin(self.as_handle(), neighbors, (vec![from], ins), (to, outs), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Sends a part to each neighbour, and receives one from each.
    #[track_caller]
    fn neighbor_all_to_all_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("neighbor_all_to_all_into");
        let (neighbors, from) = (of(self.as_handle(), site), outgoing(sendbuf));
        let mut to = incoming_filled(recvbuf);
        let (ins, outs) = equal_parts(&neighbors, from.input(), to.out(), site);
        run(self.as_handle(), neighbors, ins, outs, site);
        to.finish_all();
    }

    /// [`neighbor_all_to_all_into`](Self::neighbor_all_to_all_into), as a request.
    #[track_caller]
    fn immediate_neighbor_all_to_all_into<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_neighbor_all_to_all_into");
        let (neighbors, from) = (of(self.as_handle(), site), outgoing(sendbuf));
        let to = incoming_filled(recvbuf);
        let (ins, outs) = equal_parts(&neighbors, from.input(), to.out(), site);
        let future = begin(self.as_handle(), neighbors, (vec![from], ins), (vec![to], outs), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Sends a part to each neighbour, and receives one from each, of different lengths.
    #[track_caller]
    fn neighbor_all_to_all_varcount_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: PartitionedBuffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("neighbor_all_to_all_varcount_into");
        let neighbors = of(self.as_handle(), site);
        expect_count("send", sendbuf, neighbors.destinations.len(), site);
        let from = parts_out(sendbuf, None, site);
        let mut to = parts_for(recvbuf, neighbors.sources.len(), site);
        let ins = from.iter().map(wire::Outgoing::input).collect();
        let outs = to.iter().map(wire::Incoming::out).collect();
        run(self.as_handle(), neighbors, ins, outs, site);
        to.iter_mut().for_each(wire::Incoming::finish_all);
    }

    /// [`neighbor_all_to_all_varcount_into`](Self::neighbor_all_to_all_varcount_into), as a
    /// request.
    #[track_caller]
    fn immediate_neighbor_all_to_all_varcount_into<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + PartitionedBuffer + ?Sized,
        R: 'a + PartitionedBufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_neighbor_all_to_all_varcount_into");
        let neighbors = of(self.as_handle(), site);
        expect_count("send", sendbuf, neighbors.destinations.len(), site);
        let from = parts_out(sendbuf, None, site);
        let to = parts_for(recvbuf, neighbors.sources.len(), site);
        let ins = from.iter().map(wire::Outgoing::input).collect();
        let outs = to.iter().map(wire::Incoming::out).collect();
        let future = begin(self.as_handle(), neighbors, (from, ins), (to, outs), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }
}

impl<C: Communicator + ?Sized> NeighborCollectives for C {}

fn of(comm: &CommunicatorHandle, site: Site) -> Neighbors {
    shape::neighbors(comm).unwrap_or_else(|| {
        panic!("rank {} in {}: the communicator is no grid and no graph", comm.rank, site)
    })
}

fn expect_count<P: Partitioned + ?Sized>(what: &str, parts: &P, neighbors: usize, site: Site) {
    if parts.counts().len() != neighbors {
        panic!(
            "{}: the {what} buffer has {} parts for {neighbors} neighbours",
            site,
            parts.counts().len()
        );
    }
}

fn parts_for<R>(recvbuf: &mut R, neighbors: usize, site: Site) -> Vec<wire::Incoming>
where
    R: PartitionedBufferMut + ?Sized,
{
    expect_count("receive", recvbuf, neighbors, site);
    parts_in(recvbuf, None, site)
}

fn equal_parts(neighbors: &Neighbors, from: In, to: Out, site: Site) -> (Vec<In>, Vec<Out>) {
    let (sources, destinations) = (neighbors.sources.len(), neighbors.destinations.len());
    for (what, len, parts) in [("receive", to.1, sources), ("send", from.1, destinations)] {
        if parts > 0 && len % parts != 0 {
            panic!(
                "{}: the {what} buffer has {len} bytes, no multiple of {parts} neighbours",
                site
            );
        }
    }
    (from.parts(destinations), to.parts(sources))
}

fn run(comm: &CommunicatorHandle, neighbors: Neighbors, ins: Vec<In>, outs: Vec<Out>, site: Site) {
    let collective = Collective::begin(comm, site);
    // SAFETY: the buffers are borrowed for the blocking call.
    let exchange = unsafe { exchange(&collective, &neighbors, &ins, &outs, site) };
    try_block_on(exchange, site);
}

/// The operation of a request, which keeps the buffers' bytes and puts what came into its place.
fn begin(
    comm: &CommunicatorHandle,
    neighbors: Neighbors,
    (from, ins): (Vec<wire::Outgoing>, Vec<In>),
    (mut to, outs): (Vec<wire::Incoming>, Vec<Out>),
    site: Site,
) -> impl Future<Output = ()> + use<> {
    let collective = Collective::begin(comm, site);
    async move {
        let _sent = from;
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { exchange(&collective, &neighbors, &ins, &outs, site) }.await.or_refuse(site);
        to.iter_mut().for_each(wire::Incoming::finish_all);
    }
}

/// # Safety
/// The buffers are valid until the future is ready.
async unsafe fn exchange(
    collective: &Collective,
    neighbors: &Neighbors,
    ins: &[In],
    outs: &[Out],
    site: Site,
) -> Result<(), Error> {
    collective.number();
    let mut receiving = Vec::with_capacity(outs.len());
    for (edge, out) in neighbors.sources.iter().zip(outs) {
        let Some(from) = edge.rank else { continue };
        let pattern = collective.pattern(edge.label, from as usize);
        // SAFETY: as the caller promises.
        let started = pe::with(|pe| unsafe { pe.engine.receive(pattern, out.room()) });
        receiving.push((from as usize, out.1, wait(started, site)));
    }
    let mut sending = Vec::with_capacity(ins.len());
    for (edge, data) in neighbors.destinations.iter().zip(ins) {
        let Some(to) = edge.rank else { continue };
        let message = collective.outbound(edge.label, to as usize, *data);
        // SAFETY: as the caller promises.
        sending.push(wait(pe::with(|pe| unsafe { pe.engine.send(&message) }), site));
    }
    for (from, len, receive) in receiving {
        let outcome = match receive {
            Ok(outcome) => outcome,
            Err(pending) => pending.await?,
        };
        collective.check_came(&outcome, len, from)?;
    }
    for pending in sending.into_iter().filter_map(Result::err) {
        pending.await?;
    }
    Ok(())
}

fn wait(started: Started, site: Site) -> Result<pe::Completion, Pending> {
    match started {
        Started::Done(outcome) => Ok(outcome),
        Started::Pending(request, _) => Err(Pending::new(request, site, None)),
    }
}
