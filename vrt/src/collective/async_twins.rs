//! The async twins of collective operations. A future that has been polled has to be awaited.

use std::future::Future;
use std::panic::Location;

use crate::collective::operation::Operation;
use crate::collective::root::{Root, handle};
use crate::collective::start::{self, datatype, expect_root};
use crate::datatype::wire::{incoming, incoming_filled, outgoing};
use crate::datatype::{Buffer, BufferMut};
use crate::point_to_point::site;
use crate::topology::Communicator;

/// Holds on to what a future's buffers borrow.
async fn borrowing<B>(future: impl Future<Output = ()>, borrowed: B) {
    future.await;
    drop(borrowed);
}

/// Async twins of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
pub trait AsyncCollectives: Communicator {
    /// Waits until all ranks have come here.
    #[track_caller]
    fn barrier_async(&self) -> impl Future<Output = ()> {
        start::barrier(self.as_handle(), site!("barrier_async"))
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
        let (site, to) = (site!("all_gather_into_async"), Some(incoming(recvbuf)));
        let future = start::gather(self.as_handle(), None, outgoing(sendbuf), to, site);
        borrowing(future, (sendbuf, recvbuf))
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
        let (site, to) = (site!("all_to_all_into_async"), incoming(recvbuf));
        let future = start::all_to_all(self.as_handle(), outgoing(sendbuf), to, site);
        borrowing(future, (sendbuf, recvbuf))
    }

    /// Folds the contributions of all ranks and gives every rank the result.
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for their elements.
    #[track_caller]
    fn all_reduce_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let (site, comm) = (site!("all_reduce_into_async"), self.as_handle());
        let (from, to, kind) = (outgoing(sendbuf), incoming(recvbuf), datatype(sendbuf));
        let future = start::reduce(comm, None, from, Some(to), kind, op, site);
        borrowing(future, (sendbuf, recvbuf))
    }

    /// Folds the contributions of the ranks up to this one.
    ///
    /// # Panics
    /// As [`all_reduce_into_async`](Self::all_reduce_into_async).
    #[track_caller]
    fn scan_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let (site, comm) = (site!("scan_into_async"), self.as_handle());
        let (from, to, kind) = (outgoing(sendbuf), incoming(recvbuf), datatype(sendbuf));
        borrowing(start::scan(comm, from, to, (kind, op), false, site), (sendbuf, recvbuf))
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
        borrowing(start::broadcast(handle(self), root, incoming_filled(buffer), site), buffer)
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
        let to = all.as_deref_mut().map(incoming);
        let future = start::gather(handle(self), Some(root), outgoing(sendbuf), to, site);
        borrowing(future, (sendbuf, all))
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
        let to = incoming(recvbuf);
        let future = start::scatter(handle(self), root, all.map(outgoing), to, site);
        borrowing(future, (all, recvbuf))
    }

    /// Contributes to what the root folds; on the root, folds it into `out`.
    ///
    /// # Panics
    /// When `out` is missing on the root, present elsewhere, or not as long as the contribution.
    #[track_caller]
    fn reduce_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        mut out: Option<&mut R>,
        op: O,
    ) -> impl Future<Output = ()> {
        let (site, root) = (site!("reduce_into_async"), self.root_rank());
        expect_root(handle(self), root, out.is_some(), site);
        let (from, kind) = (outgoing(sendbuf), datatype(sendbuf));
        let to = out.as_deref_mut().map(incoming);
        let future = start::reduce(handle(self), Some(root), from, to, kind, op, site);
        borrowing(future, (sendbuf, out))
    }
}

impl<T: Root + ?Sized> AsyncRoot for T {}
