//! The async twins of collective operations. A future that has been polled has to be awaited.

use std::future::Future;
use std::panic::Location;

use crate::collective::algorithms::Collective;
use crate::collective::{
    Operation, Root, expect_bytes, expect_root, handle, input, operator, output,
};
use crate::datatype::{Buffer, BufferMut};
use crate::point_to_point::site;
use crate::topology::Communicator;

/// Async twins of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
pub trait AsyncCollectives: Communicator {
    /// Waits until all ranks have come here.
    #[track_caller]
    fn barrier_async(&self) -> impl Future<Output = ()> {
        let (comm, site) = (*self.as_handle(), site!("barrier_async"));
        // SAFETY: no buffers.
        async move { unsafe { Collective::begin(&comm, site).barrier() }.await }
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
        let (comm, site) = (*self.as_handle(), site!("all_gather_into_async"));
        async move {
            let (from, to) = (input(sendbuf), output(recvbuf));
            expect_bytes("receive buffer", to.1, from.1 * comm.size as usize, site);
            // SAFETY: the future borrows the buffers.
            unsafe { Collective::begin(&comm, site).gather(None, from, Some(to)) }.await;
        }
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
        let (comm, site) = (*self.as_handle(), site!("all_to_all_into_async"));
        async move {
            let (from, to) = (input(sendbuf), output(recvbuf));
            expect_bytes("receive buffer", to.1, from.1, site);
            let size = comm.size as usize;
            expect_bytes("send buffer", from.1, from.1 / size * size, site);
            // SAFETY: the future borrows the buffers.
            unsafe { Collective::begin(&comm, site).all_to_all(from, to) }.await;
        }
    }

    /// Folds the contributions of all ranks and gives every rank the result.
    ///
    /// # Panics
    /// When the buffers are not equally long, or the operation is not defined for their elements.
    #[track_caller]
    fn all_reduce_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> impl Future<Output = ()> {
        let (comm, site) = (*self.as_handle(), site!("all_reduce_into_async"));
        async move {
            let (from, to) = (input(sendbuf), output(recvbuf));
            expect_bytes("receive buffer", to.1, from.1, site);
            let operator = operator(sendbuf, &op, site);
            let collective = Collective::begin(&comm, site);
            // SAFETY: the future borrows the buffers.
            unsafe { collective.reduce(None, operator, from, Some(to)) }.await;
        }
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
        let (comm, site) = (*self.as_handle(), site!("scan_into_async"));
        async move {
            let (from, to) = (input(sendbuf), output(recvbuf));
            expect_bytes("receive buffer", to.1, from.1, site);
            let operator = operator(sendbuf, &op, site);
            let collective = Collective::begin(&comm, site);
            // SAFETY: the future borrows the buffers.
            unsafe { collective.scan(operator, from, to, false) }.await;
        }
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
        let (comm, root, site) = (*handle(self), self.root_rank(), site!("broadcast_into_async"));
        async move {
            let collective = Collective::begin(&comm, site);
            // SAFETY: the future borrows the buffer.
            unsafe { collective.broadcast(root as usize, output(buffer)) }.await;
        }
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
        let (comm, root, site) = (*handle(self), self.root_rank(), site!("gather_into_async"));
        expect_root(self, all.is_some(), site);
        async move {
            let from = input(sendbuf);
            let to = all.map(output);
            if let Some(to) = to {
                expect_bytes("receive buffer", to.1, from.1 * comm.size as usize, site);
            }
            // SAFETY: the future borrows the buffers.
            unsafe { Collective::begin(&comm, site).gather(Some(root as usize), from, to) }.await;
        }
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
        let (comm, root, site) = (*handle(self), self.root_rank(), site!("scatter_into_async"));
        expect_root(self, all.is_some(), site);
        async move {
            let to = output(recvbuf);
            let from = all.map(input);
            if let Some(from) = from {
                expect_bytes("send buffer", from.1, to.1 * comm.size as usize, site);
            }
            // SAFETY: the future borrows the buffers.
            unsafe { Collective::begin(&comm, site).scatter(root as usize, from, to) }.await;
        }
    }

    /// Contributes to what the root folds; on the root, folds it into `out`.
    ///
    /// # Panics
    /// When `out` is missing on the root, present elsewhere, or not as long as the contribution.
    #[track_caller]
    fn reduce_into_async<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        out: Option<&mut R>,
        op: O,
    ) -> impl Future<Output = ()> {
        let (comm, root, site) = (*handle(self), self.root_rank(), site!("reduce_into_async"));
        expect_root(self, out.is_some(), site);
        async move {
            let from = input(sendbuf);
            let to = out.map(output);
            if let Some(to) = to {
                expect_bytes("receive buffer", to.1, from.1, site);
            }
            let operator = operator(sendbuf, &op, site);
            let collective = Collective::begin(&comm, site);
            // SAFETY: the future borrows the buffers.
            unsafe { collective.reduce(Some(root as usize), operator, from, to) }.await;
        }
    }
}

impl<T: Root + ?Sized> AsyncRoot for T {}
