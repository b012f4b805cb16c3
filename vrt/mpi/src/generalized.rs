//! Requests that the program itself completes (MPI-4.1 section 13.2).

use std::ffi::c_void;

use vrt_abi::constants::*;
use vrt_abi::types::*;

use crate::call::{Call, functions};
use crate::fault::{Outcome, refuse};
use crate::object::{Generalized, Request};

functions! {
    MPI_Grequest_start(
        query: MPI_Grequest_query_function, free: MPI_Grequest_free_function,
        cancel: MPI_Grequest_cancel_function, extra: *mut c_void, request: *mut MPI_Request,
    ) on Nothing = start;
    MPI_Grequest_complete(request: MPI_Request) on Nothing = complete;
}

unsafe fn start(
    call: Call,
    query: MPI_Grequest_query_function,
    free: MPI_Grequest_free_function,
    cancel: MPI_Grequest_cancel_function,
    extra: *mut c_void,
    request: *mut MPI_Request,
) -> Outcome {
    let generalized = Generalized::new(query, free, cancel, extra);
    // SAFETY: the program gives room for a handle.
    unsafe { Request::program(call.site, generalized).give(&call.process.requests, request) };
    Ok(())
}

fn complete(call: Call, handle: MPI_Request) -> Outcome {
    let request = call.process.requests.find(handle)?;
    match request.and_then(|request| request.generalized()) {
        Some(generalized) => generalized.complete(),
        None => {
            refuse!(MPI_ERR_REQUEST, "the request is not one that the program completes itself")
        }
    }
}
