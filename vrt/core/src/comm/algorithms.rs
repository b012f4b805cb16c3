//! Collective operations, each once, as a future over packed bytes.
//!
//! Small data is combined by PEs first, then among PEs (`combine`); large data goes from rank to
//! rank, straight between their buffers. Which it is, [`Combined`] says to all:
//!
//! | operation | small data | large data | source |
//! |---|---|---|---|
//! | barrier | combined | - | - |
//! | broadcast | combined | binomial tree | Thakur, Rabenseifner, Gropp 2005, section 4.1 |
//! | reduce, all_reduce, several ranks per PE | combined | folded by PEs in windows (`long`) | - |
//! | reduce, all_reduce | combined | binary tree over ranks, then broadcast | same, section 4.4 |
//! | all_reduce, 2^k ranks, from `HALVING` on | - | recursive halving by doubling distance, then doubling back | same, section 4.5 (Rabenseifner), its distances reversed |
//! | reduce_scatter | combined, each takes its part | as all_reduce up to the root, then scatter | - |
//! | gather, scatter | combined | every rank with the root, straight into place | - |
//! | all_gather | combined | ring | same, section 4.1 |
//! | all_to_all | combined | pairwise exchange | same, section 4.3 |
//! | scan | combined, each folds its prefix | chain in rank order | - |
//!
//! Operations with a count for each rank, and user operations (which run in ranks, never in the
//! PE), use the large ways, or gather and fold.
//!
//! All ways fold in the same tree over rank numbers, so neither the size of the data nor the places
//! of ranks change a bit of an element: blocks of 1, 2, 4, .. neighbouring ranks are folded with
//! their neighbours, the lower ranks on the left. (Halving with distances 1, 2, 4, .. is exactly
//! that tree, element by element.) Scans fold from the left.

use std::cell::Cell;

use crate::comm::CommunicatorHandle;
use crate::comm::bytes::expect_type;
pub use crate::comm::bytes::{In, Out};
use crate::comm::combine::{PHASE_BITS, combine};
use crate::comm::combined::check_agreement;
pub use crate::comm::combined::{Combined, combine_now};
use crate::comm::operator::Operator;
use crate::comm::reduce_op::ReduceOp;
use crate::comm::spec::Spec;
use crate::error::{Error, Site};
use crate::mailbox::Pattern;
use crate::operation::{self, Pending};
use crate::pe::{self, Completion, Mode, Outbound, Started};

/// From how many bytes on an all_reduce of 2^k ranks halves its data.
pub(crate) const HALVING: usize = 64 << 10;

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

/// A halving: with whom, and what of the data (start, length) was kept and given.
struct HalvingStep {
    partner: usize,
    keep: (usize, usize),
    give: (usize, usize),
}

impl Drop for Collective {
    fn drop(&mut self) {
        if self.number.get().is_some() {
            pe::collective_ends(self.context(), self.site.call);
        }
    }
}

/// All functions here demand that the buffers given are valid for their lengths until the future
/// is ready, and do not overlap.
impl Collective {
    /// An operation that the calling rank is about to begin: it does when a future of it is first
    /// polled or its [`number`](Self::number) asked for. The table of a deadlock names the site.
    pub fn begin(comm: &CommunicatorHandle, site: Site) -> Collective {
        Collective { comm: comm.clone(), number: Cell::new(None), site }
    }

    fn context(&self) -> u32 {
        self.comm.context + 1
    }

    /// The operation's number; this call makes the operation begin if it has not.
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

    fn rank(&self) -> usize {
        self.comm.rank as usize
    }

    fn size(&self) -> usize {
        self.comm.size as usize
    }

    /// Waits until all ranks of the communicator have come here.
    ///
    /// # Errors
    /// Ranks have begun different operations, or another rank than the one that began it polls it.
    ///
    /// # Safety
    /// Nothing is demanded: a barrier reads and writes no memory.
    pub async unsafe fn barrier(&self) -> Result<(), Error> {
        let combined = Combined::barrier();
        // SAFETY: nothing is read or written.
        unsafe { self.combine(0, &combined) }.await
    }

    /// Gives the root's bytes to all ranks.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); or the root's bytes differ from `data` in length or type.
    ///
    /// # Safety
    /// `data` is readable and writable until the future is ready.
    pub async unsafe fn broadcast(&self, root: usize, data: Out) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        unsafe { self.broadcast_in(0, root, data) }.await
    }

    async unsafe fn broadcast_in(&self, phase: u32, root: usize, data: Out) -> Result<(), Error> {
        // SAFETY: as the caller promises.
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

    /// `out` is the root's (or, without a root, everybody's), at least as long as the input.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); or ranks contribute different lengths or types, or a user's
    /// operation fails.
    ///
    /// # Safety
    /// `input` is readable and `out` writable until the future is ready, and they do not overlap.
    pub async unsafe fn reduce(
        &self,
        root: Option<usize>,
        op: &ReduceOp<'_>,
        input: In,
        out: Option<Out>,
    ) -> Result<(), Error> {
        // Of the type that is contributed: a buffer of other integers is converted at the end.
        let out = out.map(|out| Out(out.0, input.1, input.2));
        // SAFETY: as the caller promises.
        unsafe {
            if let ReduceOp::Predefined(operator) = op {
                let combined = Combined::reduce(*operator, root, input, out);
                if combined.is_small(self.size()) {
                    return self.combine(0, &combined).await;
                }
                if let Some(windows) = combined.windows(&self.comm) {
                    return self.combine_windows(windows, &combined).await;
                }
            }
            self.number();
            let halves = self.size().is_power_of_two() && input.1 >= HALVING;
            if let (ReduceOp::Predefined(operator), None, Some(out), true) = (op, root, out, halves)
                && input.1.is_multiple_of(operator.scalar.size())
            {
                return self.halve_and_double(*operator, input, out).await;
            }
            let at = root.unwrap_or(0);
            let result = self.reduce_to(at, op, input).await?;
            if let (Some(out), Some(result)) = (out, &result) {
                out.copy_from(In::of_slice(result, input.2));
            }
            if let (None, Some(out)) = (root, out) {
                self.broadcast_in(1, at, out).await?;
            }
        }
        Ok(())
    }

    /// The folded contributions of all ranks, at the root.
    async unsafe fn reduce_to(
        &self,
        root: usize,
        op: &ReduceOp<'_>,
        input: In,
    ) -> Result<Option<Vec<u8>>, Error> {
        let (n, me) = (self.size(), self.rank());
        // SAFETY: as the caller promises.
        unsafe {
            let mut combined = Combined::gather(Some(root), input, None);
            if combined.is_small(n) {
                let mut all = vec![0u8; if me == root { input.1 * n } else { 0 }];
                combined.out = Out::of_slice(&mut all, input.2);
                self.combine(0, &combined).await?;
                return if me == root { op.fold_all(&all, input.1).map(Some) } else { Ok(None) };
            }
            if let ReduceOp::Predefined(operator) = op {
                let mut combined = Combined::reduce(*operator, Some(root), input, None);
                if let Some(windows) = combined.windows(&self.comm) {
                    let mut all = vec![0u8; if me == root { input.1 } else { 0 }];
                    combined.out = Out::of_slice(&mut all, input.2);
                    self.combine_windows(windows, &combined).await?;
                    return Ok((me == root).then_some(all));
                }
            }
            let mut mine = input.slice().to_vec();
            let mut theirs = Vec::new();
            let mut bit = 1;
            while bit < n {
                if me & bit != 0 {
                    self.send(0, me - bit, In::of_slice(&mine, input.2)).await?;
                    break;
                }
                if me + bit < n {
                    theirs.resize(input.1, 0);
                    self.receive(0, me + bit, Out::of_slice(&mut theirs, input.2)).await?;
                    op.fold(&mut mine, &mut theirs)?;
                }
                bit <<= 1;
            }
            // The result is at rank 0 now.
            match (me, root) {
                (0, 0) => Ok(Some(mine)),
                (0, _) => {
                    self.send(2, root, In::of_slice(&mine, input.2)).await?;
                    Ok(None)
                }
                _ if me == root => {
                    mine.resize(input.1, 0);
                    self.receive(2, 0, Out::of_slice(&mut mine, input.2)).await?;
                    Ok(Some(mine))
                }
                _ => Ok(None),
            }
        }
    }

    /// Of 2^k ranks: folds half of the data with the neighbour at distance 1, half of that at
    /// distance 2, and so on, then gathers the parts on the way back. What a neighbour contributes
    /// comes right to where it is needed, or into the part of the output that is filled last.
    async unsafe fn halve_and_double(
        &self,
        operator: Operator,
        input: In,
        out: Out,
    ) -> Result<(), Error> {
        let (n, me, each) = (self.size(), self.rank(), operator.scalar.size());
        let (mut at, mut len) = (0, input.1);
        let mut ways: Vec<HalvingStep> = Vec::new();
        let mut bit = 1;
        // SAFETY: as the caller promises; all ranges lie in the data.
        unsafe {
            if n == 1 {
                out.copy_from(input);
                return Ok(());
            }
            while bit < n {
                let (partner, is_lower) = (me ^ bit, me & bit == 0);
                let low = len / each / 2 * each;
                // The lower rank keeps the lower half.
                let (lower, upper) = ((at, low), (at + low, len - low));
                let (keep, give) = if is_lower { (lower, upper) } else { (upper, lower) };
                let (have, theirs) = match ways.first() {
                    None => (input, out.range(keep.0, keep.1)),
                    Some(first) => (out.read(), out.range(first.give.0, keep.1)),
                };
                let give_now = have.range(give.0, give.1);
                self.exchange(0, partner, give_now, partner, theirs).await?;
                match (ways.is_empty(), is_lower) {
                    (true, true) => operator.fold_right(have.0.add(keep.0), theirs.0, keep.1),
                    (true, false) => operator.fold(theirs.0, have.0.add(keep.0), keep.1),
                    (false, true) => operator.fold(out.0.add(keep.0), theirs.0, keep.1),
                    (false, false) => operator.fold_right(theirs.0, out.0.add(keep.0), keep.1),
                }
                ways.push(HalvingStep { partner, keep, give });
                (at, len) = keep;
                bit <<= 1;
            }
            for HalvingStep { partner, keep, give } in ways.into_iter().rev() {
                let have = out.read().range(keep.0, keep.1);
                self.exchange(1, partner, have, partner, out.range(give.0, give.1)).await?;
            }
        }
        Ok(())
    }

    /// Folds all contributions; rank `i` gets the part of `lengths[i]` bytes.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    ///
    /// # Safety
    /// `input`, of as many bytes as all parts together, is readable and `out`, of this rank's part,
    /// writable until the future is ready, and they do not overlap.
    pub async unsafe fn reduce_scatter(
        &self,
        op: &ReduceOp<'_>,
        input: In,
        lengths: &[usize],
        out: Out,
    ) -> Result<(), Error> {
        let me = self.rank();
        let at: usize = lengths[..me].iter().sum();
        // SAFETY: as the caller promises.
        unsafe {
            let combines = |operator: &Operator| {
                Combined::reduce(*operator, None, input, None).is_small(self.size())
            };
            if let ReduceOp::Predefined(operator) = op
                && combines(operator)
            {
                let mut all = vec![0u8; input.1];
                self.reduce(None, op, input, Some(Out::of_slice(&mut all, input.2))).await?;
                out.copy_from(In::of_slice(&all[at..at + out.1], input.2));
                return Ok(());
            }
            self.number();
            let result = self.reduce_to(0, op, input).await?;
            if let Some(result) = result {
                let mut begin = lengths[0];
                out.copy_from(In::of_slice(&result[..begin], input.2));
                for (to, len) in lengths.iter().enumerate().skip(1) {
                    self.send(1, to, In::of_slice(&result[begin..begin + len], input.2)).await?;
                    begin += len;
                }
            } else {
                // As in `reduce`.
                self.receive(1, 0, Out(out.0, out.1, input.2)).await?;
            }
        }
        Ok(())
    }

    /// Equal contributions. `out` is the root's (or, without a root, everybody's), as long as all
    /// inputs together.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); or ranks contribute different lengths or types.
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
        // SAFETY: as the caller promises; part `r` of the output is rank `r`'s.
        unsafe {
            if combined.is_small(self.size()) {
                return self.combine(0, &combined).await;
            }
            let parts = out.map(|out| out.parts(self.size()));
            self.gather_parts(root, input, parts.as_deref()).await
        }
    }

    /// Contributions of any lengths: of rank `r` that of part `r`.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); or a contribution differs from its part in length or
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
        // SAFETY: as the caller promises.
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

    /// Equal parts. `input` is the root's, as long as all outputs together.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); or the root's part differs from `out` in length or type.
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
        // SAFETY: as the caller promises; part `r` of the input is rank `r`'s.
        unsafe {
            // Small data is broadcast, and each takes its part.
            let everything = Out(std::ptr::null_mut(), each * n, out.2);
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

    /// Parts of any lengths, which are the root's.
    ///
    /// # Errors
    /// As [`scatter`](Self::scatter).
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
        // SAFETY: as the caller promises.
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

    /// Equal parts for and from all.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); or parts differ in length or type.
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce).
    pub async unsafe fn all_to_all(&self, input: In, out: Out) -> Result<(), Error> {
        let n = self.size();
        let combined = Combined::all_to_all(input, out);
        // SAFETY: as the caller promises; parts are by rank.
        unsafe {
            if combined.is_small(n) {
                return self.combine(0, &combined).await;
            }
            self.all_to_all_parts(&input.parts(n), &out.parts(n)).await
        }
    }

    /// Parts of any lengths for and from all.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); or what a rank sends differs in length or type from the
    /// part that is there for it.
    ///
    /// # Safety
    /// The parts, one for each rank on both sides, are readable or writable until the future is
    /// ready; none overlaps another.
    pub async unsafe fn all_to_all_parts(&self, input: &[In], out: &[Out]) -> Result<(), Error> {
        let (n, me) = (self.size(), self.rank());
        self.number();
        // SAFETY: as the caller promises.
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

    /// Folds the inputs of ranks 0 to this one (without this one if exclusive) in rank order.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce), with an `out` as long as the input.
    pub async unsafe fn scan(
        &self,
        op: &ReduceOp<'_>,
        input: In,
        out: Out,
        exclusive: bool,
    ) -> Result<(), Error> {
        let (n, me, each) = (self.size(), self.rank(), input.1);
        // SAFETY: as the caller promises.
        unsafe {
            let mut combined = Combined::gather(None, input, None);
            if combined.is_small(n) {
                let mut all = vec![0u8; each * n];
                combined.out = Out::of_slice(&mut all, input.2);
                self.combine(0, &combined).await?;
                let last = if exclusive { me } else { me + 1 };
                if last == 0 || each == 0 {
                    return Ok(());
                }
                let mut parts = all.chunks(each).take(last);
                let mut upto = parts.next().unwrap_or_default().to_vec();
                for part in parts {
                    op.fold(&mut upto, &mut part.to_vec())?;
                }
                out.copy_from(In::of_slice(&upto, input.2));
                return Ok(());
            }
            self.number();
            let mut mine = input.slice().to_vec();
            if me > 0 {
                let mut upto = vec![0u8; each];
                self.receive(0, me - 1, Out::of_slice(&mut upto, input.2)).await?;
                if exclusive {
                    out.copy_from(In::of_slice(&upto, input.2));
                }
                op.fold(&mut upto, &mut mine)?;
                mine = upto;
            }
            if !exclusive {
                out.copy_from(In::of_slice(&mine, input.2));
            }
            if me + 1 < n {
                self.send(0, me + 1, In::of_slice(&mine, input.2)).await?;
            }
        }
        Ok(())
    }

    async unsafe fn combine(&self, phase: u32, combined: &Combined) -> Result<(), Error> {
        let spec = combined.spec(&self.comm);
        // SAFETY: as the caller promises.
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
        // SAFETY: as the caller promises.
        let started = pe::with(|pe| unsafe { combine(&mut pe.engine, spec, number, input, out) });
        let outcome = match started {
            Started::Done(outcome) => outcome,
            Started::Pending(request, _) => Pending::new(request, self.site, None).await?,
        };
        check_agreement(&outcome, spec)
    }

    /// The message by which this rank sends `data` to the rank `to` in a phase of the operation, of
    /// which the lowest eight bits count.
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

    /// What this rank asks for to receive the message that the rank `from` sends it in a phase.
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
        // SAFETY: as the caller promises.
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
        // SAFETY: as the caller promises.
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
        // SAFETY: as the caller promises.
        let outcome =
            unsafe { operation::exchange(message, pattern, out.room(), self.site) }.await?;
        self.check_came(&outcome, out.1, from)
    }

    /// Checks that what a rank contributed is of the type and length expected.
    ///
    /// # Errors
    /// It is not.
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
