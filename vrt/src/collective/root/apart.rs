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
pub trait PersistentRoot: Root {
    /// A `broadcast_into` to be started again and again.
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
