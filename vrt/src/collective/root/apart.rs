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

/// Async twins of [`Root`]. `out` and `all` are looked at on the root only.
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

    /// Contributes to what the root gathers; on the root, gathers it into `all`.
    ///
    /// # Panics
    /// When `all` is missing on the root, present elsewhere, or not as long as all contributions.
    #[track_caller]
    fn gather_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        all: Option<&mut R>,
    ) -> impl Future<Output = ()> {
        let site = site!("gather_into_async");
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, all)
            .into_future()
    }

    /// Contributes to what the root gathers, as much as it wants; on the root, gathers it into the
    /// parts of `all`.
    ///
    /// # Panics
    /// When `all` is missing on the root, present elsewhere, or does not have a part for each rank, as
    /// long as its contribution.
    #[track_caller]
    fn gather_varcount_into_async<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        all: Option<&mut R>,
    ) -> impl Future<Output = ()> {
        let site = site!("gather_varcount_into_async");
        Call::new(handle(self), site, GatherVarcount { root: Some(self.root_rank()) }, sendbuf, all)
            .into_future()
    }

    /// Receives a part of what the root has in `all`.
    ///
    /// # Panics
    /// When `all` is missing on the root, present elsewhere, or not as long as all parts.
    #[track_caller]
    fn scatter_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        all: Option<&S>,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("scatter_into_async");
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, all, recvbuf)
            .into_future()
    }

    /// Receives a part of what the root has in `all`, of different lengths.
    ///
    /// # Panics
    /// When `all` is missing on the root, present elsewhere, or does not have a part for each rank, as
    /// long as its buffer.
    #[track_caller]
    fn scatter_varcount_into_async<S: PartitionedBuffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        all: Option<&S>,
        recvbuf: &mut R,
    ) -> impl Future<Output = ()> {
        let site = site!("scatter_varcount_into_async");
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, all, recvbuf)
            .into_future()
    }

    /// Contributes to what the root folds; on the root, folds it into `out`.
    ///
    /// # Panics
    /// When `out` is missing on the root, present elsewhere, or not as long as the contribution.
    #[track_caller]
    fn reduce_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation + 'static>(
        &self,
        sendbuf: &S,
        out: Option<&mut R>,
        op: O,
    ) -> impl Future<Output = ()> {
        let site = site!("reduce_into_async");
        Call::new(handle(self), site, Reduce { root: Some(self.root_rank()), op }, sendbuf, out)
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
