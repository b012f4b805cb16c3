//! The job that this process belongs to, for signal handlers.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use vrt_core::net::shared::JobState;

/// The state of the job that this process belongs to, for the signal handler.
static JOB: AtomicPtr<JobState> = AtomicPtr::new(std::ptr::null_mut());
/// The PE that this process is.
static PE: AtomicU32 = AtomicU32::new(0);

/// Makes this process a PE of a job, which its crash handler can then end.
pub(crate) fn set_job(job: &'static JobState, pe: u32) {
    PE.store(pe, Ordering::Relaxed);
    JOB.store(std::ptr::from_ref(job).cast_mut(), Ordering::Release);
}

/// The state of this process's job.
pub(crate) fn job() -> Option<&'static JobState> {
    // SAFETY: set once, to control memory that stays mapped.
    unsafe { JOB.load(Ordering::Acquire).as_ref() }
}

/// The PE that this process is.
pub(super) fn pe() -> u32 {
    PE.load(Ordering::Relaxed)
}
