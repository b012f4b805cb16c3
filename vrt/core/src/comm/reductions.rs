//! Reductions and scans, each implemented once, as a future: see `algorithms` for which algorithm
//! is used when.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use crate::comm::algorithms::{Collective, Combined, In, Out};
use crate::comm::operator::Operator;
use crate::comm::reduce_op::ReduceOp;
use crate::error::Error;

/// From how many bytes on an all_reduce of 2^k ranks halves its data.
const HALVING: usize = 64 << 10;

/// A halving: with whom, and what of the data (start, length) was kept and given.
struct HalvingStep {
    partner: usize,
    keep: (usize, usize),
    give: (usize, usize),
}

/// As for the other operations, the buffers are valid for their lengths until the future is ready, and do not overlap.
impl Collective {
    /// `out` belongs to the root (or, without a root, to every rank) and is at least as long as the input.
    ///
    /// # Errors
    /// Those of [`barrier`](Self::barrier); or ranks contribute different lengths or types, or a user-defined operation
    /// fails.
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
        // SAFETY: B1.
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
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce).
    async unsafe fn reduce_to(
        &self,
        root: usize,
        op: &ReduceOp<'_>,
        input: In,
    ) -> Result<Option<Vec<u8>>, Error> {
        let (n, me) = (self.size(), self.rank());
        // SAFETY: B1.
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

    /// For 2^k ranks: folds half of the data with the neighbour at distance 1, half of that at distance 2, and so on,
    /// then gathers the parts on the way back. A neighbour's contribution is received directly where it is needed, or
    /// into the part of the output that is filled last.
    ///
    /// # Safety
    /// As [`reduce`](Self::reduce).
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
        // SAFETY: B1; all ranges are parts of the data.
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
    /// Those of [`reduce`](Self::reduce).
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
        // SAFETY: B1.
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

    /// Folds the inputs of ranks 0 to this one (without this one if exclusive) in rank order.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce).
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
        // SAFETY: B1.
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
}
