//! Collective operations without a root, to be started again and again (MPI-4.1 section 6.13).
//!
//! A persistent operation has its arguments once, then any number of starts. All ranks make them in the same order, and
//! start them in the same order. Between two starts the buffers are the program's, so what a started one uses is a copy.

use crate::Count;
use crate::collective::call::Call;
use crate::collective::moves::{AllToAll, AllToAllVarcount, Barrier, Gather, GatherVarcount};
use crate::collective::operation::Operation;
use crate::collective::reductions::{Reduce, ReduceScatter, Scan};
use crate::datatype::{
    Buffer, BufferMut, DynBuffer, DynBufferMut, PartitionedBuffer, PartitionedBufferMut,
};
use crate::operation::site;
use crate::request::PersistentRequest;
use crate::topology::Communicator;

/// Persistent forms of [`CommunicatorCollectives`](crate::collective::CommunicatorCollectives).
///
/// # Examples
///
/// ```
/// use vrt::collective::SystemOperation;
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let (mut mine, mut largest) = (0, 0);
///     let max = SystemOperation::max();
///     let mut reduce = world.persistent_all_reduce_into(&mut mine, &mut largest, max);
///     for step in 1..4 {
///         **reduce.send_data() = step * world.rank();
///         reduce.start();
///         reduce.wait();
///         assert_eq!(**reduce.receive_data(), step * 2);
///     }
/// });
/// ```
pub trait PersistentCollectives: Communicator {
    /// A barrier to be started again and again.
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
    ///     let mut barrier = world.persistent_barrier();
    ///     for step in 1..=3 {
    ///         arrived.fetch_add(1, Ordering::Relaxed);
    ///         barrier.start();
    ///         barrier.wait();
    ///         assert!(arrived.load(Ordering::Relaxed) >= step * world.size());
    ///     }
    /// });
    /// ```
    #[track_caller]
    fn persistent_barrier(&self) -> PersistentRequest<'static, (), ()> {
        Call::new(self.as_handle(), site!("persistent_barrier"), Barrier, (), ()).persistent()
    }

    /// An `all_gather_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (mut mine, mut all) = (0, [0; 3]);
    ///     let mut gather = world.persistent_all_gather_into(&mut mine, &mut all);
    ///     for step in 0..2 {
    ///         **gather.send_data() = 10 * step + world.rank();
    ///         gather.start();
    ///         gather.wait();
    ///         assert_eq!(**gather.receive_data(), [0, 1, 2].map(|rank| 10 * step + rank));
    ///     }
    /// });
    /// ```
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
        let site = site!("persistent_all_gather_into");
        Call::new(self.as_handle(), site, Gather { root: None }, sendbuf, recvbuf).persistent()
    }

    /// An `all_gather_varcount_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` contributes `r` values.
    ///     let (mut mine, mut all) = (vec![world.rank(); world.rank() as usize], [0; 3]);
    ///     let mut parts = PartitionMut::new(&mut all, [0, 1, 2], [0, 0, 1]);
    ///     let mut gather = world.persistent_all_gather_varcount_into(&mut mine, &mut parts);
    ///     gather.start();
    ///     gather.wait();
    ///     drop(gather);
    ///     assert_eq!(all, [1, 2, 2]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_all_gather_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("persistent_all_gather_varcount_into");
        Call::new(self.as_handle(), site, GatherVarcount { root: None }, sendbuf, recvbuf)
            .persistent()
    }

    /// An `all_to_all_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (mut mine, mut theirs) = ([0; 3], [0; 3]);
    ///     let mut exchange = world.persistent_all_to_all_into(&mut mine, &mut theirs);
    ///     for step in 0..2 {
    ///         exchange.send_data().fill(10 * step + world.rank());
    ///         exchange.start();
    ///         exchange.wait();
    ///         assert_eq!(**exchange.receive_data(), [0, 1, 2].map(|rank| 10 * step + rank));
    ///     }
    /// });
    /// ```
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
        let site = site!("persistent_all_to_all_into");
        Call::new(self.as_handle(), site, AllToAll, sendbuf, recvbuf).persistent()
    }

    /// An `all_to_all_varcount_into` to be started again and again.
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
    ///     let mut parts = Partition::new(&mine, counts, [0; 2]);
    ///     let mut room = PartitionMut::new(&mut theirs, counts, [0; 2]);
    ///     let mut exchange = world.persistent_all_to_all_varcount_into(&mut parts, &mut room);
    ///     exchange.start();
    ///     exchange.wait();
    ///     drop(exchange);
    ///     assert_eq!(theirs, [1 - me; 2]);
    /// });
    /// ```
    #[track_caller]
    fn persistent_all_to_all_varcount_into<'a, S, R>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: PartitionedBuffer + ?Sized,
        R: PartitionedBufferMut + ?Sized,
    {
        let site = site!("persistent_all_to_all_varcount_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbuf, recvbuf).persistent()
    }

    /// An `all_to_all_buffers_into` to be started again and again.
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
    ///     let mut exchange = world.persistent_all_to_all_buffers_into(&mut sent, &mut room);
    ///     exchange.start();
    ///     exchange.wait();
    ///     drop(exchange);
    ///     assert_eq!((same, theirs), (letter, [1.0 - me as f64]));
    /// });
    /// ```
    #[track_caller]
    fn persistent_all_to_all_buffers_into<'a, 's, 'r>(
        &self,
        sendbufs: &'a mut [DynBuffer<'s>],
        recvbufs: &'a mut [DynBufferMut<'r>],
    ) -> PersistentRequest<'a, &'a mut [DynBuffer<'s>], &'a mut [DynBufferMut<'r>]> {
        let site = site!("persistent_all_to_all_buffers_into");
        Call::new(self.as_handle(), site, AllToAllVarcount, sendbufs, recvbufs).persistent()
    }

    /// An `all_reduce_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let (mut mine, mut sum) = (0, 0);
    ///     let op = SystemOperation::sum();
    ///     let mut reduce = world.persistent_all_reduce_into(&mut mine, &mut sum, op);
    ///     for step in 0..3 {
    ///         **reduce.send_data() = step;
    ///         reduce.start();
    ///         reduce.wait();
    ///         assert_eq!(**reduce.receive_data(), 4 * step);
    ///     }
    /// });
    /// ```
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
        let site = site!("persistent_all_reduce_into");
        Call::new(self.as_handle(), site, Reduce { root: None, op }, sendbuf, recvbuf).persistent()
    }

    /// A `reduce_scatter_block_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let (mut mine, mut sum, op) = ([10, 20, 30], 0, SystemOperation::sum());
    ///     let mut reduce = world.persistent_reduce_scatter_block_into(&mut mine, &mut sum, op);
    ///     reduce.start();
    ///     reduce.wait();
    ///     assert_eq!(**reduce.receive_data(), [30, 60, 90][world.rank() as usize]);
    /// });
    /// ```
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
        let site = site!("persistent_reduce_scatter_block_into");
        Call::new(self.as_handle(), site, ReduceScatter { counts: None, op }, sendbuf, recvbuf)
            .persistent()
    }

    /// A `reduce_scatter_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     // One of the sums is for rank 0, two are for rank 1.
    ///     let (mut mine, counts) = ([10, 20, 30], [1, 2]);
    ///     let mut sums = vec![0; counts[world.rank() as usize] as usize];
    ///     let op = SystemOperation::sum();
    ///     let mut reduce = world.persistent_reduce_scatter_into(&mut mine, &mut sums, &counts, op);
    ///     reduce.start();
    ///     reduce.wait();
    ///     assert_eq!(**reduce.receive_data(), if world.rank() == 0 { &[20][..] } else { &[40, 60] });
    /// });
    /// ```
    #[track_caller]
    fn persistent_reduce_scatter_into<'a, S, R, O>(
        &self,
        sendbuf: &'a mut S,
        recvbuf: &'a mut R,
        counts: &[Count],
        op: O,
    ) -> PersistentRequest<'a, &'a mut S, &'a mut R>
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation + Clone + 'static,
    {
        let site = site!("persistent_reduce_scatter_into");
        Call::new(
            self.as_handle(),
            site,
            ReduceScatter { counts: Some(counts.to_vec()), op },
            sendbuf,
            recvbuf,
        )
        .persistent()
    }

    /// A `scan_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` has `r + 1` elements: where do they end among those of all?
    ///     let (mut mine, mut end) = (world.rank() + 1, 0);
    ///     let mut scan = world.persistent_scan_into(&mut mine, &mut end, SystemOperation::sum());
    ///     scan.start();
    ///     scan.wait();
    ///     assert_eq!(**scan.receive_data(), [1, 3, 6][world.rank() as usize]);
    /// });
    /// ```
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
        let site = site!("persistent_scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: false, op }, sendbuf, recvbuf)
            .persistent()
    }

    /// An `exclusive_scan_into` to be started again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     // Rank `r` has `r + 1` elements: where do they begin among those of all?
    ///     let (mut mine, mut begin, sum) = (world.rank() + 1, 0, SystemOperation::sum());
    ///     let mut scan = world.persistent_exclusive_scan_into(&mut mine, &mut begin, sum);
    ///     scan.start();
    ///     scan.wait();
    ///     assert_eq!(**scan.receive_data(), [0, 1, 3][world.rank() as usize]);
    /// });
    /// ```
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
        let site = site!("persistent_exclusive_scan_into");
        Call::new(self.as_handle(), site, Scan { exclusive: true, op }, sendbuf, recvbuf)
            .persistent()
    }
}

impl<C: Communicator + ?Sized> PersistentCollectives for C {}
