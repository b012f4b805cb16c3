//! Operations on small data, as PEs combine them: their descriptions, and the limit for small data.
//!
//! Both futures and blocking calls without a future (`now`) make this decision here, so that ranks that use different
//! forms of an operation choose the same algorithm.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks below their number; lengths are compared before they are multiplied"
    )
)]

use crate::comm::CommunicatorHandle;
use crate::comm::bytes::{In, Out};
use crate::comm::long;
use crate::comm::operator::Operator;
use crate::comm::spec::{MAX_UNIT, Spec, What};
use crate::layout::Signature;
use crate::pe;

/// Most bytes that one rank's result of a small operation may have.
const SMALL: usize = 32 << 10;

/// An operation as PEs combine it.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    pub(super) what: What,
    pub(super) root: Option<usize>,
    pub(super) input: In,
    pub(super) out: Out,
}

/// The operations. With a root, only the root has `out`.
impl Combined {
    /// Nothing from all ranks to all.
    #[inline(always)]
    pub fn barrier() -> Combined {
        Combined::gather(None, In::NOTHING, None)
    }

    /// The root's data, to all ranks.
    #[inline(always)]
    pub fn broadcast(root: usize, data: Out) -> Combined {
        Combined { what: What::Broadcast, root: Some(root), input: data.read(), out: data }
    }

    /// The contributions of all ranks, one after another.
    #[inline(always)]
    pub fn gather(root: Option<usize>, input: In, out: Option<Out>) -> Combined {
        Combined { what: What::Concatenate, root, input, out: out.unwrap_or(Out::NOTHING) }
    }

    /// The contributions of all ranks, folded.
    #[inline(always)]
    pub fn reduce(
        operator: Operator,
        root: Option<usize>,
        input: In,
        out: Option<Out>,
    ) -> Combined {
        Combined { what: What::Reduce(operator), root, input, out: out.unwrap_or(Out::NOTHING) }
    }

    /// A part from each rank to each.
    #[inline(always)]
    pub fn all_to_all(input: In, out: Out) -> Combined {
        Combined { what: What::Exchange, root: None, input, out }
    }
}

impl Combined {
    /// Whether so many ranks combine it. If not, its data goes from rank to rank.
    #[inline(always)]
    pub(super) fn is_small(&self, ranks: usize) -> bool {
        let unit = self.input.1;
        unit <= MAX_UNIT
            && match self.what {
                What::Concatenate => unit * ranks <= SMALL,
                // Nothing cannot be divided among the ranks.
                What::Exchange => unit > 0,
                What::Reduce(_) | What::Broadcast => true,
            }
    }

    /// Into how many windows a reduction is cut that PEs fold; `None`: its data goes from rank to rank.
    pub(super) fn windows(&self, comm: &CommunicatorHandle) -> Option<usize> {
        let What::Reduce(operator) = self.what else { return None };
        let len = self.input.1;
        let is_whole = len > MAX_UNIT && len.is_multiple_of(operator.scalar.size());
        let pes = is_whole.then(|| pe::with(|pe| pe.engine.shared.pes()))?;
        long::windows(len, comm.size as usize, pes)
    }

    /// A window of it, and its length.
    pub(super) fn window(&self, i: usize, windows: usize, comm: &CommunicatorHandle) -> Combined {
        let What::Reduce(operator) = self.what else { return *self };
        let (begin, len) = long::window(i, windows, self.input.1, operator.scalar.size());
        let is_awaited = self.root.is_none_or(|root| root == comm.rank as usize);
        let out = if is_awaited { self.out.range(begin, len) } else { Out::NOTHING };
        Combined { input: self.input.range(begin, len), out, ..*self }
    }

    /// What this rank says of it to its PE.
    #[inline]
    pub(super) fn spec(&self, comm: &CommunicatorHandle) -> Spec {
        let unit = self.input.1;
        Spec {
            what: self.what,
            root: self.root.map(|root| root as u32),
            context: comm.context + 1,
            rank: comm.rank as u32,
            size: comm.size as u32,
            first: comm.first(),
            unit,
            whole: unit,
            signature: if unit == 0 { Signature::ANY } else { self.input.2 },
        }
    }
}
