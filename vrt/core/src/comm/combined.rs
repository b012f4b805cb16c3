//! Operations on small data, as PEs combine them: what each one is, and what is small.
//!
//! Futures and blocking calls that need none ask the same question here, so that ranks whose forms of
//! an operation differ take the same way.

use crate::comm::bytes::{In, Out};
use crate::comm::combine::{MAX_UNIT, What};
use crate::comm::operator::Operator;

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

/// The operations. With a root, `out` is the root's alone.
impl Combined {
    /// Nothing from all for all.
    #[inline(always)]
    pub fn barrier() -> Combined {
        Combined::gather(None, In::NOTHING, None)
    }

    /// What the root has, for all.
    #[inline(always)]
    pub fn broadcast(root: usize, data: Out) -> Combined {
        Combined { what: What::Broadcast, root: Some(root), input: data.read(), out: data }
    }

    /// The contributions of all, one after the other.
    #[inline(always)]
    pub fn gather(root: Option<usize>, input: In, out: Option<Out>) -> Combined {
        Combined { what: What::Concatenate, root, input, out: out.unwrap_or(Out::NOTHING) }
    }

    /// The contributions of all, folded.
    #[inline(always)]
    pub fn reduce(
        operator: Operator,
        root: Option<usize>,
        input: In,
        out: Option<Out>,
    ) -> Combined {
        Combined { what: What::Reduce(operator), root, input, out: out.unwrap_or(Out::NOTHING) }
    }

    /// A part from each for each.
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
}
