//! Saying what went wrong when nothing can be relied on: no allocation, no locks.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::arena::Arena;
use crate::launch::STATUS_RUNTIME;
use crate::net::shared::{Ended, JobState};
use crate::pe;

/// The state of the job that this process belongs to, for the signal handler.
static JOB: AtomicPtr<JobState> = AtomicPtr::new(std::ptr::null_mut());

/// A line on the stack.
struct Line {
    bytes: [u8; 1024],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.len;
        let part = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        Ok(())
    }
}

/// Writes one line to stderr, in one piece, from anywhere.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 1024], len: 0 };
    let _ = line.write_str("vrt: ");
    let _ = line.write_fmt(text);
    line.bytes[line.len] = b'\n';
    // SAFETY: `len + 1` bytes are initialised.
    unsafe { libc::write(2, line.bytes.as_ptr().cast(), line.len + 1) };
}

/// Lets the crash handler end this job.
pub(crate) fn set_job(job: &'static JobState) {
    JOB.store(std::ptr::from_ref(job).cast_mut(), Ordering::Release);
}

/// The state of this process's job.
pub(crate) fn job() -> Option<&'static JobState> {
    // SAFETY: set once, to control memory that stays mapped.
    unsafe { JOB.load(Ordering::Acquire).as_ref() }
}

/// Handles SIGSEGV and SIGBUS on a stack of their own, on this thread and (the handler) in this
/// process. Faults that are none of ours go on to whoever handled them before.
pub(crate) fn install() {
    const STACK: usize = 64 << 10;
    // SAFETY: the alternate stack is never freed; the handler below follows the rules for signal
    // handlers.
    unsafe {
        let stack = libc::mmap(
            std::ptr::null_mut(),
            STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if stack != libc::MAP_FAILED {
            let alternate = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: STACK };
            libc::sigaltstack(&alternate, std::ptr::null_mut());
        }
        for (signal, previous) in
            [(libc::SIGSEGV, &raw mut PREVIOUS_SEGV), (libc::SIGBUS, &raw mut PREVIOUS_BUS)]
        {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &action, &mut old);
            if old.sa_sigaction != action.sa_sigaction {
                previous.write(old);
            }
        }
    }
}

static mut PREVIOUS_SEGV: libc::sigaction = NO_ACTION;
static mut PREVIOUS_BUS: libc::sigaction = NO_ACTION;
// SAFETY: all zero is a valid action: the default one.
const NO_ACTION: libc::sigaction = unsafe { std::mem::zeroed() };

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo for these signals.
    let address = unsafe { (*info).si_addr() } as usize;
    let (rank, pe) = pe::whereabouts().unwrap_or((u32::MAX, u32::MAX));
    if let Some(arena) = Arena::current()
        && Arena::contains(address)
    {
        if signal == libc::SIGBUS {
            say(format_args!(
                "rank {rank} on PE {pe}: out of memory: the system has no page left for it \
                 (machine or memory limit exhausted)"
            ));
        } else if arena.layout.in_guard(address) {
            let kib = arena.layout.stack >> 10;
            say(format_args!(
                "rank {rank} on PE {pe} overflowed its stack of {kib} KiB; raise --stack (VRT_STACK)"
            ));
        } else {
            say(format_args!("rank {rank} on PE {pe}: invalid access to address {address:#x}"));
        }
        if job().is_none() {
            // SAFETY: in a handler; nothing else may run.
            unsafe { libc::abort() };
        }
        end_now(STATUS_RUNTIME);
    }
    if rank != u32::MAX {
        say(format_args!(
            "rank {rank} on PE {pe}: invalid memory access at address {address:#x} (signal {signal})"
        ));
    }
    // Let the access fault again under the handler that was there before.
    // SAFETY: restores an action that was in force.
    unsafe {
        let previous =
            if signal == libc::SIGBUS { &raw const PREVIOUS_BUS } else { &raw const PREVIOUS_SEGV };
        libc::sigaction(signal, previous, std::ptr::null_mut());
    }
}

/// Ends the job and this process at once.
fn end_now(status: i32) -> ! {
    if let Some(job) = job() {
        job.end(Ended::Status, status);
    }
    // SAFETY: `_exit` may be called from a handler.
    unsafe { libc::_exit(status) }
}
