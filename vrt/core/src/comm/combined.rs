//! Operations on small data, as PEs combine them: what each one is, what is small, and the call of one
//! that needs no future.
//!
//! Futures and blocking calls that need none ask the same question here, so that ranks whose forms of
//! an operation differ take the same way.

use crate::comm::CommunicatorHandle;
use crate::comm::bytes::{In, Out};
use crate::comm::combine::{MAX_UNIT, combine};
use crate::comm::operator::Operator;
use crate::comm::spec::{Spec, What};
use crate::error::{Error, Site};
use crate::layout::Signature;
use crate::operation::{self, MayBlock};
use crate::pe::{self, Completion};

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
            signature: if unit == 0 { Signature::ANY } else { self.input.2 },
        }
    }
}

/// A small operation of a blocking rank, without a future, if the data is small enough: false when
/// it is not.
///
/// # Errors
/// Ranks have begun different operations, or contribute different lengths or types.
///
/// # Safety
/// The buffers are valid for their lengths during the call.
#[inline(always)]
pub unsafe fn combine_now(
    may_block: MayBlock,
    comm: &CommunicatorHandle,
    site: Site,
    combined: &Combined,
) -> Result<bool, Error> {
    if !combined.is_small(comm.size as usize) {
        return Ok(false);
    }
    let spec = combined.spec(comm);
    let (input, out) = (combined.input.0, combined.out.0);
    // SAFETY: as the caller promises.
    let start = |engine: &mut pe::Engine| unsafe { combine(engine, &spec, None, input, out) };
    let outcome = operation::block_on_request(may_block, start, None, site);
    if pe::is_observed() {
        observe_end(&spec);
    }
    check_agreement(&outcome, &spec)?;
    Ok(true)
}

#[cold]
#[inline(never)]
fn observe_end(spec: &Spec) {
    pe::collective_ends(spec.context, "");
}

#[inline]
pub(super) fn check_agreement(outcome: &Completion, spec: &Spec) -> Result<(), Error> {
    if outcome.is_cancelled() { Err(disagreement(outcome, spec)) } else { Ok(()) }
}

#[cold]
fn disagreement(theirs: &Completion, own: &Spec) -> Error {
    Error::Disagreement {
        own_bytes: own.unit,
        own: own.signature,
        bytes: theirs.bytes,
        theirs: Signature::from_number(theirs.tag as u16),
    }
}
