//! Collective operations with a root, to be awaited, and to be started again and again; as in
//! [`communicator::apart`](crate::collective::communicator::apart).

use std::future::Future;

use crate::collective::call::Call;
use crate::collective::moves::{Broadcast, Gather, GatherVarcount, Scatter, ScatterVarcount};
use crate::collective::operation::Operation;
use crate::collective::reductions::Reduce;
use crate::collective::root::{Root, handle};
use crate::datatype::{Buffer, BufferMut, PartitionedBuffer, PartitionedBufferMut};
use crate::operation::site;
use crate::request::PersistentRequest;

/// Async twins of [`Root`].
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     vrt::block_on(async {
///         let (root, mine) = (world.process_at_rank(1), world.rank());
///         if root.is_self() {
///             let mut all = [0; 3];
///             root.gather_into_root_async(&mine, &mut all).await;
///             assert_eq!(all, [0, 1, 2]);
///         } else {
///             root.gather_into_async(&mine).await;
///         }
///     });
/// });
/// ```
pub trait AsyncRoot: Root {
    /// Gives every rank what the root has.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let root = world.process_at_rank(1);
    ///     let mut number = if root.is_self() { 7 } else { 0 };
    ///     vrt::block_on(root.broadcast_into_async(&mut number));
    ///     assert_eq!(number, 7);
    /// });
    /// ```
    #[track_caller]
    fn broadcast_into_async<Buf: BufferMut + ?Sized>(
        &self,
        buffer: &mut Buf,
    ) -> impl Future<Output = ()> {
        let site = site!("broadcast_into_async");
        Call::new(handle(self), site, Broadcast { root: self.root_rank() }, (), buffer)
            .into_future()
    }

    /// Contributes to what the root gathers; on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         let (root, me) = (world.process_at_rank(0), world.rank());
    ///         if root.is_self() {
    ///             let mut all = [0; 3];
    ///             root.gather_into_root_async(&me, &mut all).await;
    ///             assert_eq!(all, [0, 1, 2]);
    ///         } else {
    ///             root.gather_into_async(&me).await;
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn gather_into_async<S: Buffer + ?Sized>(&self, sendbuf: &S) -> impl Future<Output = ()> {
        let site = site!("gather_into_async");
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, ())
            .into_future()
    }

    /// Gathers the contributions of all ranks, in rank order; on the root.
    ///
    /// # Panics
    /// On other ranks, and when the receive buffer is not as long as all contributions.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         let (root, mine) = (world.process_at_rank(0), [world.rank(); 2]);
    ///         if root.is_self() {
    ///             let mut all = [0; 6];
    ///             root.gather_into_root_async(&mine, &mut all).await;
    ///             assert_eq!(all, [0, 0, 1, 1, 2, 2]);
    ///         } else {
    ///             root.gather_into_async(&mine).await;
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn gather_into_root_async<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("gather_into_root_async");
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, recvbuf)
            .into_future()
    }

    /// Contributes to what the root gathers, as much as it wants; on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         // Rank `r` contributes `r` values.
    ///         let (root, mine) = (world.process_at_rank(0), vec![world.rank(); world.rank() as usize]);
    ///         if root.is_self() {
    ///             let mut all = [0; 3];
    ///             let mut parts = PartitionMut::new(&mut all, [0, 1, 2], [0, 0, 1]);
    ///             root.gather_varcount_into_root_async(&mine, &mut parts).await;
    ///             assert_eq!(all, [1, 2, 2]);
    ///         } else {
    ///             root.gather_varcount_into_async(&mine).await;
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn gather_varcount_into_async<S: Buffer + ?Sized>(
        &self,
        sendbuf: &S,
    ) -> impl Future<Output = ()> {
        let site = site!("gather_varcount_into_async");
        Call::new(handle(self), site, GatherVarcount { root: Some(self.root_rank()) }, sendbuf, ())
            .into_future()
    }

    /// Gathers contributions of different lengths; on the root.
    ///
    /// # Panics
    /// On other ranks, and when there is not one part for each rank, as long as its contribution.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     vrt::block_on(async {
    ///         // One value of rank 0, two of rank 1, in reverse order.
    ///         let (root, mine) = (world.process_at_rank(0), vec![world.rank(); 1 + world.rank() as usize]);
    ///         if root.is_self() {
    ///             let mut all = [9; 3];
    ///             let mut parts = PartitionMut::new(&mut all, [1, 2], [2, 0]);
    ///             root.gather_varcount_into_root_async(&mine, &mut parts).await;
    ///             assert_eq!(all, [1, 1, 0]);
    ///         } else {
    ///             root.gather_varcount_into_async(&mine).await;
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn gather_varcount_into_root_async<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("gather_varcount_into_root_async");
        Call::new(
            handle(self),
            site,
            GatherVarcount { root: Some(self.root_rank()) },
            sendbuf,
            recvbuf,
        )
        .into_future()
    }

    /// Receives a part of what the root scatters; on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         let (root, mut mine) = (world.process_at_rank(0), 0);
    ///         if root.is_self() {
    ///             root.scatter_into_root_async(&[5, 6, 7], &mut mine).await;
    ///         } else {
    ///             root.scatter_into_async(&mut mine).await;
    ///         }
    ///         assert_eq!(mine, 5 + world.rank());
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn scatter_into_async<R: BufferMut + ?Sized>(
        &self,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("scatter_into_async");
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, (), recvbuf).into_future()
    }

    /// Gives each rank its part, in rank order; on the root.
    ///
    /// # Panics
    /// On other ranks, and when the send buffer is not as long as all parts.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     vrt::block_on(async {
    ///         let (root, mut mine) = (world.process_at_rank(0), [0; 2]);
    ///         if root.is_self() {
    ///             root.scatter_into_root_async(&[5, 6, 7, 8], &mut mine).await;
    ///         } else {
    ///             root.scatter_into_async(&mut mine).await;
    ///         }
    ///         assert_eq!(mine, [[5, 6], [7, 8]][world.rank() as usize]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn scatter_into_root_async<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("scatter_into_root_async");
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, sendbuf, recvbuf)
            .into_future()
    }

    /// Receives a part of what the root scatters, of different lengths; on ranks other than the root.
    ///
    /// # Panics
    /// On the root, and when the part is not as long as the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         // Rank `r` gets `r` values.
    ///         let (root, mut mine) = (world.process_at_rank(0), vec![0; world.rank() as usize]);
    ///         if root.is_self() {
    ///             let parts = Partition::new(&[5, 6, 7], [0, 1, 2], [0, 0, 1]);
    ///             root.scatter_varcount_into_root_async(&parts, &mut mine).await;
    ///         } else {
    ///             root.scatter_varcount_into_async(&mut mine).await;
    ///         }
    ///         assert_eq!(mine, [&[][..], &[5], &[6, 7]][world.rank() as usize]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn scatter_varcount_into_async<R: BufferMut + ?Sized>(
        &self,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("scatter_varcount_into_async");
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, (), recvbuf)
            .into_future()
    }

    /// Gives each rank a part, of different lengths; on the root.
    ///
    /// # Panics
    /// On other ranks, and when there is not one part for each rank, as long as its buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     vrt::block_on(async {
    ///         // Rank 0 gets the last two values, rank 1 the first.
    ///         let (root, mut mine) = (world.process_at_rank(0), vec![0; 2 - world.rank() as usize]);
    ///         if root.is_self() {
    ///             let parts = Partition::new(&[5, 6, 7], [2, 1], [1, 0]);
    ///             root.scatter_varcount_into_root_async(&parts, &mut mine).await;
    ///         } else {
    ///             root.scatter_varcount_into_async(&mut mine).await;
    ///         }
    ///         assert_eq!(mine, [&[6, 7][..], &[5]][world.rank() as usize]);
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn scatter_varcount_into_root_async<S: PartitionedBuffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("scatter_varcount_into_root_async");
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, sendbuf, recvbuf)
            .into_future()
    }

    /// Contributes to what the root folds; on ranks other than the root.
    ///
    /// # Panics
    /// On the root, and when the operation is not defined for the elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         let (root, me, op) = (world.process_at_rank(0), world.rank(), SystemOperation::sum());
    ///         if root.is_self() {
    ///             let mut sum = 0;
    ///             root.reduce_into_root_async(&me, &mut sum, op).await;
    ///             assert_eq!(sum, 0 + 1 + 2);
    ///         } else {
    ///             root.reduce_into_async(&me, op).await;
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn reduce_into_async<S: Buffer + ?Sized, O: Operation + 'static>(
        &self,
        sendbuf: &S,
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("reduce_into_async");
        Call::new(handle(self), site, Reduce { root: Some(self.root_rank()), op }, sendbuf, ())
            .into_future()
    }

    /// Folds the contributions of all ranks; on the root.
    ///
    /// # Panics
    /// On other ranks, when the receive buffer is shorter than the other, and when the operation is not
    /// defined for the elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     vrt::block_on(async {
    ///         let (root, mine, op) = (world.process_at_rank(0), [world.rank(), 5], SystemOperation::max());
    ///         if root.is_self() {
    ///             let mut largest = [0; 2];
    ///             root.reduce_into_root_async(&mine, &mut largest, op).await;
    ///             assert_eq!(largest, [2, 5]);
    ///         } else {
    ///             root.reduce_into_async(&mine, op).await;
    ///         }
    ///     });
    /// });
    /// ```
    #[track_caller]
    fn reduce_into_root_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation + 'static>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("reduce_into_root_async");
        Call::new(handle(self), site, Reduce { root: Some(self.root_rank()), op }, sendbuf, recvbuf)
            .into_future()
    }
}

impl<T: Root + ?Sized> AsyncRoot for T {}

/// Persistent forms of [`Root`]. Every rank gives both buffers; those that have nothing to receive
/// (or to send) give an empty one.
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let root = world.process_at_rank(0);
///     // Only the root has something to receive.
///     let (mut mine, mut sum) = ([0], if root.is_self() { vec![0] } else { vec![] });
///     let mut reduce = root.persistent_reduce_into(&mut mine, &mut sum, SystemOperation::sum());
///     for step in 0..3 {
///         reduce.send_data()[0] = step;
///         reduce.start();
///         reduce.wait();
///         assert!(!root.is_self() || reduce.receive_data()[0] == 3 * step);
///     }
/// });
/// ```
pub trait PersistentRoot: Root {
    /// A `broadcast_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, mut number) = (world.process_at_rank(1), 0);
    ///     let mut broadcast = root.persistent_broadcast_into(&mut number);
    ///     for step in 0..3 {
    ///         if root.is_self() {
    ///             **broadcast.receive_data() = step;
    ///         }
    ///         broadcast.start();
    ///         broadcast.wait();
    ///         assert_eq!(**broadcast.receive_data(), step);
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn persistent_broadcast_into<'a, Buf: BufferMut + ?Sized>(
        &self,
        buffer: &'a mut Buf,
    ) -> PersistentRequest<'a, (), &'a mut Buf> {
        let site = site!("persistent_broadcast_into");
        Call::new(handle(self), site, Broadcast { root: self.root_rank() }, (), buffer).persistent()
    }

    /// A gather to the root to be started again and again; others than the root give an empty
    /// receive buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let root = world.process_at_rank(0);
    ///     let (mut mine, mut all) = (world.rank(), vec![0; if root.is_self() { 3 } else { 0 }]);
    ///     let mut gather = root.persistent_gather_into(&mut mine, &mut all);
    ///     gather.start();
    ///     gather.wait();
    ///     assert!(!root.is_self() || **gather.receive_data() == [0, 1, 2]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_gather_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("persistent_gather_into");
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, recvbuf)
            .persistent()
    }

    /// A gather of different lengths to the root to be started again and again; others than the root
    /// give an empty receive buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (root, mut mine) = (world.process_at_rank(0), vec![world.rank(); 1 + world.rank() as usize]);
    ///     // The root receives one value of rank 0 and two of rank 1, the others nothing.
    ///     let parts = if root.is_self() { 2 } else { 0 };
    ///     let mut all = [9; 3];
    ///     let mut room = PartitionMut::new(&mut all, &[1, 2][..parts], &[0, 1][..parts]);
    ///     let mut gather = root.persistent_gather_varcount_into(&mut mine, &mut room);
    ///     gather.start();
    ///     gather.wait();
    ///     drop(gather);
    ///     assert!(!root.is_self() || all == [0, 1, 1]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_gather_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("persistent_gather_varcount_into");
        Call::new(
            handle(self),
            site,
            GatherVarcount { root: Some(self.root_rank()) },
            sendbuf,
            recvbuf,
        )
        .persistent()
    }

    /// A scatter from the root to be started again and again; others than the root give an empty
    /// send buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let root = world.process_at_rank(0);
    ///     let (mut all, mut mine) = (if root.is_self() { vec![5, 6, 7] } else { vec![] }, 0);
    ///     let mut scatter = root.persistent_scatter_into(&mut all, &mut mine);
    ///     scatter.start();
    ///     scatter.wait();
    ///     assert_eq!(**scatter.receive_data(), 5 + world.rank());
    /// });
    /// ```
    #[track_caller]
    fn persistent_scatter_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("persistent_scatter_into");
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, sendbuf, recvbuf)
            .persistent()
    }

    /// A scatter of different lengths from the root to be started again and again; others than the
    /// root give an empty send buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (root, mut mine) = (world.process_at_rank(0), vec![0; 1 + world.rank() as usize]);
    ///     // The root sends one value to rank 0 and two to rank 1, the others nothing.
    ///     let parts = if root.is_self() { 2 } else { 0 };
    ///     let mut all = Partition::new(&[5, 6, 7], &[1, 2][..parts], &[0, 1][..parts]);
    ///     let mut scatter = root.persistent_scatter_varcount_into(&mut all, &mut mine);
    ///     scatter.start();
    ///     scatter.wait();
    ///     assert_eq!(**scatter.receive_data(), [&[5][..], &[6, 7]][world.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_scatter_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: PartitionedBuffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let site = site!("persistent_scatter_varcount_into");
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, sendbuf, recvbuf)
            .persistent()
    }

    /// A reduction to the root to be started again and again; others than the root give an empty
    /// receive buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let root = world.process_at_rank(0);
    ///     let (mut mine, mut largest) = (world.rank(), vec![0; if root.is_self() { 1 } else { 0 }]);
    ///     let op = SystemOperation::max();
    ///     let mut reduce = root.persistent_reduce_into(&mut mine, &mut largest, op);
    ///     reduce.start();
    ///     reduce.wait();
    ///     assert!(!root.is_self() || **reduce.receive_data() == [2]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_reduce_into<'a, S, R, O>(
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
        let site = site!("persistent_reduce_into");
        Call::new(handle(self), site, Reduce { root: Some(self.root_rank()), op }, sendbuf, recvbuf)
            .persistent()
    }
}

impl<T: Root + ?Sized> PersistentRoot for T {}
