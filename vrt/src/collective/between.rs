//! Collective operations between the two groups of an intercommunicator (MPI-4.1 section 6.2.3).
//!
//! What one group contributes is received by the other one. In operations with a root, the root's group has one rank that
//! takes part; its other ranks call [`beside_root`](InterCommunicator::beside_root), which keeps the order of operations.

use crate::Rank;
use crate::collective::checks::expect_bytes;
use crate::collective::operation::Operation;
use crate::collective::reduce_op::reduce_op;
use crate::datatype::wire::{incoming, incoming_result, outgoing};
use crate::datatype::{Buffer, BufferMut, UncommittedDatatype};
use crate::operation::{At, ErrorKind, OrRefuse, Site, block_on_or_refuse, site};
use crate::topology::InterCommunicator;
use vrt_core::comm::between::{self, Part};
use vrt_core::comm::reduce_op::ReduceOp;

/// What is applied to the elements of a buffer.
fn applied<'a, B: Buffer + ?Sized>(
    op: &'a impl Operation,
    buffer: &B,
) -> Result<ReduceOp<'a>, ErrorKind> {
    reduce_op(op.function(), &buffer.as_datatype().datatype_ref().to_owned_type())
}

impl InterCommunicator {
    /// The number of a root in the remote group.
    fn remote_root(&self, root: Rank, site: Site) -> usize {
        let size = self.remote_size();
        let found = usize::try_from(root).ok().filter(|_| root < size);
        let error = ErrorKind::RankOutOfRange { what: "root", rank: root, size: size as usize };
        found.ok_or(error).at(site).or_refuse()
    }

    /// Checks that a buffer has an equal part for each rank of the remote group.
    fn expect_remote_parts(&self, what: &'static str, bytes: usize, site: Site) -> usize {
        let ranks = self.remote_size() as usize;
        expect_bytes(what, bytes, bytes / ranks * ranks).at(site).or_refuse();
        ranks
    }

    /// Waits for all ranks of both groups.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let part = i32::from(world.rank() > 0);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, 1 - part, 0);
    ///     between.barrier();
    /// });
    /// ```
    #[track_caller]
    pub fn barrier(&self) {
        let site = site!("barrier");
        block_on_or_refuse(between::barrier(&self.0, site), site);
    }

    /// A rank of the root's group takes part in an operation with a root, to which it contributes nothing (in C: the
    /// root is `MPI_PROC_NULL`).
    ///
    /// Example: [`broadcast_to_remote`](Self::broadcast_to_remote).
    #[track_caller]
    pub fn beside_root(&self) {
        let site = site!("beside_root");
        block_on_or_refuse(between::beside_root(&self.0, site), site);
    }

    /// The root sends its elements to all ranks of the remote group, which call
    /// [`broadcast_from_remote`](Self::broadcast_from_remote).
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(5, |world| {
    ///     // Ranks 0 and 1, and the three others.
    ///     let part = i32::from(world.rank() > 1);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, [2, 0][part as usize], 0);
    ///     let mut told = [0, 0];
    ///     match world.rank() {
    ///         0 => between.beside_root(),
    ///         1 => between.broadcast_to_remote(&[3, 4]),
    ///         _ => between.broadcast_from_remote(1, &mut told),
    ///     }
    ///     assert_eq!(told, if part == 0 { [0, 0] } else { [3, 4] });
    /// });
    /// ```
    #[track_caller]
    pub fn broadcast_to_remote<B: Buffer + ?Sized>(&self, data: &B) {
        let (site, from) = (site!("broadcast_to_remote"), outgoing(data));
        // SAFETY: the buffer is borrowed for the blocking call.
        let all = unsafe { between::broadcast(&self.0, Part::Root(from.input()), site) };
        block_on_or_refuse(all, site);
    }

    /// Each rank gets the elements of a root in the remote group.
    ///
    /// Example: [`broadcast_to_remote`](Self::broadcast_to_remote).
    ///
    /// # Panics
    /// The root does not exist, or sends other elements.
    #[track_caller]
    pub fn broadcast_from_remote<B: BufferMut + ?Sized>(&self, root: Rank, into: &mut B) {
        let (site, mut to) = (site!("broadcast_from_remote"), incoming(into));
        let part = Part::Other(self.remote_root(root, site), to.out());
        // SAFETY: the buffer is borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::broadcast(&self.0, part, site) }, site);
        to.finish_all().at(site).or_refuse();
    }

    /// The root gets equal contributions of all ranks of the remote group, by rank; these call
    /// [`gather_to_remote`](Self::gather_to_remote).
    ///
    /// # Panics
    /// The buffer cannot be divided by the number of ranks, or a contribution has another length or type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let part = i32::from(world.rank() > 0);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, 1 - part, 0);
    ///     if part == 0 {
    ///         let mut all = [0; 3];
    ///         between.gather_from_remote(&mut all);
    ///         assert_eq!(all, [10, 20, 30]);
    ///         between.scatter_to_remote(&[1, 2, 3]);
    ///     } else {
    ///         between.gather_to_remote(0, &(10 * world.rank()));
    ///         let mut mine = 0;
    ///         between.scatter_from_remote(0, &mut mine);
    ///         assert_eq!(mine, world.rank());
    ///     }
    /// });
    /// ```
    #[track_caller]
    pub fn gather_from_remote<B: BufferMut + ?Sized>(&self, into: &mut B) {
        let (site, mut to) = (site!("gather_from_remote"), incoming(into));
        let parts = to.out().parts(self.expect_remote_parts("receive buffer", to.len, site));
        // SAFETY: the buffer is borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::gather(&self.0, Part::Root(&parts), site) }, site);
        to.finish_all().at(site).or_refuse();
    }

    /// Each rank contributes to what a root in the remote group gathers.
    ///
    /// Example: [`gather_from_remote`](Self::gather_from_remote).
    ///
    /// # Panics
    /// The root does not exist.
    #[track_caller]
    pub fn gather_to_remote<B: Buffer + ?Sized>(&self, root: Rank, data: &B) {
        let (site, from) = (site!("gather_to_remote"), outgoing(data));
        let part = Part::Other(self.remote_root(root, site), from.input());
        // SAFETY: the buffer is borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::gather(&self.0, part, site) }, site);
    }

    /// Each rank of the remote group gets an equal part of the root's elements, by rank; these call
    /// [`scatter_from_remote`](Self::scatter_from_remote).
    ///
    /// Example: [`gather_from_remote`](Self::gather_from_remote).
    ///
    /// # Panics
    /// The buffer cannot be divided by the number of ranks.
    #[track_caller]
    pub fn scatter_to_remote<B: Buffer + ?Sized>(&self, data: &B) {
        let (site, from) = (site!("scatter_to_remote"), outgoing(data));
        let parts = from.input().parts(self.expect_remote_parts("send buffer", from.len, site));
        // SAFETY: the buffer is borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::scatter(&self.0, Part::Root(&parts), site) }, site);
    }

    /// Each rank gets its part of what a root in the remote group scatters.
    ///
    /// Example: [`gather_from_remote`](Self::gather_from_remote).
    ///
    /// # Panics
    /// The root does not exist, or the part has another length or type.
    #[track_caller]
    pub fn scatter_from_remote<B: BufferMut + ?Sized>(&self, root: Rank, into: &mut B) {
        let (site, mut to) = (site!("scatter_from_remote"), incoming(into));
        let part = Part::Other(self.remote_root(root, site), to.out());
        // SAFETY: the buffer is borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::scatter(&self.0, part, site) }, site);
        to.finish_all().at(site).or_refuse();
    }

    /// The root gets the reduction of what the ranks of the remote group contribute by
    /// [`reduce_to_remote`](Self::reduce_to_remote).
    ///
    /// # Panics
    /// The operation does not fit the elements, or contributions have another length or type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(4, |world| {
    ///     let part = i32::from(world.rank() > 0);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, 1 - part, 0);
    ///     let mut sum = 0;
    ///     match part {
    ///         0 => between.reduce_from_remote(&mut sum, SystemOperation::sum()),
    ///         _ => between.reduce_to_remote(0, &world.rank(), SystemOperation::sum()),
    ///     }
    ///     assert_eq!(sum, if part == 0 { 1 + 2 + 3 } else { 0 });
    /// });
    /// ```
    #[track_caller]
    pub fn reduce_from_remote<B: BufferMut + ?Sized, O: Operation>(&self, into: &mut B, op: O) {
        let site = site!("reduce_from_remote");
        let elements = into.as_datatype().datatype_ref().to_owned_type();
        let op = reduce_op(op.function(), &elements).at(site).or_refuse();
        let mut to = incoming(into);
        let part = Part::Root(to.out());
        // SAFETY: the buffer is borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::reduce(&self.0, part, &op, site) }, site);
        to.finish_all().at(site).or_refuse();
    }

    /// Each rank contributes to the reduction that a root in the remote group gets.
    ///
    /// Example: [`reduce_from_remote`](Self::reduce_from_remote).
    ///
    /// # Panics
    /// The root does not exist, or the operation does not fit the elements.
    #[track_caller]
    pub fn reduce_to_remote<B: Buffer + ?Sized, O: Operation>(&self, root: Rank, data: &B, op: O) {
        let (site, from) = (site!("reduce_to_remote"), outgoing(data));
        let op = applied(&op, data).at(site).or_refuse();
        let part = Part::Other(self.remote_root(root, site), from.input());
        // SAFETY: the buffer is borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::reduce(&self.0, part, &op, site) }, site);
    }

    /// Every rank gets equal contributions of all ranks of the remote group, by rank.
    ///
    /// # Panics
    /// The receive buffer cannot be divided by the number of ranks, or a contribution has another length or type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let part = i32::from(world.rank() > 0);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, 1 - part, 0);
    ///
    ///     let mut all = vec![0; between.remote_size() as usize];
    ///     between.all_gather_into(&world.rank(), &mut all);
    ///     assert_eq!(all, if part == 0 { vec![1, 2] } else { vec![0] });
    ///
    ///     // To each of the others its rank there.
    ///     let parts: Vec<i32> = (0..between.remote_size()).collect();
    ///     between.all_to_all_into(&parts, &mut all);
    ///     assert!(all.iter().all(|rank| *rank == between.rank()));
    ///
    ///     let mut sum = 0;
    ///     between.all_reduce_into(&world.rank(), &mut sum, SystemOperation::sum());
    ///     assert_eq!(sum, if part == 0 { 1 + 2 } else { 0 });
    /// });
    /// ```
    #[track_caller]
    pub fn all_gather_into<S, R>(&self, data: &S, into: &mut R)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let (site, from, mut to) = (site!("all_gather_into"), outgoing(data), incoming(into));
        let parts = to.out().parts(self.expect_remote_parts("receive buffer", to.len, site));
        // SAFETY: the buffers are borrowed for the blocking call.
        block_on_or_refuse(
            unsafe { between::all_gather(&self.0, from.input(), &parts, site) },
            site,
        );
        to.finish_all().at(site).or_refuse();
    }

    /// Every rank sends an equal part of its elements to each rank of the remote group, by rank, and gets one from each.
    ///
    /// Example: [`all_gather_into`](Self::all_gather_into).
    ///
    /// # Panics
    /// A buffer cannot be divided by the number of ranks, or a part has another length or type.
    #[track_caller]
    pub fn all_to_all_into<S, R>(&self, data: &S, into: &mut R)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
    {
        let (site, from, mut to) = (site!("all_to_all_into"), outgoing(data), incoming(into));
        let ins = from.input().parts(self.expect_remote_parts("send buffer", from.len, site));
        let outs = to.out().parts(self.expect_remote_parts("receive buffer", to.len, site));
        // SAFETY: the buffers are borrowed for the blocking call.
        block_on_or_refuse(unsafe { between::all_to_all(&self.0, &ins, &outs, site) }, site);
        to.finish_all().at(site).or_refuse();
    }

    /// Every rank gets the reduction of what the ranks of the remote group contribute.
    ///
    /// Example: [`all_gather_into`](Self::all_gather_into).
    ///
    /// # Panics
    /// The operation does not fit the elements, or contributions have another length or type.
    #[track_caller]
    pub fn all_reduce_into<S, R, O>(&self, data: &S, into: &mut R, op: O)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation,
    {
        let (site, from) = (site!("all_reduce_into"), outgoing(data));
        let op = applied(&op, data).at(site).or_refuse();
        let mut to = incoming_result(data, into, false);
        // SAFETY: the buffers are borrowed for the blocking call.
        let all = unsafe { between::all_reduce(&self.0, from.input(), to.out(), &op, site) };
        block_on_or_refuse(all, site);
        to.finish_all().at(site).or_refuse();
    }

    /// Every rank gets an equal part of the reduction of what the ranks of the remote group contribute: as many elements
    /// as its buffer has.
    ///
    /// # Panics
    /// The operation does not fit the elements, or contributions have another length or type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::collective::SystemOperation;
    /// use vrt::topology::Color;
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let part = i32::from(world.rank() > 0);
    ///     let own = world.split_by_color(Color::with_value(part)).unwrap();
    ///     let between = own.create_intercommunicator(0, world, 1 - part, 0);
    ///     let mut mine = vec![0; 2 / between.size() as usize];
    ///     let data = [10 * (1 + part), 10 * (1 + part) + 1];
    ///     between.reduce_scatter_block_into(&data, &mut mine, SystemOperation::sum());
    ///     match world.rank() {
    ///         0 => assert_eq!(mine, [40, 42]),
    ///         rank => assert_eq!(mine, [10 + (rank - 1)]),
    ///     }
    /// });
    /// ```
    #[track_caller]
    pub fn reduce_scatter_block_into<S, R, O>(&self, data: &S, into: &mut R, op: O)
    where
        S: Buffer + ?Sized,
        R: BufferMut + ?Sized,
        O: Operation,
    {
        let (site, from) = (site!("reduce_scatter_block_into"), outgoing(data));
        let op = applied(&op, data).at(site).or_refuse();
        let mut to = incoming(into);
        let lengths = vec![to.len; self.0.size as usize];
        // SAFETY: the buffers are borrowed for the blocking call.
        let all = unsafe {
            between::reduce_scatter(&self.0, from.input(), &lengths, to.out(), &op, site)
        };
        block_on_or_refuse(all, site);
        to.finish_all().at(site).or_refuse();
    }
}
