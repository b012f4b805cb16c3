//! Collective operations without a root, blocking and immediate.

use crate::Count;
use crate::collective::fold::predefined;
use crate::collective::operation::Operation;
use crate::collective::start::{self, datatype, parts_in, parts_out};
use crate::collective::{block, combine_now};
use crate::datatype::wire::{self, incoming, incoming_result, outgoing};
use crate::datatype::{
    Buffer, BufferMut, DynBuffer, DynBufferMut, PartitionedBuffer, PartitionedBufferMut,
    UncommittedDatatype,
};
use crate::operation::OrRefuse;
use crate::operation::site;
use crate::request::{Request, Scope, StaticScope, immediate};
use crate::topology::Communicator;
use vrt_core::comm::algorithms::{In, Out};
use vrt_core::comm::bytes::expect_type;
use vrt_core::comm::combine::What;

/// Collective operations without a root.
pub trait CommunicatorCollectives: Communicator {
    /// Waits until all ranks have come here (section 6.3).
    #[track_caller]
    fn barrier(&self) {
        let site = site!("barrier");
        let nothing = (In::NOTHING, Out::NOTHING);
        // SAFETY: nothing is read or written.
        unsafe { combine_now(self.as_handle(), site, What::Concatenate, None, &nothing) };
    }

    /// [`barrier`](Self::barrier), as a request.
    #[track_caller]
    fn immediate_barrier(&self) -> Request<'static, ()> {
        let site = site!("immediate_barrier");
        // SAFETY: no buffers.
        unsafe { immediate(StaticScope, &(), start::barrier(self.as_handle(), site), site) }
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
        let (comm, from, to) = (self.as_handle(), outgoing(sendbuf), incoming(recvbuf));
        if !(from.is_packed() || to.is_staged()) {
            start::expect_gathered(comm, from.len, to.len, site);
            expect_type(from.signature, to.signature, from.len).or_refuse(site);
            let (input, out) = (from.input(), to.out());
            // SAFETY: the buffers are borrowed for the blocking call.
            if unsafe { combine_now(comm, site, What::Concatenate, None, &(input, out)) } {
                return;
            }
        }
        block(start::gather(comm, None, from, Some(to), site), site);
    }

    /// [`all_gather_into`](Self::all_gather_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let future =
            start::gather(self.as_handle(), None, outgoing(sendbuf), Some(incoming(recvbuf)), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Gives every rank the contributions of all, of different lengths (section 6.7).
    ///
    /// # Panics
    /// When there is not one part for each rank, or a contribution is not as long as its part.
    #[track_caller]
    fn all_gather_varcount_into<S: Buffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_gather_varcount_into");
        block(
            start::gather_varcount(
                self.as_handle(),
                None,
                outgoing(sendbuf),
                Some(parts_in(recvbuf, Some(self.as_handle()), site)),
                site,
            ),
            site,
        );
    }

    /// [`all_gather_varcount_into`](Self::all_gather_varcount_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let future = start::gather_varcount(
            self.as_handle(),
            None,
            outgoing(sendbuf),
            Some(parts_in(recvbuf, Some(self.as_handle()), site)),
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
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
        let (comm, from, to) = (self.as_handle(), outgoing(sendbuf), incoming(recvbuf));
        if !(from.is_packed() || to.is_staged() || from.len == 0) {
            start::expect_equal_parts(comm, from.len, to.len, site);
            expect_type(from.signature, to.signature, from.len).or_refuse(site);
            let (input, out) = (from.input(), to.out());
            // SAFETY: the buffers are borrowed for the blocking call.
            if unsafe { combine_now(comm, site, What::Exchange, None, &(input, out)) } {
                return;
            }
        }
        block(start::all_to_all(comm, from, to, site), site);
    }

    /// [`all_to_all_into`](Self::all_to_all_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let future =
            start::all_to_all(self.as_handle(), outgoing(sendbuf), incoming(recvbuf), site);
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Sends a part to each rank and receives one from each, of different lengths (section 6.8).
    ///
    /// # Panics
    /// When there is not one part for each rank, or a part is not as long as its place.
    #[track_caller]
    fn all_to_all_varcount_into<S: PartitionedBuffer + ?Sized, R: PartitionedBufferMut + ?Sized>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
    ) {
        let site = site!("all_to_all_varcount_into");
        block(
            start::all_to_all_parts(
                self.as_handle(),
                parts_out(sendbuf, Some(self.as_handle()), site),
                parts_in(recvbuf, Some(self.as_handle()), site),
                site,
            ),
            site,
        );
    }

    /// [`all_to_all_varcount_into`](Self::all_to_all_varcount_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let future = start::all_to_all_parts(
            self.as_handle(),
            parts_out(sendbuf, Some(self.as_handle()), site),
            parts_in(recvbuf, Some(self.as_handle()), site),
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Sends a buffer to each rank and receives one from each, each of its own datatype
    /// (`MPI_Alltoallw`, section 6.8): buffer `i` goes to and comes from rank `i`.
    ///
    /// # Panics
    /// When there is not one buffer for each rank, or one is not as long as its place.
    #[track_caller]
    fn all_to_all_buffers_into(
        &self,
        sendbufs: &[DynBuffer<'_>],
        recvbufs: &mut [DynBufferMut<'_>],
    ) {
        let site = site!("all_to_all_buffers_into");
        let from = sendbufs.iter().map(outgoing).collect();
        let to = recvbufs.iter_mut().map(incoming).collect();
        block(start::all_to_all_parts(self.as_handle(), from, to, site), site);
    }

    /// Folds the contributions of all ranks and gives every rank the result (section 6.9.6).
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for the
    /// elements.
    #[track_caller]
    fn all_reduce_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("all_reduce_into");
        let comm = self.as_handle();
        let (from, to) = (outgoing(sendbuf), incoming_result(sendbuf, recvbuf, false));
        if !(from.is_packed() || to.is_staged())
            && let Some(operator) =
                predefined(op.function(), sendbuf.as_datatype().datatype_ref(), site)
        {
            start::expect_result(&from, &to, site);
            let (input, out) = (from.input(), to.out());
            // SAFETY: the buffers are borrowed for the blocking call.
            if unsafe { combine_now(comm, site, What::Fold(operator), None, &(input, out)) } {
                return;
            }
        }
        block(start::reduce(comm, None, from, Some(to), datatype(sendbuf), op, site), site);
    }

    /// [`all_reduce_into`](Self::all_reduce_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let to = incoming_result(sendbuf, recvbuf, false);
        let (from, kind) = (outgoing(sendbuf), datatype(sendbuf));
        let future = start::reduce(self.as_handle(), None, from, Some(to), kind, op, site);
        // SAFETY: the request borrows the buffers, and what the operation borrows, until it is
        // done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Folds the contributions of all ranks and gives each rank an equal part of the result (section 6.10.1).
    ///
    /// # Panics
    /// When the send buffer is not as long as all parts, or the operation is not defined for the elements.
    #[track_caller]
    fn reduce_scatter_block_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("reduce_scatter_block_into");
        block(
            {
                let to = incoming_result(sendbuf, recvbuf, false);
                let (from, kind) = (outgoing(sendbuf), datatype(sendbuf));
                let lengths = vec![to.len; self.as_handle().size as usize];
                start::reduce_scatter(self.as_handle(), from, to, lengths, kind, op, site)
            },
            site,
        );
    }

    /// [`reduce_scatter_block_into`](Self::reduce_scatter_block_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let future = {
            let to = incoming_result(sendbuf, recvbuf, false);
            let (from, kind) = (outgoing(sendbuf), datatype(sendbuf));
            let lengths = vec![to.len; self.as_handle().size as usize];
            start::reduce_scatter(self.as_handle(), from, to, lengths, kind, op, site)
        };
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Folds the contributions of all ranks and gives rank `i` a part of `counts[i]` elements of
    /// the result (section 6.10.2).
    ///
    /// # Panics
    /// When there is not one count for each rank, the buffers do not have the lengths that the
    /// counts say, or the operation is not defined for the elements.
    #[track_caller]
    fn reduce_scatter_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        counts: &[Count],
        op: O,
    ) {
        let site = site!("reduce_scatter_into");
        let each = wire::element_size(sendbuf);
        let lengths = counts.iter().map(|count| *count as usize * each).collect();
        let to = incoming_result(sendbuf, recvbuf, false);
        let (from, kind) = (outgoing(sendbuf), datatype(sendbuf));
        block(start::reduce_scatter(self.as_handle(), from, to, lengths, kind, op, site), site);
    }

    /// [`reduce_scatter_into`](Self::reduce_scatter_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let each = wire::element_size(sendbuf);
        let lengths = counts.iter().map(|count| *count as usize * each).collect();
        let to = incoming_result(sendbuf, recvbuf, false);
        let (from, kind) = (outgoing(sendbuf), datatype(sendbuf));
        let future = start::reduce_scatter(self.as_handle(), from, to, lengths, kind, op, site);
        // SAFETY: the request borrows the buffers, and what the operation borrows, until it is
        // done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Folds the contributions of the ranks up to this one (section 6.11.1).
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for the
    /// elements.
    #[track_caller]
    fn scan_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("scan_into");
        block(
            start::scan(
                self.as_handle(),
                outgoing(sendbuf),
                incoming_result(sendbuf, recvbuf, false),
                (datatype(sendbuf), op),
                false,
                site,
            ),
            site,
        );
    }

    /// [`scan_into`](Self::scan_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let future = start::scan(
            self.as_handle(),
            outgoing(sendbuf),
            incoming_result(sendbuf, recvbuf, false),
            (datatype(sendbuf), op),
            false,
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }

    /// Folds the contributions of the ranks before this one; rank 0's buffer stays as it is (section 6.11.2).
    ///
    /// # Panics
    /// When the receive buffer is shorter than the other, or the operation is not defined for the
    /// elements.
    #[track_caller]
    fn exclusive_scan_into<S: Buffer + ?Sized, R: BufferMut + ?Sized, O: Operation>(
        &self,
        sendbuf: &S,
        recvbuf: &mut R,
        op: O,
    ) {
        let site = site!("exclusive_scan_into");
        block(
            start::scan(
                self.as_handle(),
                outgoing(sendbuf),
                incoming_result(sendbuf, recvbuf, true),
                (datatype(sendbuf), op),
                true,
                site,
            ),
            site,
        );
    }

    /// [`exclusive_scan_into`](Self::exclusive_scan_into), as a request.
    ///
    /// # Panics
    /// As there.
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
        let future = start::scan(
            self.as_handle(),
            outgoing(sendbuf),
            incoming_result(sendbuf, recvbuf, true),
            (datatype(sendbuf), op),
            true,
            site,
        );
        // SAFETY: the request borrows the buffers until it is done.
        unsafe { immediate(scope, recvbuf, future, site) }
    }
}

impl<C: Communicator + ?Sized> CommunicatorCollectives for C {}
