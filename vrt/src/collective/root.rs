//! Collective operations with a root, blocking and immediate.
//!
//! As in the `mpi` crate, the root and the others call different functions where they need
//! different buffers.

pub(super) mod apart;

use std::process::Command;

use crate::collective::call::Call;
use crate::collective::moves::{Broadcast, Gather, GatherVarcount, Scatter, ScatterVarcount};
use crate::collective::operation::Operation;
use crate::collective::reductions::Reduce;
use crate::datatype::{Buffer, BufferMut, PartitionedBuffer, PartitionedBufferMut};
use crate::error::Error;
use crate::operation::site;
use crate::request::{Request, Scope};
use crate::topology::sealed::AsHandle;
use crate::topology::{AsCommunicator, InterCommunicator, Process};
use crate::{MpiError, Rank};
use vrt_core::comm::CommunicatorHandle;

/// A rank that collective operations can have as their root.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (root, mut part) = (world.process_at_rank(1), 0);
///     if root.is_self() {
///         root.scatter_into_root(&[5, 6, 7], &mut part);
///     } else {
///         root.scatter_into(&mut part);
///     }
///     assert_eq!(part, 5 + world.rank());
/// });
/// ```
pub trait Root: AsCommunicator {
    /// Its rank.
    fn root_rank(&self) -> Rank;

    /// Gives every rank what the root has (section 6.4).
    #[track_caller]
    fn broadcast_into<Buf: BufferMut + ?Sized>(&self, buffer: &mut Buf) {
        let site = site!("broadcast_into");
        Call::new(handle(self), site, Broadcast { root: self.root_rank() }, (), buffer).block();
    }

    /// [`broadcast_into`](Self::broadcast_into) that returns what was wrong.
    ///
    /// # Errors
    /// Ranks do not agree. The root does not wait for the others, so it may get no error when they
    /// do. [`error`](crate::error) says what holds then.
    #[track_caller]
    fn try_broadcast_into<Buf: BufferMut + ?Sized>(&self, buffer: &mut Buf) -> Result<(), Error> {
        let site = site!("broadcast_into");
        Call::new(handle(self), site, Broadcast { root: self.root_rank() }, (), buffer).try_block()
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
        Call::new(handle(self), site, Broadcast { root: self.root_rank() }, (), buf)
            .immediate(scope)
    }

    /// Contributes to what the root gathers (section 6.5); on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn gather_into<S: Buffer + ?Sized>(&self, sendbuf: &S) {
        let site = site!("gather_into");
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, ()).block();
    }

    /// [`gather_into`](Self::gather_into) that returns what was wrong.
    ///
    /// # Errors
    /// This is the root, and has not taken part; or ranks do not agree, which this rank may not hear of,
    /// because it does not wait for the root. [`error`](crate::error) says what holds then.
    #[track_caller]
    fn try_gather_into<S: Buffer + ?Sized>(&self, sendbuf: &S) -> Result<(), Error> {
        let site = site!("gather_into");
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, ())
            .try_block()
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
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, ())
            .immediate(scope)
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
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, recvbuf)
            .block();
    }

    /// [`gather_into_root`](Self::gather_into_root) that returns what was wrong.
    ///
    /// # Errors
    /// An argument is wrong, or this is not the root, and this rank has not taken part; or ranks do not
    /// agree. [`error`](crate::error) says what holds then, here and on the others.
    #[track_caller]
    fn try_gather_into_root<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> Result<(), Error> {
        let site = site!("gather_into_root");
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, recvbuf)
            .try_block()
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
        Call::new(handle(self), site, Gather { root: Some(self.root_rank()) }, sendbuf, recvbuf)
            .immediate(scope)
    }

    /// Contributes to what the root gathers, as much as it wants; on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn gather_varcount_into<S: Buffer + ?Sized>(&self, sendbuf: &S) {
        let site = site!("gather_varcount_into");
        Call::new(handle(self), site, GatherVarcount { root: Some(self.root_rank()) }, sendbuf, ())
            .block();
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
        Call::new(handle(self), site, GatherVarcount { root: Some(self.root_rank()) }, sendbuf, ())
            .immediate(scope)
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
        Call::new(
            handle(self),
            site,
            GatherVarcount { root: Some(self.root_rank()) },
            sendbuf,
            recvbuf,
        )
        .block();
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
        Call::new(
            handle(self),
            site,
            GatherVarcount { root: Some(self.root_rank()) },
            sendbuf,
            recvbuf,
        )
        .immediate(scope)
    }

    /// Receives a part of what the root scatters (section 6.6); on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn scatter_into<R: BufferMut + ?Sized>(&self, recvbuf: &mut R) {
        let site = site!("scatter_into");
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, (), recvbuf).block();
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
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, (), recvbuf)
            .immediate(scope)
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
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, sendbuf, recvbuf).block();
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
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, sendbuf, recvbuf)
            .immediate(scope)
    }

    /// Receives a part of what the root scatters; on ranks other than the root.
    ///
    /// # Panics
    /// On the root, and when the part is not as long as the buffer.
    #[track_caller]
    fn scatter_varcount_into<R: BufferMut + ?Sized>(&self, recvbuf: &mut R) {
        let site = site!("scatter_varcount_into");
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, (), recvbuf)
            .block();
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
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, (), recvbuf)
            .immediate(scope)
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
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, sendbuf, recvbuf)
            .block();
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
        Call::new(handle(self), site, ScatterVarcount { root: self.root_rank() }, sendbuf, recvbuf)
            .immediate(scope)
    }

    /// Contributes to what the root folds (section 6.9.1); on ranks other than the root.
    ///
    /// # Panics
    /// On the root, and when the operation is not defined for the elements.
    #[track_caller]
    fn reduce_into<S: Buffer + ?Sized, O: Operation>(&self, sendbuf: &S, op: O) {
        let site = site!("reduce_into");
        Call::new(handle(self), site, Reduce { root: Some(self.root_rank()), op }, sendbuf, ())
            .block();
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
        Call::new(handle(self), site, Reduce { root: Some(self.root_rank()), op }, sendbuf, ())
            .immediate(scope)
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
        Call::new(
            handle(self),
            site,
            Reduce { root: Some(self.root_rank()), op },
            sendbuf,
            recvbuf,
        )
        .block();
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
        Call::new(handle(self), site, Reduce { root: Some(self.root_rank()), op }, sendbuf, recvbuf)
            .immediate(scope)
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
fn handle<T: AsCommunicator + ?Sized>(this: &T) -> &CommunicatorHandle {
    this.as_communicator().as_handle()
}
