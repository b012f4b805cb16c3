//! Operations on small data, as PEs combine them: their descriptions, the limit for small data, and the call of one
//! that needs no future.
//!
//! Both futures and blocking calls without a future make this decision here, so that ranks that use different forms of
//! an operation choose the same algorithm.

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
use crate::comm::algorithms::Collective;
use crate::comm::bytes::{In, Out};
use crate::comm::combine::{MAX_UNIT, combine};
use crate::comm::long::{self, FIRST_WINDOW};
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
    fn window(&self, i: usize, windows: usize, comm: &CommunicatorHandle) -> Combined {
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

/// A small operation of a blocking rank, without a future, if the data is small enough; returns
/// false if it is not.
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
        // SAFETY: as the caller promises.
        return unsafe { combine_long_now(may_block, comm, site, combined) };
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

/// [`combine_now`] of a reduction that PEs fold in windows.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn combine_long_now(
    may_block: MayBlock,
    comm: &CommunicatorHandle,
    site: Site,
    combined: &Combined,
) -> Result<bool, Error> {
    let Some(windows) = combined.windows(comm) else { return Ok(false) };
    let collective = Collective::begin(comm, site);
    // SAFETY: as the caller promises.
    let future = unsafe { collective.combine_windows(windows, combined) };
    operation::drive(may_block, future).map(|()| true)
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
        own_bytes: own.whole,
        own: own.signature,
        bytes: theirs.bytes,
        theirs: Signature::from_number(theirs.tag as u16),
    }
}

impl Collective {
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
            // SAFETY: as the caller promises, of a part of the buffers.
            unsafe { self.combine_as(&spec, FIRST_WINDOW + i as u32, &window) }.await?;
        }
        Ok(())
    }
}
