//! Collective operations among neighbours (MPI-4.1 section 8.6).
//!
//! Messages go straight from rank to rank: all receives first, then all sends, then all are
//! awaited. Where a neighbour is missing (the edge of an open grid) nothing is sent, and that part
//! of the receive buffer stays as it is.

use crate::collective::buffers::{Given, GivenMut};
use crate::collective::call::{Call, Description, Plan, Running, Takes};
use crate::collective::caller::Caller;
use crate::collective::checks::expect_bytes;
use crate::collective::moves::{ins, outs};
use crate::datatype::wire::{Incoming, Outgoing};
use crate::datatype::{Buffer, BufferMut, PartitionedBuffer, PartitionedBufferMut};
use crate::error::{At, ErrorKind, OrRefuse};
use crate::operation::Site;
use crate::operation::site;
use crate::request::{PersistentRequest, Request, Scope};
use crate::topology::Communicator;
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::neighbors::{self, Neighbors};

/// Collective operations of a communicator whose ranks are a grid or a graph: with the neighbours,
/// in their order (of a grid: for each dimension the one below, then the one above).
///
/// # Panics
/// All of them: when the communicator has no neighbourhood, or a buffer does not have a part for
/// each neighbour.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(4, |world| {
///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
///     let (me, mut beside) = (ring.rank(), [0; 2]);
///     ring.neighbor_all_gather_into(&me, &mut beside);
///     assert_eq!(beside, [(me + 3) % 4, (me + 1) % 4]);
/// });
/// ```
pub trait NeighborCollectives: Communicator {
    /// Sends the same to all neighbours, and receives from each.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // The ends of an open line have one neighbour; the other place stays as it is.
    ///     let line = world.create_cartesian_communicator(&[3], &[false], false).unwrap();
    ///     let mut beside = [-1; 2];
    ///     line.neighbor_all_gather_into(&line.rank(), &mut beside);
    ///     assert_eq!(beside, [[-1, 1], [0, 2], [1, -1]][line.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_gather_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("neighbor_all_gather_into");
        call(self.as_handle(), site, NeighborAllGather, sendbuf, recvbuf).block();
    }

    /// [`neighbor_all_gather_into`](Self::neighbor_all_gather_into), as a request.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
    ///     let (me, mut beside) = (ring.rank(), [0; 2]);
    ///     vrt::request::scope(|scope| {
    ///         let gather = ring.immediate_neighbor_all_gather_into(scope, &me, &mut beside);
    ///         // Here a rank computes what does not depend on its neighbours.
    ///         gather.wait();
    ///     });
    ///     assert_eq!(beside, [(me + 3) % 4, (me + 1) % 4]);
    /// });
    /// ```
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
        call(self.as_handle(), site, NeighborAllGather, sendbuf, recvbuf).immediate(scope)
    }

    /// [`neighbor_all_gather_into`](Self::neighbor_all_gather_into), to be awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
    ///     let (me, mut beside) = (ring.rank(), [0; 2]);
    ///     vrt::block_on(ring.neighbor_all_gather_into_async(&me, &mut beside));
    ///     assert_eq!(beside, [(me + 3) % 4, (me + 1) % 4]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_gather_into_async<S, R>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("neighbor_all_gather_into_async");
        call(self.as_handle(), site, NeighborAllGather, sendbuf, recvbuf).into_future()
    }

    /// [`neighbor_all_gather_into`](Self::neighbor_all_gather_into), to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
    ///     let (mut mine, mut beside) = (0, [0; 2]);
    ///     let mut gather = ring.persistent_neighbor_all_gather_into(&mut mine, &mut beside);
    ///     for step in 0..3 {
    ///         **gather.send_data() = step;
    ///         gather.start();
    ///         gather.wait();
    ///         assert_eq!(**gather.receive_data(), [step; 2]);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn persistent_neighbor_all_gather_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("persistent_neighbor_all_gather_into");
        call(self.as_handle(), site, NeighborAllGather, sendbuf, recvbuf).persistent()
    }

    /// Sends the same to all neighbours, and receives from each, of different lengths.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), 1 - world.rank());
    ///     let pair = world.create_distributed_graph_adjacent(&[other], &[other], false);
    ///     // Rank 0 sends one value, rank 1 two.
    ///     let (mine, mut theirs) = (vec![me; me as usize + 1], vec![-1; other as usize + 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [other + 1], [0]);
    ///     pair.neighbor_all_gather_varcount_into(&mine, &mut room);
    ///     assert_eq!(theirs, vec![other; other as usize + 1]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_gather_varcount_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: Buffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("neighbor_all_gather_varcount_into");
        call(self.as_handle(), site, NeighborAllGatherVarcount, sendbuf, recvbuf).block();
    }

    /// [`neighbor_all_gather_varcount_into`](Self::neighbor_all_gather_varcount_into), as a
    /// request.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), 1 - world.rank());
    ///     let pair = world.create_distributed_graph_adjacent(&[other], &[other], false);
    ///     // Rank 0 sends one value, rank 1 two.
    ///     let (mine, mut theirs) = (vec![me; me as usize + 1], vec![-1; other as usize + 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [other + 1], [0]);
    ///     vrt::request::scope(|scope| {
    ///         pair.immediate_neighbor_all_gather_varcount_into(scope, &mine, &mut room).wait();
    ///     });
    ///     assert_eq!(theirs, vec![other; other as usize + 1]);
    /// });
    /// ```
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
        call(self.as_handle(), site, NeighborAllGatherVarcount, sendbuf, recvbuf).immediate(scope)
    }

    /// [`neighbor_all_gather_varcount_into`](Self::neighbor_all_gather_varcount_into), to be awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), 1 - world.rank());
    ///     let pair = world.create_distributed_graph_adjacent(&[other], &[other], false);
    ///     // Rank 0 sends one value, rank 1 two.
    ///     let (mine, mut theirs) = (vec![me; me as usize + 1], vec![-1; other as usize + 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [other + 1], [0]);
    ///     vrt::block_on(pair.neighbor_all_gather_varcount_into_async(&mine, &mut room));
    ///     assert_eq!(theirs, vec![other; other as usize + 1]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_gather_varcount_into_async<S, R>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()>
    where
        S: Buffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("neighbor_all_gather_varcount_into_async");
        call(self.as_handle(), site, NeighborAllGatherVarcount, sendbuf, recvbuf).into_future()
    }

    /// [`neighbor_all_gather_varcount_into`](Self::neighbor_all_gather_varcount_into), to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, other) = (world.rank(), 1 - world.rank());
    ///     let pair = world.create_distributed_graph_adjacent(&[other], &[other], false);
    ///     // Rank 0 sends one value, rank 1 two.
    ///     let (mut mine, mut theirs) = (vec![me; me as usize + 1], vec![-1; other as usize + 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [other + 1], [0]);
    ///     let mut gather = pair.persistent_neighbor_all_gather_varcount_into(&mut mine, &mut room);
    ///     gather.start();
    ///     gather.wait();
    ///     drop(gather);
    ///     assert_eq!(theirs, vec![other; other as usize + 1]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_neighbor_all_gather_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("persistent_neighbor_all_gather_varcount_into");
        call(self.as_handle(), site, NeighborAllGatherVarcount, sendbuf, recvbuf).persistent()
    }

    /// Sends a part to each neighbour, and receives one from each.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
    ///     // One value for the left neighbour, one for the right one.
    ///     let me = ring.rank();
    ///     let (mine, mut theirs) = ([10 * me, 10 * me + 1], [0; 2]);
    ///     ring.neighbor_all_to_all_into(&mine, &mut theirs);
    ///     assert_eq!(theirs, [10 * ((me + 3) % 4) + 1, 10 * ((me + 1) % 4)]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_to_all_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("neighbor_all_to_all_into");
        call(self.as_handle(), site, NeighborAllToAll, sendbuf, recvbuf).block();
    }

    /// [`neighbor_all_to_all_into`](Self::neighbor_all_to_all_into), as a request.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
    ///     // One value for the left neighbour, one for the right one.
    ///     let me = ring.rank();
    ///     let (mine, mut theirs) = ([10 * me, 10 * me + 1], [0; 2]);
    ///     vrt::request::scope(|scope| {
    ///         ring.immediate_neighbor_all_to_all_into(scope, &mine, &mut theirs).wait();
    ///     });
    ///     assert_eq!(theirs, [10 * ((me + 3) % 4) + 1, 10 * ((me + 1) % 4)]);
    /// });
    /// ```
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
        call(self.as_handle(), site, NeighborAllToAll, sendbuf, recvbuf).immediate(scope)
    }

    /// [`neighbor_all_to_all_into`](Self::neighbor_all_to_all_into), to be awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
    ///     // One value for the left neighbour, one for the right one.
    ///     let me = ring.rank();
    ///     let (mine, mut theirs) = ([10 * me, 10 * me + 1], [0; 2]);
    ///     vrt::block_on(ring.neighbor_all_to_all_into_async(&mine, &mut theirs));
    ///     assert_eq!(theirs, [10 * ((me + 3) % 4) + 1, 10 * ((me + 1) % 4)]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_to_all_into_async<S, R>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("neighbor_all_to_all_into_async");
        call(self.as_handle(), site, NeighborAllToAll, sendbuf, recvbuf).into_future()
    }

    /// [`neighbor_all_to_all_into`](Self::neighbor_all_to_all_into), to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let ring = world.create_cartesian_communicator(&[4], &[true], false).unwrap();
    ///     // One value for the left neighbour, one for the right one.
    ///     let me = ring.rank();
    ///     let (mut mine, mut theirs) = ([10 * me, 10 * me + 1], [0; 2]);
    ///     let mut exchange = ring.persistent_neighbor_all_to_all_into(&mut mine, &mut theirs);
    ///     exchange.start();
    ///     exchange.wait();
    ///     assert_eq!(**exchange.receive_data(), [10 * ((me + 3) % 4) + 1, 10 * ((me + 1) % 4)]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_neighbor_all_to_all_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("persistent_neighbor_all_to_all_into");
        call(self.as_handle(), site, NeighborAllToAll, sendbuf, recvbuf).persistent()
    }

    /// Sends a part to each neighbour, and receives one from each, of different lengths.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{Partition, PartitionMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let ring = world.create_cartesian_communicator(&[3], &[true], false).unwrap();
    ///     let (left, right) = ((ring.rank() + 2) % 3, (ring.rank() + 1) % 3);
    ///     // One value for the left neighbour, two for the right one.
    ///     let (mine, mut theirs) = ([ring.rank(); 3], [-1; 3]);
    ///     let parts = Partition::new(&mine, [1, 2], [0, 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [2, 1], [0, 2]);
    ///     ring.neighbor_all_to_all_varcount_into(&parts, &mut room);
    ///     assert_eq!(theirs, [left, left, right]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_to_all_varcount_into<S, R>(&self, sendbuf: &S, recvbuf: &mut R)
    where
        S: PartitionedBuffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("neighbor_all_to_all_varcount_into");
        call(self.as_handle(), site, NeighborAllToAllVarcount, sendbuf, recvbuf).block();
    }

    /// [`neighbor_all_to_all_varcount_into`](Self::neighbor_all_to_all_varcount_into), as a
    /// request.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{Partition, PartitionMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let ring = world.create_cartesian_communicator(&[3], &[true], false).unwrap();
    ///     let (left, right) = ((ring.rank() + 2) % 3, (ring.rank() + 1) % 3);
    ///     // One value for the left neighbour, two for the right one.
    ///     let (mine, mut theirs) = ([ring.rank(); 3], [-1; 3]);
    ///     let parts = Partition::new(&mine, [1, 2], [0, 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [2, 1], [0, 2]);
    ///     vrt::request::scope(|scope| {
    ///         ring.immediate_neighbor_all_to_all_varcount_into(scope, &parts, &mut room).wait();
    ///     });
    ///     assert_eq!(theirs, [left, left, right]);
    /// });
    /// ```
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
        call(self.as_handle(), site, NeighborAllToAllVarcount, sendbuf, recvbuf).immediate(scope)
    }

    /// [`neighbor_all_to_all_varcount_into`](Self::neighbor_all_to_all_varcount_into), to be awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{Partition, PartitionMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let ring = world.create_cartesian_communicator(&[3], &[true], false).unwrap();
    ///     let (left, right) = ((ring.rank() + 2) % 3, (ring.rank() + 1) % 3);
    ///     // One value for the left neighbour, two for the right one.
    ///     let (mine, mut theirs) = ([ring.rank(); 3], [-1; 3]);
    ///     let parts = Partition::new(&mine, [1, 2], [0, 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [2, 1], [0, 2]);
    ///     vrt::block_on(ring.neighbor_all_to_all_varcount_into_async(&parts, &mut room));
    ///     assert_eq!(theirs, [left, left, right]);
    /// });
    /// ```
    #[track_caller]
    fn neighbor_all_to_all_varcount_into_async<S, R>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()>
    where
        S: PartitionedBuffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("neighbor_all_to_all_varcount_into_async");
        call(self.as_handle(), site, NeighborAllToAllVarcount, sendbuf, recvbuf).into_future()
    }

    /// [`neighbor_all_to_all_varcount_into`](Self::neighbor_all_to_all_varcount_into), to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{Partition, PartitionMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let ring = world.create_cartesian_communicator(&[3], &[true], false).unwrap();
    ///     let (left, right) = ((ring.rank() + 2) % 3, (ring.rank() + 1) % 3);
    ///     // One value for the left neighbour, two for the right one.
    ///     let (mine, mut theirs) = ([ring.rank(); 3], [-1; 3]);
    ///     let mut parts = Partition::new(&mine, [1, 2], [0, 1]);
    ///     let mut room = PartitionMut::new(&mut theirs, [2, 1], [0, 2]);
    ///     let mut exchange = ring.persistent_neighbor_all_to_all_varcount_into(&mut parts, &mut room);
    ///     exchange.start();
    ///     exchange.wait();
    ///     drop(exchange);
    ///     assert_eq!(theirs, [left, left, right]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_neighbor_all_to_all_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: PartitionedBuffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("persistent_neighbor_all_to_all_varcount_into");
        call(self.as_handle(), site, NeighborAllToAllVarcount, sendbuf, recvbuf).persistent()
    }
}

impl<C: Communicator + ?Sized> NeighborCollectives for C {}

/// A call among the neighbours that a communicator says.
fn call<D: Takes<S, R>, S: Given, R: GivenMut>(
    comm: &CommunicatorHandle,
    site: Site,
    description: fn(Neighbors) -> D,
    send: S,
    receive: R,
) -> Call<'_, D, S, R> {
    let neighbors = neighbors::neighbors(comm).at(site).or_refuse();
    Call::new(comm, site, description(neighbors), send, receive)
}

/// Checks that there is a part for each neighbour.
fn expect_neighbors(what: &'static str, parts: usize, neighbors: usize) -> Result<(), ErrorKind> {
    match parts == neighbors {
        true => Ok(()),
        false => Err(ErrorKind::NeighborParts { what, parts, neighbors }),
    }
}

/// Checks that there can be an equal part for each neighbour.
fn expect_divisible(what: &'static str, bytes: usize, neighbors: usize) -> Result<(), ErrorKind> {
    match neighbors == 0 || bytes.is_multiple_of(neighbors) {
        true => Ok(()),
        false => Err(ErrorKind::NotDivisible { what, bytes, neighbors }),
    }
}

/// The same to all neighbours.
#[derive(Clone)]
struct NeighborAllGather(Neighbors);

impl Description for NeighborAllGather {
    type From = Outgoing;
    type To = Incoming;

    const FILLED: bool = true;

    fn check(&self, _: &Caller<'_>, from: &Outgoing, to: &mut Incoming) -> Plan {
        expect_bytes("receive buffer", to.len, from.len * self.0.sources.len())?;
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Incoming,
    ) -> Result<(), ErrorKind> {
        let ins = vec![from.input(); self.0.destinations.len()];
        let outs = to.out().parts(self.0.sources.len());
        // SAFETY: as the caller promises.
        unsafe { neighbors::exchange(begun.collective, &self.0, &ins, &outs) }.await
    }
}

/// The same to all neighbours, from each as much as it sends.
#[derive(Clone)]
struct NeighborAllGatherVarcount(Neighbors);

impl Description for NeighborAllGatherVarcount {
    type From = Outgoing;
    type To = Vec<Incoming>;

    const FILLED: bool = true;

    fn check(&self, _: &Caller<'_>, _: &Outgoing, to: &mut Vec<Incoming>) -> Plan {
        expect_neighbors("receive buffer", to.len(), self.0.sources.len())?;
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Vec<Incoming>,
    ) -> Result<(), ErrorKind> {
        let ins = vec![from.input(); self.0.destinations.len()];
        let outs = outs(to);
        // SAFETY: as the caller promises.
        unsafe { neighbors::exchange(begun.collective, &self.0, &ins, &outs) }.await
    }
}

/// An equal part for each neighbour.
#[derive(Clone)]
struct NeighborAllToAll(Neighbors);

impl Description for NeighborAllToAll {
    type From = Outgoing;
    type To = Incoming;

    const FILLED: bool = true;

    fn check(&self, _: &Caller<'_>, from: &Outgoing, to: &mut Incoming) -> Plan {
        expect_divisible("receive buffer", to.len, self.0.sources.len())?;
        expect_divisible("send buffer", from.len, self.0.destinations.len())?;
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Outgoing,
        to: &Incoming,
    ) -> Result<(), ErrorKind> {
        let ins = from.input().parts(self.0.destinations.len());
        let outs = to.out().parts(self.0.sources.len());
        // SAFETY: as the caller promises.
        unsafe { neighbors::exchange(begun.collective, &self.0, &ins, &outs) }.await
    }
}

/// A part for each neighbour, of different lengths.
#[derive(Clone)]
struct NeighborAllToAllVarcount(Neighbors);

impl Description for NeighborAllToAllVarcount {
    type From = Vec<Outgoing>;
    type To = Vec<Incoming>;

    const FILLED: bool = true;

    fn check(&self, _: &Caller<'_>, from: &Vec<Outgoing>, to: &mut Vec<Incoming>) -> Plan {
        expect_neighbors("send buffer", from.len(), self.0.destinations.len())?;
        expect_neighbors("receive buffer", to.len(), self.0.sources.len())?;
        Ok(None)
    }

    async unsafe fn run(
        &self,
        begun: &Running<'_>,
        from: &Vec<Outgoing>,
        to: &Vec<Incoming>,
    ) -> Result<(), ErrorKind> {
        let (ins, outs) = (ins(from), outs(to));
        // SAFETY: as the caller promises.
        unsafe { neighbors::exchange(begun.collective, &self.0, &ins, &outs) }.await
    }
}
