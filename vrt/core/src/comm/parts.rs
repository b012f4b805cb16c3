//! The data of a PE for a combined operation: parts of a binary tree over rank numbers.
//!
//! A part covers the ranks of an aligned block of a fixed binary tree over rank numbers: `(start, level)` covers `start
//! .. start + 2^level`. Two blocks are folded only with each other into the block above, the lower one on the left. The
//! result is therefore the same to the last bit however ranks are distributed over PEs and in whatever order they
//! arrive, and rank order is kept. A PE with scattered ranks only has more parts to send.
//!
//! The ranks of a PE are consecutive in nearly all groups. Then their contributions lie side by side in rank order, and
//! become parts when all have arrived, one level of the tree at a time.
//!
//! Long contributions are folded as they arrive, each directly from the rank's buffer into the block that it belongs
//! to, so that a value is read once and what is kept are a few blocks that stay in the cache: if ranks arrive in order,
//! one for each level of the tree.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use std::ops::Range;
use std::rc::Rc;

use crate::comm::operator::Pair;
use crate::comm::relay::Relay;
use crate::comm::spec::{Disagreement, Spec, Waiting, What};
use crate::pe::copy_short;

/// Level of a part that covers everybody.
pub(super) const EVERYBODY: u32 = 31;

/// An operation's context and number.
pub(super) type Key = (u32, u32);

/// A small operation on this PE. Closed ones are used again, with the memory of their lists.
#[derive(Debug, Default)]
pub(super) struct Operation {
    pub(super) key: Key,
    pub(super) spec: Option<Spec>,
    /// Of this PE's own ranks, and only they are sent on.
    pub(super) parts: Vec<Subtree>,
    /// Of other PEs.
    pub(super) remote: Vec<Subtree>,
    pub(super) data: Vec<u8>,
    /// The first rank of this PE, and where in `data` its contribution lies, which those of the
    /// others follow; `None` when they are parts already.
    pub(super) side_by_side: Option<(u32, usize)>,
    /// Between two folds: nothing of interest.
    pub(super) pairs: Vec<Pair>,
    right: Vec<Subtree>,
    /// Places in `data` of long parts that have been folded into others.
    pub(super) free: Vec<usize>,
    /// Long parts of other PEs that have come in part, with the bytes that have.
    pub(super) arriving: Vec<(Subtree, usize)>,
    /// Ranks that the PE's own parts cover.
    pub(super) covered_here: u32,
    /// Ranks of this PE that have begun it, and that will.
    pub(super) arrived: u32,
    pub(super) here: u32,
    /// What PEs disagree about, if they do.
    pub(super) conflict: Option<Disagreement>,
    /// What the other PEs say that it is.
    pub(super) others: Option<Disagreement>,
    pub(super) waiting: Vec<Waiting>,
    /// How other PEs are reached, if they are many.
    pub(super) relay: Option<Rc<Relay>>,
    /// What is below this PE has gone to its parent: what comes now is the result.
    pub(super) has_passed_up: bool,
    /// Whether it is found by its key when another one is current.
    pub(super) is_listed: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Subtree {
    pub(super) start: u32,
    pub(super) level: u32,
    /// Its bytes in `data`.
    pub(super) at: usize,
}

impl Operation {
    #[inline]
    pub(super) fn store(&mut self, start: u32, level: u32, bytes: &[u8]) -> Subtree {
        let at = self.data.len();
        match bytes.first_chunk::<8>() {
            // One number.
            Some(word) if bytes.len() == 8 => self.data.extend_from_slice(word),
            _ => self.data.extend_from_slice(bytes),
        }
        Subtree { start, level, at }
    }

    /// A rank of this PE contributes.
    #[inline(always)]
    pub(super) fn add(&mut self, rank: u32, bytes: &[u8]) {
        self.covered_here += 1;
        match self.side_by_side {
            Some((first, base)) => {
                let at = base + (rank - first) as usize * bytes.len();
                let place = &mut self.data[at..at + bytes.len()];
                // SAFETY: `place` is a slice of this length.
                unsafe { copy_short(bytes.as_ptr(), place.as_mut_ptr(), bytes.len()) };
            }
            None => match self.spec {
                Some(Spec { what: What::Reduce(operator), .. }) if self.is_long() => {
                    self.fold_in(operator, rank, bytes);
                }
                _ => {
                    let part = self.store(rank, 0, bytes);
                    self.parts.push(part);
                }
            },
        }
    }

    fn is_long(&self) -> bool {
        self.spec.is_some_and(|spec| spec.is_long())
    }

    /// Makes room for contributions side by side, beginning with that of a rank.
    pub(super) fn make_room(&mut self, first: u32, unit: usize) {
        let base = self.data.len();
        self.data.resize(base + self.here as usize * unit, 0);
        self.side_by_side = Some((first, base));
    }

    /// Ranks whose contribution is there.
    pub(super) fn covered(&self, size: u32) -> u32 {
        let remote = self.remote.iter();
        let remote = remote.map(|p| p.start.saturating_add(1 << p.level).min(size) - p.start);
        self.covered_here + remote.sum::<u32>()
    }

    /// What has come from other PEs becomes this PE's own.
    pub(super) fn take_over(&mut self) {
        self.fold();
        self.parts.append(&mut self.remote);
        self.fold();
    }

    /// All that was there has gone to the parent, which sends the result.
    pub(super) fn pass_up(&mut self) {
        self.parts.clear();
        self.data.clear();
        self.covered_here = 0;
        self.has_passed_up = true;
    }

    /// Folds what can be folded now; see the module's text for the order.
    pub(super) fn fold(&mut self) {
        let Some(spec) = self.spec else { return };
        let operator = match spec.what {
            What::Reduce(operator) => Some(operator),
            // A barrier: there is nothing to lay side by side.
            What::Concatenate if spec.unit == 0 => None,
            What::Concatenate | What::Broadcast | What::Exchange => {
                if let Some((first, base)) = self.side_by_side.take() {
                    let part = |i| Subtree {
                        start: first + i,
                        level: 0,
                        at: base + i as usize * spec.unit,
                    };
                    self.parts.extend((0..self.here).map(part));
                }
                return;
            }
        };
        if let Some((first, base)) = self.side_by_side.take() {
            self.pair_side_by_side(&spec, first, base);
        }
        let (parts, pairs, data) = (&mut self.parts, &mut self.pairs, self.data.as_mut_ptr());
        // Ranks come in turn: most often beginning with another one than the first.
        if let Some(turn) = parts.windows(2).position(|pair| pair[0].start > pair[1].start) {
            parts.rotate_left(turn + 1);
            if !parts.is_sorted_by_key(|part| part.start) {
                parts.sort_unstable_by_key(|part| part.start);
            }
        }
        // What is folded replaces the parts from the front on.
        let mut folded = 0;
        for next in 0..parts.len() {
            parts[folded] = parts[next];
            folded += 1;
            loop {
                let top = &mut parts[folded - 1];
                let half = 1u32 << top.level;
                if top.start.is_multiple_of(2 * half) {
                    if top.level < EVERYBODY - 1 && top.start + half >= spec.size && top.start > 0 {
                        // Its right neighbour has no ranks.
                        top.level += 1;
                        continue;
                    }
                    break;
                }
                let right = *top;
                let Some(left) = folded.checked_sub(2).map(|i| &mut parts[i]) else { break };
                if left.level != right.level || left.start + half != right.start {
                    break;
                }
                // SAFETY: B2.
                pairs.push(unsafe { (data.add(left.at), data.add(right.at)) });
                left.level += 1;
                folded -= 1;
            }
        }
        parts.truncate(folded);
        if let Some(operator) = operator {
            // SAFETY: B2.
            unsafe { operator.fold_pairs(pairs, spec.unit) };
        }
        pairs.clear();
    }

    /// Makes the largest parts there are of contributions side by side, all that are to come.
    fn pair_side_by_side(&mut self, spec: &Spec, first: u32, base: usize) {
        let data = self.data.as_mut_ptr();
        // SAFETY: contributions side by side are in `data`: `make_room`.
        let at = |start: u32| unsafe { data.add(base + (start - first) as usize * spec.unit) };
        let part = |start: u32, level: u32| Subtree {
            start,
            level,
            at: base + (start - first) as usize * spec.unit,
        };
        // The blocks `from..to` of a level are there and not part of larger ones yet.
        let (mut from, mut to) = (first, first + self.here);
        let mut level = 0;
        while from < to {
            let is_all = from == 0 && to == 1;
            if from % 2 == 1 || is_all {
                self.parts.push(part(from << level, level));
                from += 1;
            }
            // The last one's right neighbour may have no ranks: then it is a block of the next
            // level by itself.
            if to % 2 == 1 && to > from && (to << level) < spec.size {
                to -= 1;
                self.right.push(part(to << level, level));
            }
            // Of a barrier there is nothing to fold.
            let pairs = if spec.unit == 0 { 0 } else { (to - from) / 2 };
            self.pairs.extend((0..pairs).map(|i| {
                let left = (from + 2 * i) << level;
                (at(left), at(left + (1 << level)).cast_const())
            }));
            (from, to) = (from.div_ceil(2), to.div_ceil(2));
            level += 1;
        }
        self.parts.extend(self.right.drain(..).rev());
    }

    /// Where in `data` the result is that all get, when all parts are there and folded.
    pub(super) fn result(&mut self, spec: &Spec) -> Range<usize> {
        let Spec { what, unit, .. } = *spec;
        match what {
            What::Reduce(_) | What::Broadcast => {
                self.parts.first().map_or(0..0, |part| part.at..part.at + unit)
            }
            What::Exchange => 0..0,
            What::Concatenate => {
                let begin = self.data.len();
                self.data.resize(begin + spec.result_len(), 0);
                let (parts, result) = self.data.split_at_mut(begin);
                for part in self.parts.iter().filter(|_| unit > 0) {
                    let to = part.start as usize * unit;
                    result[to..to + unit].copy_from_slice(&parts[part.at..part.at + unit]);
                }
                begin..self.data.len()
            }
        }
    }

    /// Gives a rank its result.
    ///
    /// # Safety
    /// Its output has room for that.
    #[inline(always)]
    pub(super) unsafe fn hand_out(&self, spec: &Spec, result: &Range<usize>, to: &Waiting) {
        // SAFETY: B3: the output has room for the result, says the caller.
        unsafe {
            if matches!(spec.what, What::Exchange) {
                return self.hand_out_parts(spec, to);
            }
            let result = &self.data[result.start..result.end];
            if to.out.is_null() {
                return;
            }
            copy_short(result.as_ptr(), to.out, result.len());
        }
    }

    /// # Safety
    /// As [`hand_out`](Self::hand_out).
    #[inline(never)]
    unsafe fn hand_out_parts(&self, spec: &Spec, to: &Waiting) {
        let each = spec.unit / spec.size as usize;
        for part in &self.parts {
            let at = part.at + to.place as usize * each;
            let bytes = &self.data[at..at + each];
            // SAFETY: B3: the output has room for a part of each rank.
            unsafe { copy_short(bytes.as_ptr(), to.out.add(part.start as usize * each), each) };
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.spec = None;
        self.parts.clear();
        self.remote.clear();
        self.data.clear();
        self.free.clear();
        self.arriving.clear();
        self.side_by_side = None;
        self.waiting.clear();
        self.arrived = 0;
        self.covered_here = 0;
        self.conflict = None;
        self.others = None;
        self.relay = None;
        self.has_passed_up = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::operator::{Op, Operator};
    use crate::comm::spec::MAX_UNIT;
    use crate::layout::Scalar;
    use proptest::prelude::*;

    fn spec(size: u32, is_long: bool) -> Spec {
        let operator = Operator { op: Op::Sum, scalar: Scalar::F64 };
        Spec {
            what: What::Reduce(operator),
            root: None,
            context: 1,
            rank: 0,
            size,
            first: 0,
            unit: 8,
            whole: if is_long { MAX_UNIT + 1 } else { 8 },
            signature: crate::layout::Signature::ANY,
        }
    }

    /// The tree, written down.
    fn tree(values: &[f64], start: usize, level: u32) -> f64 {
        if level == 0 {
            return values[start];
        }
        let half = 1usize << (level - 1);
        let left = tree(values, start, level - 1);
        if start + half < values.len() {
            left + tree(values, start + half, level - 1)
        } else {
            left
        }
    }

    proptest! {
        #[test]
        fn sums_are_the_same_bits_however_ranks_are_spread(
            values in prop::collection::vec(-1e10f64..1e10, 1..70),
            mut owners in prop::collection::vec(0usize..4, 70),
            in_blocks in any::<bool>(),
            is_long in any::<bool>(),
            order in any::<u64>(),
        ) {
            let n = values.len() as u32;
            if in_blocks {
                owners.sort_unstable();
            }
            let spec = spec(n, is_long);
            let mut all = Operation { spec: Some(spec), ..Operation::default() };
            for pe in 0..4 {
                let mut mine = Operation { spec: Some(spec), ..Operation::default() };
                let is_mine = |i: &u32| owners[*i as usize] == pe;
                mine.here = (0..n).filter(is_mine).count() as u32;
                if let Some(first) = (0..n).find(is_mine)
                    && (first..n).take(mine.here as usize).all(|i| is_mine(&i))
                    && !is_long
                {
                    mine.make_room(first, 8);
                }
                for i in 0..n {
                    let i = (u64::from(i).wrapping_add(order) % u64::from(n)) as u32;
                    if is_mine(&i) {
                        mine.add(i, &values[i as usize].to_ne_bytes());
                    }
                }
                mine.fold();
                for part in &mine.parts {
                    let bytes = &mine.data[part.at..part.at + 8];
                    if is_long {
                        all.store_some((part.start, part.level), 8, 0, &bytes[..3]);
                        prop_assert!(all.covered(n) < n);
                        all.store_some((part.start, part.level), 8, 3, &bytes[3..]);
                    } else {
                        let part = all.store(part.start, part.level, bytes);
                        all.remote.push(part);
                    }
                }
            }
            prop_assert_eq!(all.covered(n), n);
            all.parts = std::mem::take(&mut all.remote);
            all.fold();
            prop_assert_eq!(all.parts.len(), 1);
            let at = all.parts[0].at;
            let sum = f64::from_ne_bytes(all.data[at..at + 8].try_into().unwrap());
            let top = n.next_power_of_two().trailing_zeros();
            prop_assert_eq!(sum.to_bits(), tree(&values, 0, top).to_bits());
        }
    }
}
