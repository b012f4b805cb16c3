//! Persistent collective operations (MPI-4.1 section 6.13): arguments once, then any number of
//! starts. All ranks make them in the same order, and start them in the same order.

use std::panic::Location;

use crate::collective::operation::Operation;
use crate::collective::root::{Root, handle};
use crate::collective::start::{self, datatype};
use crate::datatype::wire::{incoming, incoming_filled, outgoing};
use crate::datatype::{Buffer, BufferMut};
use crate::point_to_point::site;
use crate::request::PersistentRequest;
use crate::topology::Communicator;

/// Persistent forms of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
pub trait PersistentCollectives: Communicator {
    /// A barrier to be started again and again.
    #[track_caller]
    fn persistent_barrier(&self) -> PersistentRequest<'static, (), ()> {
        let (comm, site) = (self.as_handle().clone(), site!("persistent_barrier"));
        PersistentRequest::collective((), (), site, move |_, _| {
            Box::pin(start::barrier(&comm, site))
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
            let to = Some(incoming(&mut **receive));
            Box::pin(start::gather(&comm, None, outgoing(&**send), to, site))
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
            let to = incoming(&mut **receive);
            Box::pin(start::all_to_all(&comm, outgoing(&**send), to, site))
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
        O: Operation + Clone + 'a,
    {
        let (comm, site) = (self.as_handle().clone(), site!("persistent_all_reduce_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (from, kind) = (outgoing(&**send), datatype(&**send));
            let to = Some(incoming(&mut **receive));
            Box::pin(start::reduce(&comm, None, from, to, kind, op.clone(), site))
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
        O: Operation + Clone + 'a,
    {
        let comm = self.as_handle().clone();
        let site = site!("persistent_reduce_scatter_block_into");
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (from, kind) = (outgoing(&**send), datatype(&**send));
            let to = incoming(&mut **receive);
            let lengths = vec![to.len; comm.size as usize];
            Box::pin(start::reduce_scatter(&comm, from, to, lengths, kind, op.clone(), site))
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
        O: Operation + Clone + 'a,
    {
        let (comm, site) = (self.as_handle().clone(), site!("persistent_scan_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let kind = (datatype(&**send), op.clone());
            let (from, to) = (outgoing(&**send), incoming(&mut **receive));
            Box::pin(start::scan(&comm, from, to, kind, false, site))
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
        O: Operation + Clone + 'a,
    {
        let (comm, site) = (self.as_handle().clone(), site!("persistent_exclusive_scan_into"));
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let kind = (datatype(&**send), op.clone());
            let (from, to) = (outgoing(&**send), incoming_filled(&mut **receive));
            Box::pin(start::scan(&comm, from, to, kind, true, site))
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
            Box::pin(start::broadcast(&comm, root, incoming_filled(&mut **buffer), site))
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
            let to = (comm.rank == root).then(|| incoming(&mut **receive));
            Box::pin(start::gather(&comm, Some(root), outgoing(&**send), to, site))
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
            let from = (comm.rank == root).then(|| outgoing(&**send));
            Box::pin(start::scatter(&comm, root, from, incoming(&mut **receive), site))
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
        O: Operation + Clone + 'a,
    {
        let (comm, root) = (handle(self).clone(), self.root_rank());
        let site = site!("persistent_reduce_into");
        PersistentRequest::collective(sendbuf, recvbuf, site, move |send, receive| {
            let (from, kind) = (outgoing(&**send), datatype(&**send));
            let to = (comm.rank == root).then(|| incoming(&mut **receive));
            Box::pin(start::reduce(&comm, Some(root), from, to, kind, op.clone(), site))
        })
    }
}

impl<T: Root + ?Sized> PersistentRoot for T {}
