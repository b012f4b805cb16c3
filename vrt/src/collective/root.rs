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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| assert_eq!(world.process_at_rank(1).root_rank(), 1));
    /// ```
    fn root_rank(&self) -> Rank;

    /// Gives every rank what the root has (section 6.4).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let root = world.process_at_rank(1);
    ///     let mut number = if root.is_self() { 7 } else { 0 };
    ///     root.broadcast_into(&mut number);
    ///     assert_eq!(number, 7);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let root = world.process_at_rank(0);
    ///     // What the root has does not fit.
    ///     let mut numbers = vec![7; if root.is_self() { 3 } else { 2 }];
    ///     let outcome = root.try_broadcast_into(&mut numbers);
    ///     assert!(root.is_self() || outcome.is_err());
    ///
    ///     let mut number = if root.is_self() { 7 } else { 0 };
    ///     assert!(root.try_broadcast_into(&mut number).is_ok());
    ///     assert_eq!(number, 7);
    /// });
    /// ```
    #[track_caller]
    fn try_broadcast_into<Buf: BufferMut + ?Sized>(&self, buffer: &mut Buf) -> Result<(), Error> {
        let site = site!("broadcast_into");
        Call::new(handle(self), site, Broadcast { root: self.root_rank() }, (), buffer).try_block()
    }

    /// [`broadcast_into`](Self::broadcast_into), as a request.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let root = world.process_at_rank(1);
    ///     let mut number = if root.is_self() { 7 } else { 0 };
    ///     vrt::request::scope(|scope| {
    ///         let broadcast = root.immediate_broadcast_into(scope, &mut number);
    ///         broadcast.wait();
    ///     });
    ///     assert_eq!(number, 7);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, me) = (world.process_at_rank(0), world.rank());
    ///     if root.is_self() {
    ///         let mut all = [0; 3];
    ///         root.gather_into_root(&me, &mut all);
    ///         assert_eq!(all, [0, 1, 2]);
    ///     } else {
    ///         root.gather_into(&me);
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (root, me) = (world.process_at_rank(0), world.rank());
    ///     if root.is_self() {
    ///         // This call is not for the root.
    ///         assert_eq!(root.try_gather_into(&me).unwrap_err().class(), vrt::ErrorClass::Root);
    ///         root.gather_into_root(&me, &mut [0; 2]);
    ///     } else {
    ///         assert!(root.try_gather_into(&me).is_ok());
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, me, mut all) = (world.process_at_rank(0), world.rank(), [0; 3]);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_gather_into_root(scope, &me, &mut all).wait();
    ///         } else {
    ///             root.immediate_gather_into(scope, &me).wait();
    ///         }
    ///     });
    ///     assert!(!root.is_self() || all == [0, 1, 2]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, mine) = (world.process_at_rank(0), [world.rank(); 2]);
    ///     if root.is_self() {
    ///         let mut all = [0; 6];
    ///         root.gather_into_root(&mine, &mut all);
    ///         assert_eq!(all, [0, 0, 1, 1, 2, 2]);
    ///     } else {
    ///         root.gather_into(&mine);
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (root, me) = (world.process_at_rank(0), world.rank());
    ///     if root.is_self() {
    ///         let mut all = [0; 2];
    ///         // Two contributions do not fit one place.
    ///         assert!(root.try_gather_into_root(&me, &mut all[..1]).is_err());
    ///
    ///         assert!(root.try_gather_into_root(&me, &mut all).is_ok());
    ///         assert_eq!(all, [0, 1]);
    ///     } else {
    ///         root.gather_into(&me);
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, me, mut all) = (world.process_at_rank(0), world.rank(), [0; 3]);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             let gather = root.immediate_gather_into_root(scope, &me, &mut all);
    ///             assert_eq!(*gather.wait_for_data(), [0, 1, 2]);
    ///         } else {
    ///             root.immediate_gather_into(scope, &me).wait();
    ///         }
    ///     });
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` contributes `r` values.
    ///     let (root, mine) = (world.process_at_rank(0), vec![world.rank(); world.rank() as usize]);
    ///     if root.is_self() {
    ///         let mut all = [0; 3];
    ///         let mut parts = PartitionMut::new(&mut all, [0, 1, 2], [0, 0, 1]);
    ///         root.gather_varcount_into_root(&mine, &mut parts);
    ///         assert_eq!(all, [1, 2, 2]);
    ///     } else {
    ///         root.gather_varcount_into(&mine);
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` contributes `r` values.
    ///     let (root, mine) = (world.process_at_rank(0), vec![world.rank(); world.rank() as usize]);
    ///     let mut all = [0; 3];
    ///     let mut parts = PartitionMut::new(&mut all, [0, 1, 2], [0, 0, 1]);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_gather_varcount_into_root(scope, &mine, &mut parts).wait();
    ///         } else {
    ///             root.immediate_gather_varcount_into(scope, &mine).wait();
    ///         }
    ///     });
    ///     assert!(!root.is_self() || all == [1, 2, 2]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // One value of rank 0, two of rank 1, in reverse order.
    ///     let (root, mine) = (world.process_at_rank(0), vec![world.rank(); 1 + world.rank() as usize]);
    ///     if root.is_self() {
    ///         let mut all = [9; 3];
    ///         let mut parts = PartitionMut::new(&mut all, [1, 2], [2, 0]);
    ///         root.gather_varcount_into_root(&mine, &mut parts);
    ///         assert_eq!(all, [1, 1, 0]);
    ///     } else {
    ///         root.gather_varcount_into(&mine);
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // One value of rank 0, two of rank 1.
    ///     let (root, mine) = (world.process_at_rank(0), vec![world.rank(); 1 + world.rank() as usize]);
    ///     let mut all = [9; 3];
    ///     let mut parts = PartitionMut::new(&mut all, [1, 2], [0, 1]);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_gather_varcount_into_root(scope, &mine, &mut parts).wait();
    ///         } else {
    ///             root.immediate_gather_varcount_into(scope, &mine).wait();
    ///         }
    ///     });
    ///     assert!(!root.is_self() || all == [0, 1, 1]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, mut mine) = (world.process_at_rank(0), 0);
    ///     if root.is_self() {
    ///         root.scatter_into_root(&[5, 6, 7], &mut mine);
    ///     } else {
    ///         root.scatter_into(&mut mine);
    ///     }
    ///     assert_eq!(mine, 5 + world.rank());
    /// });
    /// ```
    #[track_caller]
    fn scatter_into<R: BufferMut + ?Sized>(&self, recvbuf: &mut R) {
        let site = site!("scatter_into");
        Call::new(handle(self), site, Scatter { root: self.root_rank() }, (), recvbuf).block();
    }

    /// [`scatter_into`](Self::scatter_into), as a request.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, all, mut mine) = (world.process_at_rank(0), [5, 6, 7], 0);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_scatter_into_root(scope, &all, &mut mine).wait();
    ///         } else {
    ///             root.immediate_scatter_into(scope, &mut mine).wait();
    ///         }
    ///     });
    ///     assert_eq!(mine, 5 + world.rank());
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (root, mut mine) = (world.process_at_rank(0), [0; 2]);
    ///     if root.is_self() {
    ///         root.scatter_into_root(&[5, 6, 7, 8], &mut mine);
    ///     } else {
    ///         root.scatter_into(&mut mine);
    ///     }
    ///     assert_eq!(mine, [[5, 6], [7, 8]][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (root, all, mut mine) = (world.process_at_rank(0), [5, 6, 7, 8], [0; 2]);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_scatter_into_root(scope, &all, &mut mine).wait();
    ///         } else {
    ///             root.immediate_scatter_into(scope, &mut mine).wait();
    ///         }
    ///     });
    ///     assert_eq!(mine, [[5, 6], [7, 8]][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` gets `r` values.
    ///     let (root, mut mine) = (world.process_at_rank(0), vec![0; world.rank() as usize]);
    ///     if root.is_self() {
    ///         let parts = Partition::new(&[5, 6, 7], [0, 1, 2], [0, 0, 1]);
    ///         root.scatter_varcount_into_root(&parts, &mut mine);
    ///     } else {
    ///         root.scatter_varcount_into(&mut mine);
    ///     }
    ///     assert_eq!(mine, [&[][..], &[5], &[6, 7]][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` gets `r` values.
    ///     let (root, mut mine) = (world.process_at_rank(0), vec![0; world.rank() as usize]);
    ///     let parts = Partition::new(&[5, 6, 7], [0, 1, 2], [0, 0, 1]);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_scatter_varcount_into_root(scope, &parts, &mut mine).wait();
    ///         } else {
    ///             root.immediate_scatter_varcount_into(scope, &mut mine).wait();
    ///         }
    ///     });
    ///     assert_eq!(mine, [&[][..], &[5], &[6, 7]][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // Rank 0 gets the last two values, rank 1 the first.
    ///     let (root, mut mine) = (world.process_at_rank(0), vec![0; 2 - world.rank() as usize]);
    ///     let parts = Partition::new(&[5, 6, 7], [2, 1], [1, 0]);
    ///     if root.is_self() {
    ///         root.scatter_varcount_into_root(&parts, &mut mine);
    ///     } else {
    ///         root.scatter_varcount_into(&mut mine);
    ///     }
    ///     assert_eq!(mine, [&[6, 7][..], &[5]][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // Rank 0 gets the last two values, rank 1 the first.
    ///     let (root, mut mine) = (world.process_at_rank(0), vec![0; 2 - world.rank() as usize]);
    ///     let parts = Partition::new(&[5, 6, 7], [2, 1], [1, 0]);
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_scatter_varcount_into_root(scope, &parts, &mut mine).wait();
    ///         } else {
    ///             root.immediate_scatter_varcount_into(scope, &mut mine).wait();
    ///         }
    ///     });
    ///     assert_eq!(mine, [&[6, 7][..], &[5]][world.rank() as usize]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, me, op) = (world.process_at_rank(0), world.rank(), SystemOperation::sum());
    ///     if root.is_self() {
    ///         let mut sum = 0;
    ///         root.reduce_into_root(&me, &mut sum, op);
    ///         assert_eq!(sum, 0 + 1 + 2);
    ///     } else {
    ///         root.reduce_into(&me, op);
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, me, op) = (world.process_at_rank(0), world.rank(), SystemOperation::sum());
    ///     let mut sum = 0;
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_reduce_into_root(scope, &me, &mut sum, op).wait();
    ///         } else {
    ///             root.immediate_reduce_into(scope, &me, op).wait();
    ///         }
    ///     });
    ///     assert!(!root.is_self() || sum == 0 + 1 + 2);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, mine, op) = (world.process_at_rank(0), [world.rank(), 5], SystemOperation::max());
    ///     if root.is_self() {
    ///         let mut largest = [0; 2];
    ///         root.reduce_into_root(&mine, &mut largest, op);
    ///         assert_eq!(largest, [2, 5]);
    ///     } else {
    ///         root.reduce_into(&mine, op);
    ///     }
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (root, mine, op) = (world.process_at_rank(0), [world.rank(), 5], SystemOperation::max());
    ///     let mut largest = [0; 2];
    ///     vrt::request::scope(|scope| {
    ///         if root.is_self() {
    ///             root.immediate_reduce_into_root(scope, &mine, &mut largest, op).wait();
    ///         } else {
    ///             root.immediate_reduce_into(scope, &mine, op).wait();
    ///         }
    ///     });
    ///     assert!(!root.is_self() || largest == [2, 5]);
    /// });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use std::process::Command;
    ///
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let outcome = world.this_process().spawn(&Command::new("worker"), 2);
    ///     assert!(matches!(outcome, Err(vrt::MpiError::Spawn(2, 2))));
    /// });
    /// ```
    fn spawn(&self, command: &Command, maxprocs: Rank) -> Result<InterCommunicator, MpiError> {
        let _ = command;
        Err(MpiError::Spawn(maxprocs, maxprocs))
    }

    /// Starts processes of several programs.
    ///
    /// # Errors
    /// Always.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::process::Command;
    ///
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(1, |world| {
    ///     let programs = [Command::new("worker"), Command::new("observer")];
    ///     let outcome = world.this_process().spawn_multiple(&programs, &[2, 1]);
    ///     assert!(matches!(outcome, Err(vrt::MpiError::Spawn(3, 3))));
    /// });
    /// ```
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
