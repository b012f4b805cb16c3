//! Collective operations, each implemented once, as a future over packed bytes.
//!
//! Small data is combined by PEs first, then among PEs (`combine`); large data goes from rank to
//! rank, directly between their buffers. [`Combined`] defines for all of them which data is small:
//!
//! | operation | small data | large data | source |
//! |---|---|---|---|
//! | barrier | combined | - | - |
//! | broadcast | combined | binomial tree | Thakur, Rabenseifner, Gropp 2005, section 4.1 |
//! | reduce, all_reduce, several ranks per PE | combined | folded by PEs in windows (`long`) | - |
//! | reduce, all_reduce | combined | binary tree over ranks, then broadcast | same, section 4.4 |
//! | all_reduce, 2^k ranks, from `HALVING` on | - | recursive halving by doubling distance, then doubling back | same, section 4.5 (Rabenseifner), its distances reversed |
//! | reduce_scatter | combined, each takes its part | as all_reduce up to the root, then scatter | - |
//! | gather, scatter | combined | every rank with the root, directly into place | - |
//! | all_gather | combined | ring | same, section 4.1 |
//! | all_to_all | combined | pairwise exchange | same, section 4.3 |
//! | scan | combined, each folds its prefix | chain in rank order | - |
//!
//! Operations with a count for each rank, and user-defined operations (which run in ranks, never in
//! the PE), use the algorithms for large data, or gather and fold.
//!
//! All algorithms fold along the same tree over rank numbers, so neither the size of the data nor
//! the placement of ranks changes a bit of an element: blocks of 1, 2, 4, .. neighbouring ranks are
//! folded with their neighbours, the lower ranks on the left. (Halving with distances 1, 2, 4, ..
//! is exactly that tree, element by element.) Scans fold from the left.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use std::cell::Cell;

use crate::comm::CommunicatorHandle;
use crate::comm::bytes::expect_type;
pub use crate::comm::bytes::{In, Out};
use crate::comm::combine::combine;
pub use crate::comm::combined::Combined;
use crate::comm::long::FIRST_WINDOW;
use crate::comm::spec::{PHASE_BITS, Spec, check_agreement};
use crate::error::{Error, Site};
use crate::mailbox::Pattern;
use crate::operation::{self, Pending};
use crate::pe::{self, Completion, Mode, Outbound, Started};

/// One collective operation of one rank.
#[derive(Clone, Debug)]
pub struct Collective {
    /// The communicator.
    pub comm: CommunicatorHandle,
    /// Number of the operation on the communicator, once it has begun.
    number: Cell<Option<u32>>,
    /// Where it was called.
    pub site: Site,
}

impl Drop for Collective {
    fn drop(&mut self) {
        if self.number.get().is_some() {
            pe::collective_ends(self.context(), self.site.call);
        }
    }
}

/// All functions here require that the given buffers are valid for their lengths until the future
/// is ready, and do not overlap.
impl Collective {
    /// An operation that the calling rank is about to begin: it begins when one of its futures is
    /// first polled or its [`number`](Self::number) is requested. The deadlock table names the
    /// site.
    pub fn begin(comm: &CommunicatorHandle, site: Site) -> Collective {
        Collective { comm: comm.clone(), number: Cell::new(None), site }
    }

    fn context(&self) -> u32 {
        self.comm.context + 1
    }

    /// The operation's number; this call begins the operation if necessary.
    pub fn number(&self) -> u32 {
        self.number.get().unwrap_or_else(|| {
            let context = self.context();
            let call = self.site.call;
            let number = pe::with(|pe| {
                if pe.engine.has_observer() {
                    pe.engine.observe_collective(context, call);
                }
                pe.engine.running().collectives.next(context)
            });
            self.number.set(Some(number));
            number
        })
    }

    pub(super) fn rank(&self) -> usize {
        self.comm.rank as usize
    }

    pub(super) fn size(&self) -> usize {
        self.comm.size as usize
    }

    /// Waits until all ranks of the communicator have called this.
    ///
    /// # Errors
    /// Ranks have begun different operations, or it is polled by another rank than the one that
    /// began it.
    pub async fn barrier(&self) -> Result<(), Error> {
        let combined = Combined::barrier();
        // SAFETY: B1: there are no buffers.
        unsafe { self.combine(0, &combined) }.await
    }

    /// Sends the root's bytes to all ranks.
    ///
    /// # Errors
    /// Those of [`barrier`](Self::barrier); or the root's bytes differ from `data` in length or
    /// type.
    ///
    /// # Safety
    /// `data` is readable and writable until the future is ready.
    pub async unsafe fn broadcast(&self, root: usize, data: Out) -> Result<(), Error> {
        // SAFETY: B1.
        unsafe { self.broadcast_in(0, root, data) }.await
    }

    /// # Safety
    /// As [`broadcast`](Self::broadcast).
    pub(super) async unsafe fn broadcast_in(
        &self,
        phase: u32,
        root: usize,
        data: Out,
    ) -> Result<(), Error> {
        // SAFETY: B1.
        unsafe {
            let combined = Combined::broadcast(root, data);
            if combined.is_small(self.size()) {
                return self.combine(phase, &combined).await;
            }
            let (n, me) = (self.size(), (self.rank() + self.size() - root) % self.size());
            let real = |virtual_rank: usize| (virtual_rank + root) % n;
            let mut bit = 1;
            while bit < n && me & bit == 0 {
                bit <<= 1;
            }
            self.number();
            if me != 0 {
                self.receive(phase, real(me - bit), data).await?;
            }
            while bit > 1 {
                bit >>= 1;
                if me + bit < n && me & (bit - 1) == 0 {
                    self.send(phase, real(me + bit), data.read()).await?;
                }
            }
        }
        Ok(())
    }

    /// Equal contributions. `out` belongs to the root (or, without a root, to every rank) and is as
    /// long as all inputs together.
    ///
    /// # Errors
    /// Those of [`barrier`](Self::barrier); or ranks contribute different lengths or types.
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce).
    pub async unsafe fn gather(
        &self,
        root: Option<usize>,
        input: In,
        out: Option<Out>,
    ) -> Result<(), Error> {
        let combined = Combined::gather(root, input, out);
        // SAFETY: B1; part `r` of the output is rank `r`'s.
        unsafe {
            if combined.is_small(self.size()) {
                return self.combine(0, &combined).await;
            }
            let parts = out.map(|out| out.parts(self.size()));
            self.gather_parts(root, input, parts.as_deref()).await
        }
    }

    /// Contributions of any lengths: that of rank `r` has the length of part `r`.
    ///
    /// # Errors
    /// Those of [`barrier`](Self::barrier); or a contribution differs from its part in length or
    /// type.
    ///
    /// # Safety
    /// `input` is readable and the parts, one for each rank, are writable until the future is
    /// ready; none overlaps another.
    pub async unsafe fn gather_parts(
        &self,
        root: Option<usize>,
        input: In,
        parts: Option<&[Out]>,
    ) -> Result<(), Error> {
        let (n, me) = (self.size(), self.rank());
        self.number();
        // SAFETY: B1.
        unsafe {
            match (root, parts) {
                (None, Some(parts)) => {
                    self.check_own(input, parts[me])?;
                    parts[me].copy_from(input);
                    let (right, left) = ((me + 1) % n, (me + n - 1) % n);
                    for step in 0..n - 1 {
                        let (have, get) = ((me + n - step) % n, (me + n - step - 1) % n);
                        self.exchange(0, right, parts[have].read(), left, parts[get]).await?;
                    }
                }
                (Some(root), Some(parts)) if me == root => {
                    self.check_own(input, parts[me])?;
                    parts[me].copy_from(input);
                    for from in (0..n).filter(|from| *from != me) {
                        self.receive(0, from, parts[from]).await?;
                    }
                }
                (Some(root), _) => self.send(0, root, input).await?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Equal parts. `input` belongs to the root and is as long as all outputs together.
    ///
    /// # Errors
    /// Those of [`barrier`](Self::barrier); or the root's part differs from `out` in length or
    /// type.
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce).
    pub async unsafe fn scatter(
        &self,
        root: usize,
        input: Option<In>,
        out: Out,
    ) -> Result<(), Error> {
        let (n, me, each) = (self.size(), self.rank(), out.1);
        // SAFETY: B1; part `r` of the input is rank `r`'s.
        unsafe {
            // Small data is broadcast, and each takes its part.
            let everything = Out(std::ptr::null_mut(), each.saturating_mul(n), out.2);
            if Combined::broadcast(root, everything).is_small(n) {
                let mut all = vec![0u8; each * n];
                if let Some(input) = input.filter(|_| me == root) {
                    Out::of_slice(&mut all, out.2).copy_from(input);
                }
                self.broadcast(root, Out::of_slice(&mut all, out.2)).await?;
                out.copy_from(In::of_slice(&all[me * each..(me + 1) * each], out.2));
                return Ok(());
            }
            let parts = input.map(|input| input.parts(n));
            self.scatter_parts(root, parts.as_deref(), out).await
        }
    }

    /// Parts of any lengths, which belong to the root.
    ///
    /// # Errors
    /// Those of [`scatter`](Self::scatter).
    ///
    /// # Safety
    /// The root's parts, one for each rank, are readable and `out` is writable until the future is
    /// ready; none overlaps another.
    pub async unsafe fn scatter_parts(
        &self,
        root: usize,
        parts: Option<&[In]>,
        out: Out,
    ) -> Result<(), Error> {
        let (n, me) = (self.size(), self.rank());
        self.number();
        // SAFETY: B1.
        unsafe {
            match parts.filter(|_| me == root) {
                Some(parts) => {
                    self.check_own(parts[me], out)?;
                    out.copy_from(parts[me]);
                    for to in (0..n).filter(|to| *to != me) {
                        self.send(0, to, parts[to]).await?;
                    }
                }
                None => self.receive(0, root, out).await?,
            }
        }
        Ok(())
    }

    /// Equal parts to and from all ranks.
    ///
    /// # Errors
    /// Those of [`barrier`](Self::barrier); or parts differ in length or type.
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce).
    pub async unsafe fn all_to_all(&self, input: In, out: Out) -> Result<(), Error> {
        let n = self.size();
        let combined = Combined::all_to_all(input, out);
        // SAFETY: B1; parts are by rank.
        unsafe {
            if combined.is_small(n) {
                return self.combine(0, &combined).await;
            }
            self.all_to_all_parts(&input.parts(n), &out.parts(n)).await
        }
    }

    /// Parts of any lengths to and from all ranks.
    ///
    /// # Errors
    /// Those of [`barrier`](Self::barrier); or what a rank sends differs in length or type from the
    /// part that is meant for it.
    ///
    /// # Safety
    /// The parts, one for each rank on both sides, are readable or writable until the future is
    /// ready; none overlaps another.
    pub async unsafe fn all_to_all_parts(&self, input: &[In], out: &[Out]) -> Result<(), Error> {
        let (n, me) = (self.size(), self.rank());
        self.number();
        // SAFETY: B1.
        unsafe {
            self.check_own(input[me], out[me])?;
            out[me].copy_from(input[me]);
            for step in 1..n {
                let (to, from) = ((me + step) % n, (me + n - step) % n);
                self.exchange(0, to, input[to], from, out[from]).await?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`combine_as`](Self::combine_as).
    pub(super) async unsafe fn combine(
        &self,
        phase: u32,
        combined: &Combined,
    ) -> Result<(), Error> {
        let spec = combined.spec(&self.comm);
        // SAFETY: B1.
        unsafe { self.combine_as(&spec, phase, combined) }.await
    }

    /// # Safety
    /// The buffers are valid for their lengths until the future is ready.
    pub(super) async unsafe fn combine_as(
        &self,
        spec: &Spec,
        phase: u32,
        combined: &Combined,
    ) -> Result<(), Error> {
        let number = Some((self.number() << PHASE_BITS) | phase);
        let (input, out) = (combined.input.0, combined.out.0);
        // SAFETY: B1.
        let started = pe::with(|pe| unsafe { combine(&mut pe.engine, spec, number, input, out) });
        let outcome = match started {
            Started::Done(outcome) => outcome,
            Started::Pending(request, _) => Pending::new(request, self.site, None).await?,
        };
        check_agreement(&outcome, spec)
    }

    /// Folds a long vector among the ranks of each PE and then among PEs, a window after the other.
    ///
    /// # Safety
    /// The buffers are valid for their lengths until the future is ready.
    pub(super) async unsafe fn combine_windows(
        &self,
        windows: usize,
        combined: &Combined,
    ) -> Result<(), Error> {
        for i in 0..windows {
            let window = combined.window(i, windows, &self.comm);
            let spec = Spec { whole: combined.input.1, ..window.spec(&self.comm) };
            // SAFETY: B1: a window is a part of the buffers.
            unsafe { self.combine_as(&spec, FIRST_WINDOW + i as u32, &window) }.await?;
        }
        Ok(())
    }

    /// The message by which this rank sends `data` to the rank `to` in a phase of the operation,
    /// whose lowest eight bits count.
    pub fn outbound(&self, phase: u32, to: usize, data: In) -> Outbound {
        Outbound {
            context: self.context(),
            to: self.comm.members.get(to),
            source: self.comm.rank,
            tag: self.tag(phase),
            data: data.0,
            len: data.1,
            mode: Mode::Standard,
            signature: data.2,
        }
    }

    /// The pattern with which this rank receives the message that the rank `from` sends it in a
    /// phase.
    pub fn pattern(&self, phase: u32, from: usize) -> Pattern {
        Pattern { context: self.context(), source: from as i32, tag: self.tag(phase) }
    }

    /// Messages of one operation have its number and their phase for a tag. Numbers come again
    /// after 4 million operations; messages between two ranks keep their order anyway.
    fn tag(&self, phase: u32) -> i32 {
        (((self.number() & 0x3f_ffff) << 8) | (phase & 0xff)) as i32
    }

    /// Sends `data` to the rank `to`.
    ///
    /// # Safety
    /// `data` is readable until the future is ready.
    pub(crate) async unsafe fn send(&self, phase: u32, to: usize, data: In) -> Result<(), Error> {
        // SAFETY: B1.
        unsafe { operation::send(self.outbound(phase, to, data), self.site) }.await
    }

    /// Receives what the rank `from` sends in the same phase; it has to be as long as `data`.
    ///
    /// # Safety
    /// `data` is writable, and nobody uses it, until the future is ready.
    pub(crate) async unsafe fn receive(
        &self,
        phase: u32,
        from: usize,
        data: Out,
    ) -> Result<(), Error> {
        let pattern = self.pattern(phase, from);
        // SAFETY: B1.
        let outcome = unsafe { operation::receive(pattern, data.room(), self.site) }.await?;
        self.check_came(&outcome, data.1, from)
    }

    /// [`send`](Self::send) and [`receive`](Self::receive) at the same time.
    ///
    /// # Safety
    /// `data` is readable and `out` writable until the future is ready, and they do not overlap.
    pub(crate) async unsafe fn exchange(
        &self,
        phase: u32,
        to: usize,
        data: In,
        from: usize,
        out: Out,
    ) -> Result<(), Error> {
        let (message, pattern) = (self.outbound(phase, to, data), self.pattern(phase, from));
        // SAFETY: B1.
        let outcome =
            unsafe { operation::exchange(message, pattern, out.room(), self.site) }.await?;
        self.check_came(&outcome, out.1, from)
    }

    /// Checks that a rank's contribution has the expected type and length.
    ///
    /// # Errors
    /// It has not.
    pub fn check_came(
        &self,
        outcome: &Completion,
        expected: usize,
        from: usize,
    ) -> Result<(), Error> {
        if let Some((sent, expected)) = outcome.types() {
            return Err(Error::ContributionType { from, bytes: outcome.bytes, sent, expected });
        }
        self.check_length(outcome.bytes, expected, from)
    }

    /// Checks that what this rank gives to itself is of the type and length expected.
    fn check_own(&self, input: In, out: Out) -> Result<(), Error> {
        expect_type(input.2, out.2, input.1)?;
        self.check_length(input.1 as u64, out.1, self.rank())
    }

    fn check_length(&self, bytes: u64, expected: usize, from: usize) -> Result<(), Error> {
        if bytes != expected as u64 {
            return Err(Error::ContributionLength { from, bytes, rank: self.rank(), expected });
        }
        Ok(())
    }
}
