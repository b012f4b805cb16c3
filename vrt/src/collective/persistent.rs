//! Persistent collective operations (MPI-4.1 section 6.13): arguments once, then any number of
//! starts. All ranks make them in the same order, and start them in the same order.

use crate::collective::operation::Operation;
use crate::collective::root::{Root, handle};
use crate::collective::start::{self, datatype};
use crate::datatype::wire::{Apart, incoming_apart, outgoing_apart};
use crate::datatype::{Buffer, BufferMut};
use crate::operation::site;
use crate::request::{PersistentRequest, Settle};
use crate::topology::Communicator;

/// Puts what has come into its place.
fn settle<'a, R: BufferMut + ?Sized>(apart: Apart) -> Settle<&'a mut R> {
    Some(Box::new(move |buffer: &mut &'a mut R| apart.settle(&mut **buffer)))
}

/// Persistent forms of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
pub trait PersistentCollectives: Communicator {
    /// A barrier to be started again and again.
    #[track_caller]
    fn persistent_barrier(&self) -> PersistentRequest<'static, (), ()> {
        let (comm, site) = (self.as_handle().clone(), site!("persistent_barrier"));
        PersistentRequest::collective((), (), site, move |_, _| {
            (Box::pin(start::barrier(&comm, site)), None)
        })
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
        let (comm, site) = (self.as_handle().clone(), site!("persistent_all_gather_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (to, apart) = incoming_apart(&mut **receive, false);
            let from = outgoing_apart(&**send);
            let future = start::gather(&comm, None, from, Some(to), site);
            (Box::pin(future), settle(apart))
        })
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
        let (comm, site) = (self.as_handle().clone(), site!("persistent_all_to_all_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (to, apart) = incoming_apart(&mut **receive, false);
            let future = start::all_to_all(&comm, outgoing_apart(&**send), to, site);
            (Box::pin(future), settle(apart))
        })
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
        let (comm, site) = (self.as_handle().clone(), site!("persistent_all_reduce_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (from, kind) = (outgoing_apart(&**send), datatype(&**send));
            let (to, apart) = incoming_apart(&mut **receive, false);
            let future = start::reduce(&comm, None, from, Some(to), kind, op.clone(), site);
            (Box::pin(future), settle(apart))
        })
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
        let comm = self.as_handle().clone();
        let site = site!("persistent_reduce_scatter_block_into");
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (from, kind) = (outgoing_apart(&**send), datatype(&**send));
            let (to, apart) = incoming_apart(&mut **receive, false);
            let lengths = vec![to.len; comm.size as usize];
            let op = op.clone();
            let future = start::reduce_scatter(&comm, from, to, lengths, kind, op, site);
            (Box::pin(future), settle(apart))
        })
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
        let (comm, site) = (self.as_handle().clone(), site!("persistent_scan_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let kind = (datatype(&**send), op.clone());
            let (from, (to, apart)) =
                (outgoing_apart(&**send), incoming_apart(&mut **receive, false));
            (Box::pin(start::scan(&comm, from, to, kind, false, site)), settle(apart))
        })
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
        let (comm, site) = (self.as_handle().clone(), site!("persistent_exclusive_scan_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let kind = (datatype(&**send), op.clone());
            let (from, (to, apart)) =
                (outgoing_apart(&**send), incoming_apart(&mut **receive, true));
            (Box::pin(start::scan(&comm, from, to, kind, true, site)), settle(apart))
        })
    }
}

impl<C: Communicator + ?Sized> PersistentCollectives for C {}

/// Persistent forms of [`Root`]. Every rank gives both buffers; those that have nothing to receive
/// (or to send) give an empty one.
pub trait PersistentRoot: Root {
    /// A `broadcast_into` to be started again and again.
    #[track_caller]
    fn persistent_broadcast_into<'a, Buf: BufferMut + ?Sized>(
        &self,
        buffer: &'a mut Buf,
    ) -> PersistentRequest<'a, (), &'a mut Buf> {
        let (comm, root) = (handle(self).clone(), self.root_rank());
        let site = site!("persistent_broadcast_into");
        PersistentRequest::collective((), buffer, site, move |_, buffer| {
            let (data, apart) = incoming_apart(&mut **buffer, true);
            (Box::pin(start::broadcast(&comm, root, data, site)), settle(apart))
        })
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
        let (comm, root) = (handle(self).clone(), self.root_rank());
        let site = site!("persistent_gather_into");
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (to, apart) =
                (comm.rank == root).then(|| incoming_apart(&mut **receive, false)).unzip();
            let future = start::gather(&comm, Some(root), outgoing_apart(&**send), to, site);
            (Box::pin(future), apart.and_then(settle))
        })
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
        let (comm, root) = (handle(self).clone(), self.root_rank());
        let site = site!("persistent_scatter_into");
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let from = (comm.rank == root).then(|| outgoing_apart(&**send));
            let (to, apart) = incoming_apart(&mut **receive, false);
            (Box::pin(start::scatter(&comm, root, from, to, site)), settle(apart))
        })
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
        let (comm, root) = (handle(self).clone(), self.root_rank());
        let site = site!("persistent_reduce_into");
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (from, kind) = (outgoing_apart(&**send), datatype(&**send));
            let (to, apart) =
                (comm.rank == root).then(|| incoming_apart(&mut **receive, false)).unzip();
            let future = start::reduce(&comm, Some(root), from, to, kind, op.clone(), site);
            (Box::pin(future), apart.and_then(settle))
        })
    }
}

impl<T: Root + ?Sized> PersistentRoot for T {}
