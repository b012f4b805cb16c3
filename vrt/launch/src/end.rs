//! How a job ends from one of its processes.

use std::cell::Cell;
use std::io::Write;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::{crash, trace};
use vrt_core::net::shared::Ended;
use vrt_core::pe;
use vrt_slot::hooks;
use vrt_slot::report::{self, STATUS_PANIC, STATUS_RUNTIME};

/// Rows of the deadlock table that one PE contributes.
const ROWS: usize = 100;

/// Where this PE writes what the supervisor prints.
static REPORT: AtomicI32 = AtomicI32::new(-1);

/// What the supervisor prints of this PE goes there.
pub(super) fn report_to(report: RawFd) {
    REPORT.store(report, Ordering::Relaxed);
}

thread_local! {
    static LOCAL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside `run_local`.
pub(super) fn is_local() -> bool {
    LOCAL.get()
}

/// While it lives, the calling thread is inside a local run.
pub(super) struct Local(bool);

impl Local {
    pub(super) fn begin() -> Local {
        Local(LOCAL.replace(true))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        LOCAL.set(self.0);
    }
}

/// Ends the whole job with a status; [`report`] asks how. In a local run this panics, in a world of one it ends the
/// process.
pub(super) fn end_job(status: i32) -> ! {
    if vrt_slot::thread::is_rank() {
        std::process::exit(status);
    }
    if is_local() {
        panic!("a rank ended the run with status {status}");
    }
    end_job_of_pe(status)
}

/// Ends the job because a rank has panicked.
pub(super) fn end_after_panic(rank: u32) -> ! {
    report::say(format_args!("rank {rank} panicked; ending the job"));
    report::end_job(STATUS_PANIC)
}

/// Ends the whole job with a status, from one of its PEs.
fn end_job_of_pe(status: i32) -> ! {
    // SAFETY: the process's heap.
    unsafe { hooks::use_heap(std::ptr::null_mut()) };
    if let Some(job) = crash::job() {
        job.end(Ended::Status, status);
    }
    leave(status)
}

/// Ends this process after writing what is still buffered.
pub(super) fn leave(status: i32) -> ! {
    flush();
    #[cfg(feature = "mpi")]
    vrt_net_mpi::abort_unless_well(status);
    leave_well(status)
}

/// Ends this process, whose MPI has been finalized if it had one.
pub(super) fn leave_well(status: i32) -> ! {
    // SAFETY: flushes C's streams; then ends without running destructors of the supervisor's
    // image.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status & 0xff)
    }
}

/// Writes out buffered output of this process.
pub(super) fn flush() {
    // SAFETY: the process's heap.
    unsafe { hooks::use_heap(std::ptr::null_mut()) };
    trace::finish();
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
}

/// What the ranks of this PE wait for, one per line.
pub(super) fn waits() -> String {
    table_of(&pe::waits())
}

fn table_of(rows: &[String]) -> String {
    let mut text: String = rows.iter().take(ROWS).map(|row| format!("{row}\n")).collect();
    if rows.len() > ROWS {
        text += &format!("~ and {} more ranks of one PE\n", rows.len() - ROWS);
    }
    text
}

/// Ends the job because none of its ranks can continue: the running one blocks this PE's thread at a word.
pub(super) fn end_in_deadlock(word: usize) -> ! {
    let rows = pe::blocked_for_ever(word, || {
        if let Some(job) = crash::job() {
            job.end(Ended::Deadlock, STATUS_RUNTIME);
        }
    });
    report_waits(&table_of(&rows));
    leave(STATUS_RUNTIME)
}

/// Gives the table of what ranks wait for to who prints it.
pub(super) fn report_waits(text: &str) {
    let fd = match REPORT.load(Ordering::Relaxed) {
        // Nobody gathers the tables of PEs that a launcher has started.
        -1 => libc::STDERR_FILENO,
        fd => fd,
    };
    // SAFETY: `text` is readable; a full pipe only shortens the table.
    unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) };
}
