//! Collective operations without a root, blocking and immediate.

pub(super) mod apart;

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
    #[track_caller]
    fn barrier(&self) {
        let site = site!("barrier");
        Call::new(self.as_handle(), site, Barrier, (), ()).block();
    }

    /// [`barrier`](Self::barrier), as a request.
    #[track_caller]
    fn immediate_barrier(&self) -> Request<'static, ()> {
        let site = site!("immediate_barrier");
        Call::new(self.as_handle(), site, Barrier, (), ()).immediate(StaticScope)
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
        Call::new(self.as_handle(), site, Gather { root: None }, sendbuf, recvbuf).block();
    }

    /// [`all_gather_into`](Self::all_gather_into) that returns what was wrong.
    ///
    /// # Errors
    /// An argument is wrong, and this rank has not taken part; or ranks do not agree.
    /// [`error`](crate::error) says what holds then, here and on the others.
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
