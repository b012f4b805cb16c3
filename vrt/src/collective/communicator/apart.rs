//! Collective operations without a root, to be awaited, and to be started again and again.
//!
//! Whoever has begun one may drop or forget it. So what it uses is a copy of the buffers; and as others
//! wait for this rank's part, one that has begun and is dropped goes on by itself, with a result that
//! nobody sees.
//!
//! A persistent operation (MPI-4.1 section 6.13) has its arguments once, then any number of starts. All
//! ranks make them in the same order, and start them in the same order.

use std::future::Future;

use crate::Count;
use crate::collective::call::Call;
use crate::collective::moves::{AllToAll, AllToAllVarcount, Barrier, Gather, GatherVarcount};
use crate::collective::operation::Operation;
use crate::collective::reductions::{Reduce, ReduceScatter, Scan};
use crate::datatype::{
    Buffer, BufferMut, DynBuffer, DynBufferMut, PartitionedBuffer, PartitionedBufferMut,
};
use crate::operation::site;
use crate::request::PersistentRequest;
use crate::topology::Communicator;

/// Async twins of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (me, mut sum, mut all) = (world.rank(), 0, [0; 3]);
///     vrt::block_on(async {
///         // Two operations at the same time: all ranks begin them in the same order.
///         tokio::join!(
///             world.all_reduce_into_async(&me, &mut sum, SystemOperation::sum()),
///             world.all_gather_into_async(&me, &mut all),
///         );
///     });
///     assert_eq!((sum, all), (3, [0, 1, 2]));
/// });
/// ```
pub trait AsyncCollectives: Communicator {
    /// Waits until all ranks have come here.
    #[track_caller]
    fn barrier_async(&self) -> impl Future<Output = ()> {
        Call::new(self.as_handle(), site!("barrier_async"), Barrier, (), ()).into_future()
    }

    /// Gives every rank the contributions of all, in rank order.
    ///
    /// # Panics
    /// When the receive buffer is not as long as all contributions.
    #[track_caller]
    fn all_gather_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("all_gather_into_async");
        Call::new(self.as_handle(), site, Gather { root: None }, sendbuf, recvbuf).into_future()
    }

    /// Gives every rank the contributions of all, of different lengths.
    ///
    /// # Panics
    /// When there is not one part for each rank, or a contribution is not as long as its part.
    #[track_caller]
    fn all_gather_varcount_into_async<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("all_gather_varcount_into_async");
        Call::new(self.as_handle(), site, GatherVarcount { root: None }, sendbuf, recvbuf)
            .into_future()
    }

    /// Sends a part to each rank and receives one from each.
    ///
    /// # Panics
    /// When the buffers are not equally long and a multiple of the number of ranks.
    #[track_caller]
    fn all_to_all_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("all_to_all_into_async");
        Call::new(self.as_handle(), site, AllToAll, sendbuf, recvbuf).into_future()
    }

    /// Sends a part to each rank and receives one from each, of different lengths.
    ///
    /// # Panics
    /// When there is not one part for each rank, or a part is not as long as its place.
    #[track_caller]
    fn all_to_all_varcount_into_async<
        S: PartitionedBuffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    >(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("all_to_all_varcount_into_async");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbuf, recvbuf).into_future()
    }

    /// Sends a buffer to each rank and receives one from each, each of its own datatype.
    ///
    /// # Panics
    /// When there is not one buffer for each rank, or one is not as long as its place.
    #[track_caller]
    fn all_to_all_buffers_into_async(
        &self,
        sendbufs: &[DynBuffer<'_>],
        recvbufs: &mut [DynBufferMut<'_>],
    ) -> impl Future<Output = ()> {
        let site = site!("all_to_all_buffers_into_async");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbufs, recvbufs).into_future()
    }

    /// Folds the contributions of all ranks and gives every rank the result.
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for their elements.
    #[track_caller]
    fn all_reduce_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation + 'static>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("all_reduce_into_async");
        Call::new(self.as_handle(), site, Reduce { root: None, op }, sendbuf, recvbuf).into_future()
    }

    /// Folds the contributions of all ranks and gives each rank an equal part of the result.
    ///
    /// # Panics
    /// When the send buffer is not as long as all parts, or the operation is not defined for the elements.
    #[track_caller]
    fn reduce_scatter_block_into_async<
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + 'static,
    >(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("reduce_scatter_block_into_async");
        Call::new(self.as_handle(), site, ReduceScatter { counts: None, op }, sendbuf, recvbuf)
            .into_future()
    }

    /// Folds the contributions of all ranks and gives rank `i` a part of `counts[i]` elements of
    /// the result.
    ///
    /// # Panics
    /// When there is not one count for each rank, the buffers do not have the lengths that the
    /// counts say, or the operation is not defined for the elements.
    #[track_caller]
    fn reduce_scatter_into_async<
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + 'static,
    >(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        counts: &[Count],
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("reduce_scatter_into_async");
        Call::new(
            self.as_handle(),
            site,
            ReduceScatter { counts: Some(counts.to_vec()), op },
            sendbuf,
            recvbuf,
        )
        .into_future()
    }

    /// Folds the contributions of the ranks up to this one.
    ///
    /// # Panics
    /// As [`all_reduce_into_async`](Self::all_reduce_into_async).
    #[track_caller]
    fn scan_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation + 'static>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("scan_into_async");
        Call::new(self.as_handle(), site, Scan { exclusive: false, op }, sendbuf, recvbuf)
            .into_future()
    }

    /// Folds the contributions of the ranks before this one; rank 0's buffer stays as it is.
    ///
    /// # Panics
    /// As [`all_reduce_into_async`](Self::all_reduce_into_async).
    #[track_caller]
    fn exclusive_scan_into_async<
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + 'static,
    >(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("exclusive_scan_into_async");
        Call::new(self.as_handle(), site, Scan { exclusive: true, op }, sendbuf, recvbuf)
            .into_future()
    }
}

impl<C: Communicator + ?Sized> AsyncCollectives for C {}

/// Persistent forms of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (mut mine, mut largest) = (0, 0);
///     let max = SystemOperation::max();
///     let mut reduce = world.persistent_all_reduce_into(&mut mine, &mut largest, max);
///     for step in 1..4 {
///         **reduce.send_data() = step * world.rank();
///         reduce.start();
///         reduce.wait();
///         assert_eq!(**reduce.receive_data(), step * 2);
///     }
/// });
/// ```
pub trait PersistentCollectives: Communicator {
    /// A barrier to be started again and again.
    #[track_caller]
    fn persistent_barrier(&self) -> PersistentRequest<'static, (), ()> {
        Call::new(self.as_handle(), site!("persistent_barrier"), Barrier, (), ()).persistent()
    }

    /// An `all_gather_into` to be started again and again.
    #[track_caller]
    fn persistent_all_gather_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("persistent_all_gather_into");
        Call::new(self.as_handle(), site, Gather { root: None }, sendbuf, recvbuf).persistent()
    }

    /// An `all_gather_varcount_into` to be started again and again.
    #[track_caller]
    fn persistent_all_gather_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("persistent_all_gather_varcount_into");
        Call::new(self.as_handle(), site, GatherVarcount { root: None }, sendbuf, recvbuf)
            .persistent()
    }

    /// An `all_to_all_into` to be started again and again.
    #[track_caller]
    fn persistent_all_to_all_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("persistent_all_to_all_into");
        Call::new(self.as_handle(), site, AllToAll, sendbuf, recvbuf).persistent()
    }

    /// An `all_to_all_varcount_into` to be started again and again.
    #[track_caller]
    fn persistent_all_to_all_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: PartitionedBuffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("persistent_all_to_all_varcount_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbuf, recvbuf).persistent()
    }

    /// An `all_to_all_buffers_into` to be started again and again.
    #[track_caller]
    fn persistent_all_to_all_buffers_into<'a, 's, 'r>(
        &self,
        sendbufs: &'a mut [DynBuffer<'s>],
        recvbufs: &'a mut [DynBufferMut<'r>],
    ) -> PersistentRequest<'a, &'a mut [DynBuffer<'s>], &'a mut [DynBufferMut<'r>]> {
        let site = site!("persistent_all_to_all_buffers_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbufs, recvbufs).persistent()
    }

    /// An `all_reduce_into` to be started again and again.
    #[track_caller]
    fn persistent_all_reduce_into<'a, S, R, O>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
        op: O,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + Clone + 'static,
    {
        let site = site!("persistent_all_reduce_into");
        Call::new(self.as_handle(), site, Reduce { root: None, op }, sendbuf, recvbuf).persistent()
    }

    /// A `reduce_scatter_block_into` to be started again and again.
    #[track_caller]
    fn persistent_reduce_scatter_block_into<'a, S, R, O>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
        op: O,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + Clone + 'static,
    {
        let site = site!("persistent_reduce_scatter_block_into");
        Call::new(self.as_handle(), site, ReduceScatter { counts: None, op }, sendbuf, recvbuf)
            .persistent()
    }

    /// A `reduce_scatter_into` to be started again and again.
    #[track_caller]
    fn persistent_reduce_scatter_into<'a, S, R, O>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
        counts: &[Count],
        op: O,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + Clone + 'static,
    {
        let site = site!("persistent_reduce_scatter_into");
        Call::new(
            self.as_handle(),
            site,
            ReduceScatter { counts: Some(counts.to_vec()), op },
            sendbuf,
            recvbuf,
        )
        .persistent()
    }

    /// A `scan_into` to be started again and again.
    #[track_caller]
    fn persistent_scan_into<'a, S, R, O>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
        op: O,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + Clone + 'static,
    {
        let site = site!("persistent_scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: false, op }, sendbuf, recvbuf)
            .persistent()
    }

    /// An `exclusive_scan_into` to be started again and again.
    #[track_caller]
    fn persistent_exclusive_scan_into<'a, S, R, O>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
        op: O,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + Clone + 'static,
    {
        let site = site!("persistent_exclusive_scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: true, op }, sendbuf, recvbuf)
            .persistent()
    }
}

impl<C: Communicator + ?Sized> PersistentCollectives for C {}
