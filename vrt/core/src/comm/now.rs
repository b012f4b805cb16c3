//! Small operations of blocking ranks, without a future.

use crate::comm::algorithms::Collective;
use crate::comm::combine::combine;
use crate::comm::combined::Combined;
use crate::comm::handle::CommunicatorHandle;
use crate::comm::spec::{Spec, check_agreement};
use crate::error::{Error, Site};
use crate::operation::{self, MayBlock};
use crate::pe;

/// A small operation of a blocking rank, without a future, if the data is small enough; returns
/// false if it is not.
///
/// # Errors
/// Ranks have begun different operations, or contribute different lengths or types.
///
/// # Safety
/// The buffers are valid for their lengths during the call.
#[inline(always)]
#[cfg_attr(
    not(test),
    expect(clippy::cast_sign_loss, reason = "a communicator's size is not negative")
)]
pub unsafe fn combine_now(
    may_block: MayBlock,
    comm: &CommunicatorHandle,
    site: &Site,
    combined: &Combined,
) -> Result<bool, Error> {
    if !combined.is_small(comm.size as usize) {
        // SAFETY: B1: this call lasts as long as the operation.
        return unsafe { combine_long_now(may_block, comm, *site, combined) };
    }
    let spec = combined.spec(comm);
    let (input, out) = (combined.input.0, combined.out.0);
    // SAFETY: B1, B3: this call lasts as long as the operation.
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
    // SAFETY: B1: this call lasts as long as the operation.
    let future = unsafe { collective.combine_windows(windows, combined) };
    operation::drive(may_block, future).map(|()| true)
}

#[cold]
#[inline(never)]
fn observe_end(spec: &Spec) {
    pe::collective_ends(spec.context, "");
}
