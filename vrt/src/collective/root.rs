//! Collective operations with a root, blocking and immediate.
//!
//! As in the `mpi` crate, the root and the others call different functions where they need
//! different buffers.

use std::process::Command;

use crate::collective::operation::Operation;
use crate::collective::start::{self, datatype, expect_root, parts_in, parts_out};
use crate::collective::{block, combine_now};
use crate::datatype::wire::{incoming, incoming_filled, incoming_result, outgoing};
use crate::datatype::{Buffer, BufferMut, PartitionedBuffer, PartitionedBufferMut};
use crate::operation::site;
use crate::request::{Request, Scope, immediate};
use crate::topology::sealed::AsHandle;
use crate::topology::{AsCommunicator, InterCommunicator, Process};
use crate::{MpiError, Rank};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::algorithms::In;
use vrt_core::comm::combine::What;

/// A rank that collective operations can have as their root.
pub trait Root: AsCommunicator {
    /// Its rank.
    fn root_rank(&self) -> Rank;

    /// Gives every rank what the root has (section 6.4).
    #[track_caller]
    fn broadcast_into<Buf: BufferMut + ?Sized>(&self, buffer: &mut Buf) {
        let site = site!("broadcast_into");
        let (comm, root, data) = (handle(self), self.root_rank(), incoming_filled(buffer));
        if !data.is_staged() {
            let (root, input, out) =
                (Some(root as usize), In(data.at, data.len, data.signature), data.out());
            // SAFETY: the buffer is borrowed for the blocking call.
            if unsafe { combine_now(comm, site, What::Broadcast, root, &(input, out)) } {
                return;
            }
        }
        block(start::broadcast(comm, root, data, site), site);
    }

    /// [`broadcast_into`](Self::broadcast_into), as a request.
    #[track_caller]
    fn immediate_broadcast_into<'a, Buf, Sc>(
        &self,
        scope: Sc,
        buf: &'a mut Buf,
    ) -> Request<'a, Buf, Sc>
    where
        Buf: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_broadcast_into");
        let future = start::broadcast(handle(self), self.root_rank(), incoming_filled(buf), site);
        // SAFETY: the request borrows the buffer until it is done.
        unsafe { immediate(scope, buf, future, site) }
    }

    /// Contributes to what the root gathers (section 6.5); on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn gather_into<S: Buffer + ?Sized>(&self, sendbuf: &S) {
        let site = site!("gather_into");
        expect_root(handle(self), self.root_rank(), false, site);
        block(
            start::gather(handle(self), Some(self.root_rank()), outgoing(sendbuf), None, site),
            site,
        );
    }

    /// [`gather_into`](Self::gather_into), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_gather_into<'a, S, Sc>(&self, scope: Sc, sendbuf: &'a S) -> Request<'a, S, Sc>
    where
        S: 'a + Buffer + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_gather_into");
        expect_root(handle(self), self.root_rank(), false, site);
        let future =
            start::gather(handle(self), Some(self.root_rank()), outgoing(sendbuf), None, site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, sendbuf, future, site) }
    }

    /// Gathers the contributions of all ranks, in rank order; on the root.
    ///
    /// # Panics
    /// On other ranks, and when the receive buffer is not as long as all contributions.
    #[track_caller]
    fn gather_into_root<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("gather_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        block(
            start::gather(
                handle(self),
                Some(self.root_rank()),
                outgoing(sendbuf),
                Some(incoming(recvbuf)),
                site,
            ),
            site,
        );
    }

    /// [`gather_into_root`](Self::gather_into_root), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_gather_into_root<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_gather_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        let future = start::gather(
            handle(self),
            Some(self.root_rank()),
            outgoing(sendbuf),
            Some(incoming(recvbuf)),
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Contributes to what the root gathers, as much as it wants; on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn gather_varcount_into<S: Buffer + ?Sized>(&self, sendbuf: &S) {
        let site = site!("gather_varcount_into");
        expect_root(handle(self), self.root_rank(), false, site);
        block(
            start::gather_varcount(
                handle(self),
                Some(self.root_rank()),
                outgoing(sendbuf),
                None,
                site,
            ),
            site,
        );
    }

    /// [`gather_varcount_into`](Self::gather_varcount_into), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_gather_varcount_into<'a, S, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
    ) -> Request<'a, S, Sc>
    where
        S: 'a + Buffer + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_gather_varcount_into");
        expect_root(handle(self), self.root_rank(), false, site);
        let future = start::gather_varcount(
            handle(self),
            Some(self.root_rank()),
            outgoing(sendbuf),
            None,
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, sendbuf, future, site) }
    }

    /// Gathers contributions of different lengths; on the root.
    ///
    /// # Panics
    /// On other ranks, and when there is not one part for each rank, as long as its contribution.
    #[track_caller]
    fn gather_varcount_into_root<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("gather_varcount_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        block(
            start::gather_varcount(
                handle(self),
                Some(self.root_rank()),
                outgoing(sendbuf),
                Some(parts_in(recvbuf, Some(handle(self)), site)),
                site,
            ),
            site,
        );
    }

    /// [`gather_varcount_into_root`](Self::gather_varcount_into_root), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_gather_varcount_into_root<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + PartitionedBufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_gather_varcount_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        let future = start::gather_varcount(
            handle(self),
            Some(self.root_rank()),
            outgoing(sendbuf),
            Some(parts_in(recvbuf, Some(handle(self)), site)),
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Receives a part of what the root scatters (section 6.6); on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn scatter_into<R: BufferMut + ?Sized>(&self, recvbuf: &mut R) {
        let site = site!("scatter_into");
        expect_root(handle(self), self.root_rank(), false, site);
        block(start::scatter(handle(self), self.root_rank(), None, incoming(recvbuf), site), site);
    }

    /// [`scatter_into`](Self::scatter_into), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_scatter_into<'a, R, Sc>(&self, scope: Sc, recvbuf: &'a mut R) -> Request<'a, R, Sc>
    where
        R: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_scatter_into");
        expect_root(handle(self), self.root_rank(), false, site);
        let future = start::scatter(handle(self), self.root_rank(), None, incoming(recvbuf), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Gives each rank its part, in rank order; on the root.
    ///
    /// # Panics
    /// On other ranks, and when the send buffer is not as long as all parts.
    #[track_caller]
    fn scatter_into_root<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("scatter_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        block(
            start::scatter(
                handle(self),
                self.root_rank(),
                Some(outgoing(sendbuf)),
                incoming(recvbuf),
                site,
            ),
            site,
        );
    }

    /// [`scatter_into_root`](Self::scatter_into_root), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_scatter_into_root<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_scatter_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        let future = start::scatter(
            handle(self),
            self.root_rank(),
            Some(outgoing(sendbuf)),
            incoming(recvbuf),
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Receives a part of what the root scatters; on ranks other than the root.
    ///
    /// # Panics
    /// On the root, and when the part is not as long as the buffer.
    #[track_caller]
    fn scatter_varcount_into<R: BufferMut + ?Sized>(&self, recvbuf: &mut R) {
        let site = site!("scatter_varcount_into");
        expect_root(handle(self), self.root_rank(), false, site);
        block(
            start::scatter_varcount(handle(self), self.root_rank(), None, incoming(recvbuf), site),
            site,
        );
    }

    /// [`scatter_varcount_into`](Self::scatter_varcount_into), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_scatter_varcount_into<'a, R, Sc>(
        &self,
        scope: Sc,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        R: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_scatter_varcount_into");
        expect_root(handle(self), self.root_rank(), false, site);
        let future =
            start::scatter_varcount(handle(self), self.root_rank(), None, incoming(recvbuf), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Gives each rank a part, of different lengths; on the root.
    ///
    /// # Panics
    /// On other ranks, and when there is not one part for each rank, as long as its buffer.
    #[track_caller]
    fn scatter_varcount_into_root<S: PartitionedBuffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("scatter_varcount_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        block(
            start::scatter_varcount(
                handle(self),
                self.root_rank(),
                Some(parts_out(sendbuf, Some(handle(self)), site)),
                incoming(recvbuf),
                site,
            ),
            site,
        );
    }

    /// [`scatter_varcount_into_root`](Self::scatter_varcount_into_root), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_scatter_varcount_into_root<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + PartitionedBuffer + ?Sized,
        R: 'a + BufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_scatter_varcount_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        let future = start::scatter_varcount(
            handle(self),
            self.root_rank(),
            Some(parts_out(sendbuf, Some(handle(self)), site)),
            incoming(recvbuf),
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Contributes to what the root folds (section 6.9.1); on ranks other than the root.
    ///
    /// # Panics
    /// On the root, and when the operation is not defined for the elements.
    #[track_caller]
    fn reduce_into<S: Buffer + ?Sized, O: Operation>(&self, sendbuf: &S, op: O) {
        let site = site!("reduce_into");
        expect_root(handle(self), self.root_rank(), false, site);
        block(
            start::reduce(
                handle(self),
                Some(self.root_rank()),
                outgoing(sendbuf),
                None,
                datatype(sendbuf),
                op,
                site,
            ),
            site,
        );
    }

    /// [`reduce_into`](Self::reduce_into), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_reduce_into<'a, S, O, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        op: O,
    ) -> Request<'a, S, Sc>
    where
        S: 'a + Buffer + ?Sized,
        O: 'a + Operation,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_reduce_into");
        expect_root(handle(self), self.root_rank(), false, site);
        let future = start::reduce(
            handle(self),
            Some(self.root_rank()),
            outgoing(sendbuf),
            None,
            datatype(sendbuf),
            op,
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, sendbuf, future, site) }
    }

    /// Folds the contributions of all ranks; on the root.
    ///
    /// # Panics
    /// On other ranks, when the receive buffer is shorter than the other, and when the operation is not defined
    /// for the elements.
    #[track_caller]
    fn reduce_into_root<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("reduce_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        block(
            start::reduce(
                handle(self),
                Some(self.root_rank()),
                outgoing(sendbuf),
                Some(incoming_result(sendbuf, recvbuf, false)),
                datatype(sendbuf),
                op,
                site,
            ),
            site,
        );
    }

    /// [`reduce_into_root`](Self::reduce_into_root), as a request.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    fn immediate_reduce_into_root<'a, S, R, O, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
        op: O,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + BufferMut + ?Sized,
        O: 'a + Operation,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_reduce_into_root");
        expect_root(handle(self), self.root_rank(), true, site);
        let future = start::reduce(
            handle(self),
            Some(self.root_rank()),
            outgoing(sendbuf),
            Some(incoming_result(sendbuf, recvbuf, false)),
            datatype(sendbuf),
            op,
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Starts processes (MPI-4.1 section 11.8). A job's ranks are fixed when it begins.
    ///
    /// # Errors
    /// Always.
    fn spawn(&self, command: &Command, maxprocs: Rank) -> Result<InterCommunicator, MpiError> {
        let _ = command;
        Err(MpiError::Spawn(maxprocs, maxprocs))
    }

    /// Starts processes of several programs.
    ///
    /// # Errors
    /// Always.
    fn spawn_multiple(
        &self,
        commands: &[Command],
        maxprocs: &[Rank],
    ) -> Result<InterCommunicator, MpiError> {
        let _ = commands;
        let all = maxprocs.iter().sum();
        Err(MpiError::Spawn(all, all))
    }
}

impl Root for Process<'_> {
    fn root_rank(&self) -> Rank {
        self.rank()
    }
}

/// The communicator of a root.
pub(crate) fn handle<T: AsCommunicator + ?Sized>(this: &T) -> &CommunicatorHandle {
    this.as_communicator().as_handle()
}
