//! Collective operations without a root, to be awaited.
//!
//! Whoever has begun one may drop or forget it. So what it uses is a copy of the buffers; and as others
//! wait for this rank's part, one that has begun and is dropped goes on by itself, with a result that
//! nobody sees.

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
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicI32, Ordering};
    ///
    /// use vrt::traits::*;
    ///
    /// let arrived = AtomicI32::new(0);
    /// vrt::run_local(4, |world| {
    ///     arrived.fetch_add(1, Ordering::Relaxed);
    ///     vrt::block_on(world.barrier_async());
    ///     assert_eq!(arrived.load(Ordering::Relaxed), world.size());
    /// });
    /// ```
    #[track_caller]
    fn barrier_async(&self) -> impl Future<Output = ()> {
        Call::new(self.as_handle(), site!("barrier_async"), Barrier, (), ()).into_future()
    }

    /// Gives every rank the contributions of all, in rank order.
    ///
    /// # Panics
    /// When the receive buffer is not as long as all contributions.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (mine, mut all) = ([world.rank(); 2], [0; 6]);
    ///     vrt::block_on(world.all_gather_into_async(&mine, &mut all));
    ///     assert_eq!(all, [0, 0, 1, 1, 2, 2]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` contributes `r` values.
    ///     let (mine, mut all) = (vec![world.rank(); world.rank() as usize], [0; 3]);
    ///     let mut parts = PartitionMut::new(&mut all, [0, 1, 2], [0, 0, 1]);
    ///     vrt::block_on(world.all_gather_varcount_into_async(&mine, &mut parts));
    ///     assert_eq!(all, [1, 2, 2]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Value `i` is for rank `i`.
    ///     let mine = [0, 1, 2].map(|to| 10 * world.rank() + to);
    ///     let mut theirs = [0; 3];
    ///     vrt::block_on(world.all_to_all_into_async(&mine, &mut theirs));
    ///     assert_eq!(theirs, [0, 1, 2].map(|from| 10 * from + world.rank()));
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{Partition, PartitionMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // Two values for the other rank, none for this one.
    ///     let me = world.rank();
    ///     let counts = if me == 0 { [0, 2] } else { [2, 0] };
    ///     let (mine, mut theirs) = ([me; 2], [-1; 2]);
    ///     let parts = Partition::new(&mine, counts, [0; 2]);
    ///     let mut room = PartitionMut::new(&mut theirs, counts, [0; 2]);
    ///     vrt::block_on(world.all_to_all_varcount_into_async(&parts, &mut room));
    ///     assert_eq!(theirs, [1 - me; 2]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{DynBuffer, DynBufferMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // A letter stays here, a number goes to the other rank.
    ///     let me = world.rank() as usize;
    ///     let (letter, number, mut same, mut theirs) = ([b'x'], [me as f64], [0u8], [0.0]);
    ///     let mut sent = [DynBuffer::new(&letter), DynBuffer::new(&number)];
    ///     let mut room = [DynBufferMut::new(&mut same), DynBufferMut::new(&mut theirs)];
    ///     sent.rotate_right(me);
    ///     room.rotate_right(me);
    ///     vrt::block_on(world.all_to_all_buffers_into_async(&sent, &mut room));
    ///     assert_eq!((same, theirs), (letter, [1.0 - me as f64]));
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let (me, mut largest) = (world.rank(), 0);
    ///     vrt::block_on(world.all_reduce_into_async(&me, &mut largest, SystemOperation::max()));
    ///     assert_eq!(largest, 3);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Sum `i` is for rank `i`.
    ///     let (mine, mut sum, op) = ([10, 20, 30], 0, SystemOperation::sum());
    ///     vrt::block_on(world.reduce_scatter_block_into_async(&mine, &mut sum, op));
    ///     assert_eq!(sum, [30, 60, 90][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // One of the sums is for rank 0, two are for rank 1.
    ///     let (mine, counts) = ([10, 20, 30], [1, 2]);
    ///     let mut sums = vec![0; counts[world.rank() as usize] as usize];
    ///     let op = SystemOperation::sum();
    ///     vrt::block_on(world.reduce_scatter_into_async(&mine, &mut sums, &counts, op));
    ///     assert_eq!(sums, if world.rank() == 0 { &[20][..] } else { &[40, 60] });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` has `r + 1` elements: where do they end among those of all?
    ///     let (mine, mut end) = (world.rank() + 1, 0);
    ///     vrt::block_on(world.scan_into_async(&mine, &mut end, SystemOperation::sum()));
    ///     assert_eq!(end, [1, 3, 6][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` has `r + 1` elements: where do they begin among those of all?
    ///     let (mine, mut begin) = (world.rank() + 1, 0);
    ///     vrt::block_on(world.exclusive_scan_into_async(&mine, &mut begin, SystemOperation::sum()));
    ///     assert_eq!(begin, [0, 1, 3][world.rank() as usize]);
    /// });
    /// ```
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
