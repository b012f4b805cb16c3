//! The async twins of collective operations.
//!
//! A future can be dropped or forgotten. Others wait for this rank's part in the operation, so one
//! that has begun and is dropped goes on by itself, with a result that nobody sees; and what it uses is
//! a copy of the buffers.

use std::future::Future;

use crate::collective::operation::Operation;
use crate::collective::root::{Root, handle};
use crate::collective::start::{self, datatype, expect_root};
use crate::datatype::wire::{Apart, incoming_apart, outgoing_apart};
use crate::datatype::{Buffer, BufferMut};
use crate::operation::background;
use crate::operation::site;
use crate::topology::Communicator;

/// An operation that has what it uses; what has come is put into its place at the end.
async fn settled<R: BufferMut + ?Sized>(
    future: impl Future<Output = ()> + 'static,
    apart: Apart,
    buffer: &mut R,
) {
    background(future).await;
    apart.settle(buffer);
}

/// The same, for what only the root gets.
async fn settled_on_root<R: BufferMut + ?Sized>(
    future: impl Future<Output = ()> + 'static,
    to: Option<(Apart, &mut R)>,
) {
    background(future).await;
    if let Some((apart, buffer)) = to {
        apart.settle(buffer);
    }
}

/// Async twins of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
pub trait AsyncCollectives: Communicator {
    /// Waits until all ranks have come here.
    #[track_caller]
    fn barrier_async(&self) -> impl Future<Output = ()> {
        background(start::barrier(self.as_handle(), site!("barrier_async")))
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
        let (site, (to, apart)) = (site!("all_gather_into_async"), incoming_apart(recvbuf, false));
        let from = outgoing_apart(sendbuf);
        let future = start::gather(self.as_handle(), None, from, Some(to), site);
        settled(future, apart, recvbuf)
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
        let (site, (to, apart)) = (site!("all_to_all_into_async"), incoming_apart(recvbuf, false));
        let future = start::all_to_all(self.as_handle(), outgoing_apart(sendbuf), to, site);
        settled(future, apart, recvbuf)
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
        let (site, comm) = (site!("all_reduce_into_async"), self.as_handle());
        let (from, kind) = (outgoing_apart(sendbuf), datatype(sendbuf));
        let (to, apart) = incoming_apart(recvbuf, false);
        let future = start::reduce(comm, None, from, Some(to), kind, op, site);
        settled(future, apart, recvbuf)
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
        let (site, comm) = (site!("scan_into_async"), self.as_handle());
        let (from, kind) = (outgoing_apart(sendbuf), datatype(sendbuf));
        let (to, apart) = incoming_apart(recvbuf, false);
        settled(start::scan(comm, from, to, (kind, op), false, site), apart, recvbuf)
    }
}

impl<C: Communicator + ?Sized> AsyncCollectives for C {}

/// Async twins of [`Root`]. `out` and `all` are looked at on the root only.
pub trait AsyncRoot: Root {
    /// Gives every rank what the root has.
    #[track_caller]
    fn broadcast_into_async<Buf: BufferMut + ?Sized>(
        &self,
        buffer: &mut Buf,
    ) -> impl Future<Output = ()> {
        let (site, root) = (site!("broadcast_into_async"), self.root_rank());
        let (data, apart) = incoming_apart(buffer, true);
        settled(start::broadcast(handle(self), root, data, site), apart, buffer)
    }

    /// Contributes to what the root gathers; on the root, gathers it into `all`.
    ///
    /// # Panics
    /// When `all` is missing on the root, present elsewhere, or not as long as all contributions.
    #[track_caller]
    fn gather_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        mut all: Option<&mut R>,
    ) -> impl Future<Output = ()> {
        let (site, root) = (site!("gather_into_async"), self.root_rank());
        expect_root(handle(self), root, all.is_some(), site);
        let (to, apart) = all.as_deref_mut().map(|all| incoming_apart(all, false)).unzip();
        let future = start::gather(handle(self), Some(root), outgoing_apart(sendbuf), to, site);
        settled_on_root(future, apart.zip(all))
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
        let (site, root) = (site!("scatter_into_async"), self.root_rank());
        expect_root(handle(self), root, all.is_some(), site);
        let (to, apart) = incoming_apart(recvbuf, false);
        let future = start::scatter(handle(self), root, all.map(outgoing_apart), to, site);
        settled(future, apart, recvbuf)
    }

    /// Contributes to what the root folds; on the root, folds it into `out`.
    ///
    /// # Panics
    /// When `out` is missing on the root, present elsewhere, or not as long as the contribution.
    #[track_caller]
    fn reduce_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation + 'static>(
        &self,
        sendbuf: &S,
        mut out: Option<&mut R>,
        op: O,
    ) -> impl Future<Output = ()> {
        let (site, root) = (site!("reduce_into_async"), self.root_rank());
        expect_root(handle(self), root, out.is_some(), site);
        let (from, kind) = (outgoing_apart(sendbuf), datatype(sendbuf));
        let (to, apart) = out.as_deref_mut().map(|out| incoming_apart(out, false)).unzip();
        let future = start::reduce(handle(self), Some(root), from, to, kind, op, site);
        settled_on_root(future, apart.zip(out))
    }
}

impl<T: Root + ?Sized> AsyncRoot for T {}
