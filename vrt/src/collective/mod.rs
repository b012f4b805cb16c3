//! Operations in which all ranks of a communicator take part (MPI-4.1 chapter 6).
//!
//! The names and traits of the `mpi` crate's `collective` module, with an async twin of each
//! operation. Every rank has to call the same operations in the same order. Results are the same
//! to the last bit wherever ranks are.

mod algorithms;
mod async_twins;
mod combine;
mod operator;

pub use async_twins::{AsyncCollectives, AsyncRoot};
pub(crate) use combine::Combining;

use std::panic::Location;

use crate::Rank;
use crate::collective::algorithms::{Collective, In, Out};
use crate::collective::combine::What;
use crate::collective::operator::{Op, Operator};
use crate::datatype::{Buffer, BufferMut, Datatype};
use crate::operation::Site;
use crate::point_to_point::site;
use crate::rank::block_on_at;
use crate::topology::sealed::AsHandle;
use crate::topology::{AsCommunicator, Communicator, CommunicatorHandle, Process};

/// The traits of this module.
pub mod traits {
    pub use super::{AsyncCollectives, AsyncRoot, CommunicatorCollectives, Operation, Root};
}

/// A reduction.
pub trait Operation {
    /// Whether the order of operands does not matter.
    fn is_commutative(&self) -> bool {
        true
    }

    /// The predefined reduction that it is.
    #[doc(hidden)]
    fn predefined(&self) -> SystemOperation;
}

impl<T: Operation> Operation for &T {
    fn predefined(&self) -> SystemOperation {
        (**self).predefined()
    }
}

/// A predefined reduction (section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemOperation(Op);

macro_rules! system_operations {
    ($($(#[$doc:meta])* $name:ident => $op:ident),* $(,)?) => {
        impl SystemOperation {
            $($(#[$doc])* pub fn $name() -> SystemOperation { SystemOperation(Op::$op) })*
        }
    };
}

system_operations! {
    /// The largest.
    max => Max,
    /// The smallest.
    min => Min,
    /// The sum; integers wrap.
    sum => Sum,
    /// The product; integers wrap.
    product => Product,
    /// Whether all are not zero.
    logical_and => LogicalAnd,
    /// The bits set in all.
    bitwise_and => BitwiseAnd,
    /// Whether any is not zero.
    logical_or => LogicalOr,
    /// The bits set in any.
    bitwise_or => BitwiseOr,
    /// Whether an odd number of them are not zero.
    logical_xor => LogicalXor,
    /// The bits set in an odd number of them.
    bitwise_xor => BitwiseXor,
}

impl Operation for SystemOperation {
    fn predefined(&self) -> SystemOperation {
        *self
    }
}

/// The bytes of a buffer to send from.
pub(crate) fn input<B: Buffer + ?Sized>(buffer: &B) -> In {
    In(buffer.pointer().cast(), buffer.len_in_bytes())
}

/// The bytes of a buffer to receive into.
pub(crate) fn output<B: BufferMut + ?Sized>(buffer: &mut B) -> Out {
    Out(buffer.pointer_mut().cast(), buffer.len_in_bytes())
}

/// The reduction of a buffer's elements.
///
/// # Panics
/// When it is not defined for them.
pub(crate) fn operator<B: Buffer + ?Sized, O: Operation>(
    buffer: &B,
    op: &O,
    site: Site,
) -> Operator {
    let scalar = buffer.as_datatype().as_ref().scalar;
    let operator = Operator { op: op.predefined().0, scalar };
    if !operator.is_defined() {
        panic!(
            "{} at {}: {:?} is not defined for {:?} (MPI-4.1 section 6.9.2)",
            site.call, site.location, operator.op, scalar
        );
    }
    operator
}

/// Checks that a buffer has the length that the other one asks for.
pub(crate) fn expect_bytes(what: &str, got: usize, expected: usize, site: Site) {
    if got != expected {
        panic!(
            "{} at {}: the {what} has {got} bytes, {expected} are expected",
            site.call, site.location
        );
    }
}

fn block<F: Future>(future: F, site: Site) -> F::Output {
    block_on_at(future, site.call, site.location)
}

/// Collective operations without a root.
pub trait CommunicatorCollectives: Communicator {
    /// Waits until all ranks have come here (section 6.3).
    #[track_caller]
    fn barrier(&self) {
        let site = site!("barrier");
        let nothing = (In(std::ptr::null(), 0), Out(std::ptr::null_mut(), 0));
        let collective = Collective::begin(self.as_handle(), site);
        // SAFETY: nothing is read or written.
        unsafe { collective.combine_now(What::Concatenate, None, nothing.0, nothing.1) };
    }

    /// Gives every rank the contributions of all, in rank order (section 6.7).
    ///
    /// # Panics
    /// When the receive buffer is not as long as all contributions.
    #[track_caller]
    fn all_gather_into<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_gather_into");
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("receive buffer", to.1, from.1 * self.as_handle().size as usize, site);
        // SAFETY: the buffers are borrowed for the blocking call.
        block(
            unsafe { Collective::begin(self.as_handle(), site).gather(None, from, Some(to)) },
            site,
        );
    }

    /// Sends a part to each rank and receives one from each (section 6.8).
    ///
    /// # Panics
    /// When the buffers are not equally long and a multiple of the number of ranks.
    #[track_caller]
    fn all_to_all_into<S: Buffer + ?Sized, R: BufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_to_all_into");
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("receive buffer", to.1, from.1, site);
        let size = self.as_handle().size as usize;
        expect_bytes("send buffer", from.1, from.1 / size * size, site);
        // SAFETY: the buffers are borrowed for the blocking call.
        block(unsafe { Collective::begin(self.as_handle(), site).all_to_all(from, to) }, site);
    }

    /// Folds the contributions of all ranks and gives every rank the result (section 6.9.6).
    ///
    /// # Panics
    /// When the buffers are not equally long, or the operation is not defined for their elements.
    #[track_caller]
    fn all_reduce_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("all_reduce_into");
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("receive buffer", to.1, from.1, site);
        let operator = operator(sendbuf, &op, site);
        let collective = Collective::begin(self.as_handle(), site);
        // SAFETY: the buffers are borrowed for the blocking call.
        unsafe {
            if !collective.combine_now(What::Fold(operator), None, from, to) {
                block(collective.reduce(None, operator, from, Some(to)), site);
            }
        }
    }

    /// Folds the contributions of the ranks up to this one (section 6.11.1).
    ///
    /// # Panics
    /// As [`all_reduce_into`](Self::all_reduce_into).
    #[track_caller]
    fn scan_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("scan_into");
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("receive buffer", to.1, from.1, site);
        let operator = operator(sendbuf, &op, site);
        let collective = Collective::begin(self.as_handle(), site);
        // SAFETY: the buffers are borrowed for the blocking call.
        block(unsafe { collective.scan(operator, from, to, false) }, site);
    }

    /// Folds the contributions of the ranks before this one; rank 0's buffer stays as it is
    /// (section 6.11.2).
    ///
    /// # Panics
    /// As [`all_reduce_into`](Self::all_reduce_into).
    #[track_caller]
    fn exclusive_scan_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("exclusive_scan_into");
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("receive buffer", to.1, from.1, site);
        let operator = operator(sendbuf, &op, site);
        let collective = Collective::begin(self.as_handle(), site);
        // SAFETY: the buffers are borrowed for the blocking call.
        block(unsafe { collective.scan(operator, from, to, true) }, site);
    }
}

impl<C: Communicator + ?Sized> CommunicatorCollectives for C {}

/// A rank that collective operations can have as their root.
pub trait Root: AsCommunicator {
    /// Its rank.
    fn root_rank(&self) -> Rank;

    /// Gives every rank what the root has (section 6.4).
    #[track_caller]
    fn broadcast_into<Buf: BufferMut + ?Sized>(&self, buffer: &mut Buf) {
        let site = site!("broadcast_into");
        let collective = Collective::begin(handle(self), site);
        let (root, data) = (self.root_rank() as usize, output(buffer));
        // SAFETY: the buffer is borrowed for the blocking call.
        unsafe {
            if !collective.combine_now(What::Broadcast, Some(root), In(data.0, data.1), data) {
                block(collective.broadcast(root, data), site);
            }
        }
    }

    /// Contributes to what the root gathers (section 6.5); on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn gather_into<S: Buffer + ?Sized>(&self, sendbuf: &S) {
        let site = site!("gather_into");
        expect_root(self, false, site);
        let collective = Collective::begin(handle(self), site);
        let root = Some(self.root_rank() as usize);
        // SAFETY: the buffer is borrowed for the blocking call.
        block(unsafe { collective.gather(root, input(sendbuf), None) }, site);
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
        expect_root(self, true, site);
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("receive buffer", to.1, from.1 * handle(self).size as usize, site);
        let collective = Collective::begin(handle(self), site);
        let root = Some(self.root_rank() as usize);
        // SAFETY: the buffers are borrowed for the blocking call.
        block(unsafe { collective.gather(root, from, Some(to)) }, site);
    }

    /// Receives a part of what the root scatters (section 6.6); on ranks other than the root.
    ///
    /// # Panics
    /// On the root.
    #[track_caller]
    fn scatter_into<R: BufferMut + ?Sized>(&self, recvbuf: &mut R) {
        let site = site!("scatter_into");
        expect_root(self, false, site);
        let collective = Collective::begin(handle(self), site);
        let root = self.root_rank() as usize;
        // SAFETY: the buffer is borrowed for the blocking call.
        block(unsafe { collective.scatter(root, None, output(recvbuf)) }, site);
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
        expect_root(self, true, site);
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("send buffer", from.1, to.1 * handle(self).size as usize, site);
        let collective = Collective::begin(handle(self), site);
        let root = self.root_rank() as usize;
        // SAFETY: the buffers are borrowed for the blocking call.
        block(unsafe { collective.scatter(root, Some(from), to) }, site);
    }

    /// Contributes to what the root folds (section 6.9.1); on ranks other than the root.
    ///
    /// # Panics
    /// On the root, and when the operation is not defined for the elements.
    #[track_caller]
    fn reduce_into<S: Buffer + ?Sized, O: Operation>(&self, sendbuf: &S, op: O) {
        let site = site!("reduce_into");
        expect_root(self, false, site);
        let operator = operator(sendbuf, &op, site);
        let collective = Collective::begin(handle(self), site);
        let root = Some(self.root_rank() as usize);
        // SAFETY: the buffer is borrowed for the blocking call.
        block(unsafe { collective.reduce(root, operator, input(sendbuf), None) }, site);
    }

    /// Folds the contributions of all ranks; on the root.
    ///
    /// # Panics
    /// On other ranks, when the buffers are not equally long, and when the operation is not
    /// defined for the elements.
    #[track_caller]
    fn reduce_into_root<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("reduce_into_root");
        expect_root(self, true, site);
        let (from, to) = (input(sendbuf), output(recvbuf));
        expect_bytes("receive buffer", to.1, from.1, site);
        let operator = operator(sendbuf, &op, site);
        let collective = Collective::begin(handle(self), site);
        let root = Some(self.root_rank() as usize);
        // SAFETY: the buffers are borrowed for the blocking call.
        block(unsafe { collective.reduce(root, operator, from, Some(to)) }, site);
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

/// Checks that a call for (or not for) the root is made by the right rank.
pub(crate) fn expect_root<T: Root + ?Sized>(this: &T, root: bool, site: Site) {
    let rank = handle(this).rank;
    if (rank == this.root_rank()) != root {
        let only = if root { "for the root only" } else { "for all ranks but the root" };
        panic!(
            "{} at {} is {only}: rank {rank} called it, the root is {}",
            site.call,
            site.location,
            this.root_rank()
        );
    }
}
