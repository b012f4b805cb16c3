//! How a rank ends the job, and what has to be done before.

#![cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "addresses in an image that is mapped")
)]

use std::ffi::{c_int, c_void};

use vrt_slot::{fork, hooks, image, rank, report};

/// Ends the job with a status other than 0 because of a rank's action: its PE prints its reports first.
pub(crate) fn end_job(status: c_int) -> ! {
    if hooks::current_rank().is_some() && !fork::is_child() {
        rank::exit_rank(status);
    }
    report::end_job(status)
}

/// The exit status of a job that ends because of an error.
pub(crate) fn exit_status(code: c_int) -> c_int {
    if code & 0xff == 0 { 1 } else { code & 0xff }
}

/// Flushes the rank's streams.
pub(crate) fn flush() {
    let own = image::plan().and_then(|plan| plan.symbol_in("libc.so", "fflush"));
    // SAFETY: libc's function, the rank's own or the process's; null means all streams.
    unsafe {
        match (own, image::base_of_running()) {
            (Some(offset), Some(base)) => {
                let flush = (base + offset) as *const ();
                type Flush = unsafe extern "C" fn(*mut c_void) -> c_int;
                std::mem::transmute::<*const (), Flush>(flush)(std::ptr::null_mut());
            }
            _ => {
                libc::fflush(std::ptr::null_mut());
            }
        }
    }
}
