//! Collective operations without a root, blocking and immediate.

pub(super) mod apart;
pub(super) mod persistent;

use crate::Count;
use crate::collective::call::Call;
use crate::collective::moves::{AllToAll, AllToAllVarcount, Barrier, Gather, GatherVarcount};
use crate::collective::operation::Operation;
use crate::collective::reductions::{Reduce, ReduceScatter, Scan};
use crate::datatype::{
    Buffer, BufferMut, DynBuffer, DynBufferMut, PartitionedBuffer, PartitionedBufferMut,
};
use crate::error::Error;
use crate::operation::site;
use crate::request::{Request, Scope, StaticScope};
use crate::topology::Communicator;

/// Collective operations without a root.
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let me = world.rank();
///     let mut all = [0; 3];
///     world.all_gather_into(&(10 * me), &mut all);
///     assert_eq!(all, [0, 10, 20]);
///
///     let mut up_to_me = 0;
///     world.scan_into(&me, &mut up_to_me, SystemOperation::sum());
///     assert_eq!(up_to_me, (0..=me).sum::<i32>());
/// });
/// ```
pub trait CommunicatorCollectives: Communicator {
    /// Waits until all ranks have come here (section 6.3).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicI32, Ordering};
    ///
    /// use vrt::traits::*;
    ///
    /// let arrived = AtomicI32::new(0);
    /// vrt::run_local(4, |world| {
    ///     arrived.fetch_add(1, Ordering::Relaxed);
    ///     world.barrier();
    ///     assert_eq!(arrived.load(Ordering::Relaxed), world.size());
    /// });
    /// ```
    #[track_caller]
    fn barrier(&self) {
        let site = site!("barrier");
        Call::new(self.as_handle(), site, Barrier, (), ()).block();
    }

    /// [`barrier`](Self::barrier), as a request.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicI32, Ordering};
    ///
    /// use vrt::traits::*;
    ///
    /// let arrived = AtomicI32::new(0);
    /// vrt::run_local(4, |world| {
    ///     arrived.fetch_add(1, Ordering::Relaxed);
    ///     let barrier = world.immediate_barrier();
    ///     // Here a rank does what it can do without the others.
    ///     barrier.wait();
    ///     assert_eq!(arrived.load(Ordering::Relaxed), world.size());
    /// });
    /// ```
    #[track_caller]
    fn immediate_barrier(&self) -> Request<'static, ()> {
        let site = site!("immediate_barrier");
        Call::new(self.as_handle(), site, Barrier, (), ()).immediate(StaticScope)
    }

    /// Gives every rank the contributions of all, in rank order (section 6.7).
    ///
    /// # Panics
    /// When the receive buffer is not as long as all contributions.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (mine, mut all) = ([world.rank(); 2], [0; 6]);
    ///     world.all_gather_into(&mine, &mut all);
    ///     assert_eq!(all, [0, 0, 1, 1, 2, 2]);
    /// });
    /// ```
    #[track_caller]
    fn all_gather_into<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_gather_into");
        Call::new(self.as_handle(), site, Gather { root: None }, sendbuf, recvbuf).block();
    }

    /// [`all_gather_into`](Self::all_gather_into) that returns what was wrong.
    ///
    /// # Errors
    /// An argument is wrong, and this rank has not taken part; or ranks do not agree.
    /// [`error`](crate::error) says what holds then, here and on the others.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (me, mut all) = (world.rank(), [0; 2]);
    ///     // Two contributions do not fit one place.
    ///     let error = world.try_all_gather_into(&me, &mut all[..1]).unwrap_err();
    ///     assert_eq!(error.class(), vrt::ErrorClass::Count);
    ///
    ///     assert!(world.try_all_gather_into(&me, &mut all).is_ok());
    ///     assert_eq!(all, [0, 1]);
    /// });
    /// ```
    #[track_caller]
    fn try_all_gather_into<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> Result<(), Error> {
        let site = site!("all_gather_into");
        Call::new(self.as_handle(), site, Gather { root: None }, sendbuf, recvbuf).try_block()
    }

    /// [`all_gather_into`](Self::all_gather_into), as a request.
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
    ///     let (me, mut all) = (world.rank(), [0; 3]);
    ///     vrt::request::scope(|scope| {
    ///         let gather = world.immediate_all_gather_into(scope, &me, &mut all);
    ///         gather.wait();
    ///     });
    ///     assert_eq!(all, [0, 1, 2]);
    /// });
    /// ```
    #[track_caller]
    fn immediate_all_gather_into<'a, S, R, Sc>(
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
        let site = site!("immediate_all_gather_into");
        Call::new(self.as_handle(), site, Gather { root: None }, sendbuf, recvbuf).immediate(scope)
    }

    /// Gives every rank the contributions of all, of different lengths (section 6.7).
    ///
    /// # Panics
    /// When there is not one part for each rank, or a contribution is not as long as its part.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` contributes `r` values.
    ///     let (mine, mut all) = (vec![world.rank(); world.rank() as usize], [0; 3]);
    ///     let mut parts = PartitionMut::new(&mut all, [0, 1, 2], [0, 0, 1]);
    ///     world.all_gather_varcount_into(&mine, &mut parts);
    ///     assert_eq!(all, [1, 2, 2]);
    /// });
    /// ```
    #[track_caller]
    fn all_gather_varcount_into<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_gather_varcount_into");
        Call::new(self.as_handle(), site, GatherVarcount { root: None }, sendbuf, recvbuf).block();
    }

    /// [`all_gather_varcount_into`](Self::all_gather_varcount_into), as a request.
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
    ///     let (mine, mut all) = (vec![world.rank(); world.rank() as usize], [0; 3]);
    ///     let mut parts = PartitionMut::new(&mut all, [0, 1, 2], [0, 0, 1]);
    ///     vrt::request::scope(|scope| {
    ///         let gather = world.immediate_all_gather_varcount_into(scope, &mine, &mut parts);
    ///         gather.wait();
    ///     });
    ///     assert_eq!(all, [1, 2, 2]);
    /// });
    /// ```
    #[track_caller]
    fn immediate_all_gather_varcount_into<'a, S, R, Sc>(
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
        let site = site!("immediate_all_gather_varcount_into");
        Call::new(self.as_handle(), site, GatherVarcount { root: None }, sendbuf, recvbuf)
            .immediate(scope)
    }

    /// Sends a part to each rank and receives one from each (section 6.8).
    ///
    /// # Panics
    /// When the buffers are not equally long and a multiple of the number of ranks.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Value `i` is for rank `i`.
    ///     let mine = [0, 1, 2].map(|to| 10 * world.rank() + to);
    ///     let mut theirs = [0; 3];
    ///     world.all_to_all_into(&mine, &mut theirs);
    ///     assert_eq!(theirs, [0, 1, 2].map(|from| 10 * from + world.rank()));
    /// });
    /// ```
    #[track_caller]
    fn all_to_all_into<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_to_all_into");
        Call::new(self.as_handle(), site, AllToAll, sendbuf, recvbuf).block();
    }

    /// [`all_to_all_into`](Self::all_to_all_into) that returns what was wrong.
    ///
    /// # Errors
    /// An argument is wrong, and this rank has not taken part; or ranks do not agree.
    /// [`error`](crate::error) says what holds then, here and on the others.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let (mine, mut theirs) = ([world.rank(); 2], [0; 2]);
    ///     // The buffers have to be equally long.
    ///     assert!(world.try_all_to_all_into(&mine, &mut theirs[..1]).is_err());
    ///
    ///     assert!(world.try_all_to_all_into(&mine, &mut theirs).is_ok());
    ///     assert_eq!(theirs, [0, 1]);
    /// });
    /// ```
    #[track_caller]
    fn try_all_to_all_into<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) -> Result<(), Error> {
        let site = site!("all_to_all_into");
        Call::new(self.as_handle(), site, AllToAll, sendbuf, recvbuf).try_block()
    }

    /// [`all_to_all_into`](Self::all_to_all_into), as a request.
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
    ///     let (mine, mut theirs) = ([world.rank(); 3], [0; 3]);
    ///     vrt::request::scope(|scope| {
    ///         let exchange = world.immediate_all_to_all_into(scope, &mine, &mut theirs);
    ///         exchange.wait();
    ///     });
    ///     assert_eq!(theirs, [0, 1, 2]);
    /// });
    /// ```
    #[track_caller]
    fn immediate_all_to_all_into<'a, S, R, Sc>(
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
        let site = site!("immediate_all_to_all_into");
        Call::new(self.as_handle(), site, AllToAll, sendbuf, recvbuf).immediate(scope)
    }

    /// Sends a part to each rank and receives one from each, of different lengths (section 6.8).
    ///
    /// # Panics
    /// When there is not one part for each rank, or a part is not as long as its place.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{Partition, PartitionMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // Two values for the other rank, none for this one.
    ///     let me = world.rank();
    ///     let counts = if me == 0 { [0, 2] } else { [2, 0] };
    ///     let (mine, mut theirs) = ([me; 2], [-1; 2]);
    ///     let parts = Partition::new(&mine, counts, [0; 2]);
    ///     let mut room = PartitionMut::new(&mut theirs, counts, [0; 2]);
    ///     world.all_to_all_varcount_into(&parts, &mut room);
    ///     assert_eq!(theirs, [1 - me; 2]);
    /// });
    /// ```
    #[track_caller]
    fn all_to_all_varcount_into<S: PartitionedBuffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_to_all_varcount_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbuf, recvbuf).block();
    }

    /// [`all_to_all_varcount_into`](Self::all_to_all_varcount_into), as a request.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{Partition, PartitionMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // Two values for the other rank, none for this one.
    ///     let me = world.rank();
    ///     let counts = if me == 0 { [0, 2] } else { [2, 0] };
    ///     let (mine, mut theirs) = ([me; 2], [-1; 2]);
    ///     let parts = Partition::new(&mine, counts, [0; 2]);
    ///     let mut room = PartitionMut::new(&mut theirs, counts, [0; 2]);
    ///     vrt::request::scope(|scope| {
    ///         world.immediate_all_to_all_varcount_into(scope, &parts, &mut room).wait();
    ///     });
    ///     assert_eq!(theirs, [1 - me; 2]);
    /// });
    /// ```
    #[track_caller]
    fn immediate_all_to_all_varcount_into<'a, S, R, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + PartitionedBuffer + ?Sized,
        R: 'a + PartitionedBufferMut + ?Sized,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_all_to_all_varcount_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbuf, recvbuf).immediate(scope)
    }

    /// Sends a buffer to each rank and receives one from each, each of its own datatype
    /// (`MPI_Alltoallw`, section 6.8): buffer `i` goes to and comes from rank `i`.
    ///
    /// # Panics
    /// When there is not one buffer for each rank, or one is not as long as its place.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{DynBuffer, DynBufferMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // A letter stays here, a number goes to the other rank.
    ///     let me = world.rank() as usize;
    ///     let (letter, number, mut same, mut theirs) = ([b'x'], [me as f64], [0u8], [0.0]);
    ///     let mut sent = [DynBuffer::new(&letter), DynBuffer::new(&number)];
    ///     let mut room = [DynBufferMut::new(&mut same), DynBufferMut::new(&mut theirs)];
    ///     sent.rotate_right(me);
    ///     room.rotate_right(me);
    ///     world.all_to_all_buffers_into(&sent, &mut room);
    ///     assert_eq!((same, theirs), (letter, [1.0 - me as f64]));
    /// });
    /// ```
    #[track_caller]
    fn all_to_all_buffers_into(
        &self,
        sendbufs: &[DynBuffer<'_>],
        recvbufs: &mut [DynBufferMut<'_>],
    ) {
        let site = site!("all_to_all_buffers_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbufs, recvbufs).block();
    }

    /// [`all_to_all_buffers_into`](Self::all_to_all_buffers_into), as a request.
    ///
    /// # Panics
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{DynBuffer, DynBufferMut};
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // A letter stays here, a number goes to the other rank.
    ///     let me = world.rank() as usize;
    ///     let (letter, number, mut same, mut theirs) = ([b'x'], [me as f64], [0u8], [0.0]);
    ///     let mut sent = [DynBuffer::new(&letter), DynBuffer::new(&number)];
    ///     let mut room = [DynBufferMut::new(&mut same), DynBufferMut::new(&mut theirs)];
    ///     sent.rotate_right(me);
    ///     room.rotate_right(me);
    ///     vrt::request::scope(|scope| {
    ///         world.immediate_all_to_all_buffers_into(scope, &sent, &mut room).wait();
    ///     });
    ///     assert_eq!((same, theirs), (letter, [1.0 - me as f64]));
    /// });
    /// ```
    #[track_caller]
    fn immediate_all_to_all_buffers_into<'a, 's, 'r, Sc: Scope<'a>>(
        &self,
        scope: Sc,
        sendbufs: &'a [DynBuffer<'s>],
        recvbufs: &'a mut [DynBufferMut<'r>],
    ) -> Request<'a, [DynBufferMut<'r>], Sc> {
        let site = site!("immediate_all_to_all_buffers_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbufs, recvbufs).immediate(scope)
    }

    /// Folds the contributions of all ranks and gives every rank the result (section 6.9.6).
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for the
    /// elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let (mine, mut sums) = ([1, world.rank()], [0; 2]);
    ///     world.all_reduce_into(&mine, &mut sums, SystemOperation::sum());
    ///     assert_eq!(sums, [4, 0 + 1 + 2 + 3]);
    /// });
    /// ```
    #[track_caller]
    fn all_reduce_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("all_reduce_into");
        Call::new(self.as_handle(), site, Reduce { root: None, op }, sendbuf, recvbuf).block();
    }

    /// [`all_reduce_into`](Self::all_reduce_into) that returns what was wrong.
    ///
    /// # Errors
    /// An argument is wrong, and this rank has not taken part; or ranks do not agree.
    /// [`error`](crate::error) says what holds then, here and on the others.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // The ranks contribute different lengths. Both hear of it, and go on.
    ///     let mine = vec![1; 1 + world.rank() as usize];
    ///     let mut sums = mine.clone();
    ///     assert!(world.try_all_reduce_into(&mine, &mut sums, SystemOperation::sum()).is_err());
    ///
    ///     let mut sum = 0;
    ///     world.all_reduce_into(&1, &mut sum, SystemOperation::sum());
    ///     assert_eq!(sum, 2);
    /// });
    /// ```
    #[track_caller]
    fn try_all_reduce_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) -> Result<(), Error> {
        let site = site!("all_reduce_into");
        Call::new(self.as_handle(), site, Reduce { root: None, op }, sendbuf, recvbuf).try_block()
    }

    /// [`all_reduce_into`](Self::all_reduce_into), as a request.
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
    /// vrt::run_local(4, |world| {
    ///     let (me, mut largest) = (world.rank(), 0);
    ///     vrt::request::scope(|scope| {
    ///         let max = SystemOperation::max();
    ///         let reduce = world.immediate_all_reduce_into(scope, &me, &mut largest, max);
    ///         reduce.wait();
    ///     });
    ///     assert_eq!(largest, 3);
    /// });
    /// ```
    #[track_caller]
    fn immediate_all_reduce_into<'a, S, R, O, Sc>(
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
        let site = site!("immediate_all_reduce_into");
        Call::new(self.as_handle(), site, Reduce { root: None, op }, sendbuf, recvbuf)
            .immediate(scope)
    }

    /// Folds the contributions of all ranks and gives each rank an equal part of the result (section 6.10.1).
    ///
    /// # Panics
    /// When the send buffer is not as long as all parts, or the operation is not defined for the elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Sum `i` is for rank `i`.
    ///     let (mine, mut sum) = ([10, 20, 30], 0);
    ///     world.reduce_scatter_block_into(&mine, &mut sum, SystemOperation::sum());
    ///     assert_eq!(sum, [30, 60, 90][world.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn reduce_scatter_block_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("reduce_scatter_block_into");
        Call::new(self.as_handle(), site, ReduceScatter { counts: None, op }, sendbuf, recvbuf)
            .block();
    }

    /// [`reduce_scatter_block_into`](Self::reduce_scatter_block_into), as a request.
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
    ///     let (mine, mut sum) = ([10, 20, 30], 0);
    ///     vrt::request::scope(|scope| {
    ///         let op = SystemOperation::sum();
    ///         world.immediate_reduce_scatter_block_into(scope, &mine, &mut sum, op).wait();
    ///     });
    ///     assert_eq!(sum, [30, 60, 90][world.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn immediate_reduce_scatter_block_into<'a, S, R, O, Sc>(
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
        let site = site!("immediate_reduce_scatter_block_into");
        Call::new(self.as_handle(), site, ReduceScatter { counts: None, op }, sendbuf, recvbuf)
            .immediate(scope)
    }

    /// Folds the contributions of all ranks and gives rank `i` a part of `counts[i]` elements of
    /// the result (section 6.10.2).
    ///
    /// # Panics
    /// When there is not one count for each rank, the buffers do not have the lengths that the
    /// counts say, or the operation is not defined for the elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // One of the sums is for rank 0, two are for rank 1.
    ///     let (mine, counts) = ([10, 20, 30], [1, 2]);
    ///     let mut sums = vec![0; counts[world.rank() as usize] as usize];
    ///     world.reduce_scatter_into(&mine, &mut sums, &counts, SystemOperation::sum());
    ///     assert_eq!(sums, if world.rank() == 0 { &[20][..] } else { &[40, 60] });
    /// });
    /// ```
    #[track_caller]
    fn reduce_scatter_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        counts: &[Count],
        op: O,
    ) {
        let site = site!("reduce_scatter_into");
        Call::new(
            self.as_handle(),
            site,
            ReduceScatter { counts: Some(counts.to_vec()), op },
            sendbuf,
            recvbuf,
        )
        .block();
    }

    /// [`reduce_scatter_into`](Self::reduce_scatter_into), as a request.
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
    /// vrt::run_local(2, |world| {
    ///     // One of the sums is for rank 0, two are for rank 1.
    ///     let (mine, counts) = ([10, 20, 30], [1, 2]);
    ///     let mut sums = vec![0; counts[world.rank() as usize] as usize];
    ///     vrt::request::scope(|scope| {
    ///         let op = SystemOperation::sum();
    ///         world.immediate_reduce_scatter_into(scope, &mine, &mut sums, &counts, op).wait();
    ///     });
    ///     assert_eq!(sums, if world.rank() == 0 { &[20][..] } else { &[40, 60] });
    /// });
    /// ```
    #[track_caller]
    fn immediate_reduce_scatter_into<'a, S, R, O, Sc>(
        &self,
        scope: Sc,
        sendbuf: &'a S,
        recvbuf: &'a mut R,
        counts: &[Count],
        op: O,
    ) -> Request<'a, R, Sc>
    where
        S: 'a + Buffer + ?Sized,
        R: 'a + BufferMut + ?Sized,
        O: 'a + Operation,
        Sc: Scope<'a>,
    {
        let site = site!("immediate_reduce_scatter_into");
        Call::new(
            self.as_handle(),
            site,
            ReduceScatter { counts: Some(counts.to_vec()), op },
            sendbuf,
            recvbuf,
        )
        .immediate(scope)
    }

    /// Folds the contributions of the ranks up to this one (section 6.11.1).
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for the
    /// elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` has `r + 1` elements: where do they end among those of all?
    ///     let (mine, mut end) = (world.rank() + 1, 0);
    ///     world.scan_into(&mine, &mut end, SystemOperation::sum());
    ///     assert_eq!(end, [1, 3, 6][world.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn scan_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: false, op }, sendbuf, recvbuf).block();
    }

    /// [`scan_into`](Self::scan_into), as a request.
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
    ///     let (mine, mut end) = (world.rank() + 1, 0);
    ///     vrt::request::scope(|scope| {
    ///         let scan = world.immediate_scan_into(scope, &mine, &mut end, SystemOperation::sum());
    ///         scan.wait();
    ///     });
    ///     assert_eq!(end, [1, 3, 6][world.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn immediate_scan_into<'a, S, R, O, Sc>(
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
        let site = site!("immediate_scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: false, op }, sendbuf, recvbuf)
            .immediate(scope)
    }

    /// Folds the contributions of the ranks before this one; rank 0's buffer stays as it is (section 6.11.2).
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for the
    /// elements.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` has `r + 1` elements: where do they begin among those of all?
    ///     let (mine, mut begin) = (world.rank() + 1, 0);
    ///     world.exclusive_scan_into(&mine, &mut begin, SystemOperation::sum());
    ///     assert_eq!(begin, [0, 1, 3][world.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn exclusive_scan_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("exclusive_scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: true, op }, sendbuf, recvbuf).block();
    }

    /// [`exclusive_scan_into`](Self::exclusive_scan_into), as a request.
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
    ///     let (mine, mut begin) = (world.rank() + 1, 0);
    ///     vrt::request::scope(|scope| {
    ///         let sum = SystemOperation::sum();
    ///         world.immediate_exclusive_scan_into(scope, &mine, &mut begin, sum).wait();
    ///     });
    ///     assert_eq!(begin, [0, 1, 3][world.rank() as usize]);
    /// });
    /// ```
    #[track_caller]
    fn immediate_exclusive_scan_into<'a, S, R, O, Sc>(
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
        let site = site!("immediate_exclusive_scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: true, op }, sendbuf, recvbuf)
            .immediate(scope)
    }
}

impl<C: Communicator + ?Sized> CommunicatorCollectives for C {}
