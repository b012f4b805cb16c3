//! Barriers (MPI-4.1 section 6.3).

use std::rc::Rc;

use vrt_abi::types::*;
use vrt_core::Site;
use vrt_core::comm::algorithms::{Collective, Combined};
use vrt_core::operation;

use super::form::{Operation, combined, forms, operation};
use super::inter;
use crate::call::Call;
use crate::fault::Outcome;
use crate::object::Comm;

forms! {
    MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init() = barrier now barrier_now;
}

#[inline(always)]
unsafe fn barrier_now(call: Call, comm: MPI_Comm) -> Outcome<bool> {
    let comm = call.process.comm(comm)?;
    if comm.is_inter() {
        return Ok(false);
    }
    // SAFETY: nothing is read or written.
    unsafe { combined(call, &comm, &Combined::barrier()) }
}

unsafe fn barrier(call: Call, comm: MPI_Comm) -> Outcome<Operation> {
    let (comm, site) = (call.process.comm(comm)?, *call.site);
    operation(move || among(Rc::clone(&comm), site))
}

/// Waits for the other ranks, in one group or two.
async fn among(comm: Rc<Comm>, site: Site) -> Outcome {
    if comm.is_inter() {
        return inter::barrier(&comm, site).await;
    }
    let collective = Collective::begin(&comm.engine, site);
    Ok(collective.barrier().await?)
}

/// Waits for the other ranks of a communicator.
///
/// # Errors
/// The other ranks have begun another operation.
pub(crate) fn barrier_of(call: Call, comm: &Rc<Comm>) -> Outcome {
    operation::drive(call.may_block(), among(Rc::clone(comm), *call.site))
}
