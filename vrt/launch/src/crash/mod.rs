//! Handles signals that mean a crash of this process: reports what happened, to which rank, and where.
//!
//! The handler runs on its own stack and relies on little: it writes one plain line, has a child print the backtrace
//! (`backtrace`), includes the rank's memory in the core file if that was requested (`core`), and lets the process die
//! of the signal, or ends it with a status. If several PEs crash at the same time, only the first leaves a core,
//! because the files may have the same name; the supervisor lets that one finish.

mod backtrace;
pub(crate) mod core;

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use vrt_core::net::shared::{Ended, JobState};
use vrt_core::pe;
use vrt_slot::report::{STATUS_RUNTIME, say};
use vrt_slot::{Arena, hooks, image, signals};

/// The signals that mean a fault of the process.
const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

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

/// The stack on which a thread handles signals; its pages are allocated when touched.
struct SignalStack(Cell<usize>);

/// Its size in bytes.
const STACK: usize = 1 << 20;

thread_local! {
    static SIGNAL_STACK: SignalStack = const { SignalStack(Cell::new(0)) };
}

impl SignalStack {
    /// May be called again: an abandoned `exit` of the standard library has disabled the thread's
    /// signal stack.
    fn install(&self) {
        let known = self.0.get() as *mut libc::c_void;
        // SAFETY: a fresh mapping, or the thread's own, which stays until the thread ends.
        unsafe {
            let stack = match known.is_null() {
                false => known,
                true => libc::mmap(
                    std::ptr::null_mut(),
                    STACK,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                ),
            };
            if stack == libc::MAP_FAILED {
                return;
            }
            let alternate = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: STACK };
            if libc::sigaltstack(&raw const alternate, std::ptr::null_mut()) == 0 {
                self.0.set(stack as usize);
            }
        }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        let ours = self.0.get();
        // SAFETY: zeros are a valid description, which the call fills in. The mapping is ours, and
        // after it was taken back, if it still was in force, no signal uses it.
        unsafe {
            let mut now: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &raw mut now);
            if ours == 0 {
                return;
            }
            if now.ss_sp as usize == ours {
                let none = libc::stack_t {
                    ss_sp: std::ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: 0,
                };
                libc::sigaltstack(&raw const none, std::ptr::null_mut());
            }
            libc::munmap(ours as *mut libc::c_void, STACK);
        }
    }
}

/// Handles crashes on a separate stack, on this thread and (the handler) in this process. After its
/// report, the handler that was installed before runs.
pub(crate) fn install() {
    backtrace::prepare();
    SIGNAL_STACK.with(SignalStack::install);
    for (n, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: the handler follows the rules for signal handlers; zeros are a valid action.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_crash as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &raw const action, &raw mut old);
            if old.sa_sigaction != action.sa_sigaction {
                // Kept for good: a handler may be reading the one before.
                PREVIOUS[n].store(Box::into_raw(Box::new(old)), Ordering::Release);
            }
        }
    }
}

/// The previous actions of [`SIGNALS`]; null: the default action.
static PREVIOUS: [AtomicPtr<libc::sigaction>; SIGNALS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS.len()];

/// Describes a crash: what has happened, and where.
struct Fault {
    signal: i32,
    /// The kernel's code for the reason; 0 or less: the signal was sent.
    code: i32,
    sender: libc::pid_t,
    address: usize,
    /// Program counter and stack pointer.
    pc: usize,
    sp: usize,
    /// Rank and PE of the thread; `None`: it runs no ranks.
    whereabouts: Option<(u32, u32)>,
    /// The registers that the handler returns to.
    context: *mut libc::ucontext_t,
}

impl fmt::Display for Fault {
    /// Names who has crashed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whereabouts {
            Some((rank, pe)) if Arena::contains(self.sp) => write!(f, "rank {rank} on PE {pe}"),
            Some((u32::MAX, pe)) => write!(f, "PE {pe}"),
            Some((rank, pe)) => write!(f, "PE {pe} (rank {rank} ran last)"),
            None => write!(f, "a thread of PE {}", PE.load(Ordering::Relaxed)),
        }
    }
}

impl Fault {
    /// # Safety
    /// Both are the arguments that the kernel passed to the handler of `signal`.
    unsafe fn new(
        signal: i32,
        info: *const libc::siginfo_t,
        context: *mut libc::ucontext_t,
    ) -> Fault {
        // SAFETY: as the caller promises; the fields for one kind of signal are plain numbers for
        // another.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            let (pc, sp) = {
                let registers = &(*context).uc_mcontext.gregs;
                (registers[libc::REG_RIP as usize], registers[libc::REG_RSP as usize])
            };
            #[cfg(target_arch = "aarch64")]
            let (pc, sp) = ((*context).uc_mcontext.pc, (*context).uc_mcontext.sp);
            Fault {
                signal,
                code: (*info).si_code,
                sender: (*info).si_pid(),
                address: (*info).si_addr() as usize,
                pc: pc as usize,
                sp: sp as usize,
                whereabouts: pe::whereabouts(),
                context,
            }
        }
    }

    /// Changes the registers of the fault to their values after the return of a function of which
    /// only the call was executed; returns the return address.
    ///
    /// # Safety
    /// The handler does not return afterwards. The stack pointer may be invalid: that is a fault.
    unsafe fn return_from_nothing(&self) -> usize {
        // SAFETY: the kernel's description of the registers, which lives as long as the handler; the
        // rest as the caller promises.
        unsafe {
            let registers = &mut (*self.context).uc_mcontext;
            #[cfg(target_arch = "x86_64")]
            {
                let caller = (self.sp as *const usize).read_volatile();
                registers.gregs[libc::REG_RIP as usize] = caller as libc::greg_t;
                registers.gregs[libc::REG_RSP as usize] = (self.sp + 8) as libc::greg_t;
                caller
            }
            #[cfg(target_arch = "aarch64")]
            {
                registers.pc = registers.regs[30];
                registers.pc as usize
            }
        }
    }

    /// The stack of the rank, with its guard, if the fault was on one.
    fn stack_of_rank(&self) -> Option<Range<usize>> {
        let arena = Arena::current().filter(|_| Arena::contains(self.sp))?;
        let slot = arena.slot_at(self.sp);
        let (guard, _) = arena.layout.guard_of(slot);
        Some(guard..arena.layout.top(slot) + 1)
    }

    /// Whether the signal was sent, by this process (`abort`) or by another one.
    fn was_sent(&self) -> bool {
        self.code <= 0
    }

    /// Reports what happened; returns whether the job ends with the runtime's status.
    fn tell(&self) -> bool {
        if let Some(arena) = Arena::current()
            && !self.was_sent()
            && Arena::contains(self.address)
            && matches!(self.signal, libc::SIGSEGV | libc::SIGBUS)
            && image::module_at(self.address).is_none()
        {
            if self.signal == libc::SIGBUS {
                say(format_args!(
                    "{self}: out of memory: the system has no page left for it (machine or memory \
                     limit exhausted)"
                ));
            } else if self.stack_of_rank().is_some_and(|own| own.contains(&self.address)) {
                let kib = arena.layout.stack >> 10;
                say(format_args!(
                    "{self} overflowed its stack of {kib} KiB; raise --stack (VRT_STACK)"
                ));
            } else {
                say(format_args!("{self}: invalid access to address {:#x}", self.address));
            }
            return true;
        }
        if self.whereabouts.is_some() || job().is_some() {
            self.tell_signal();
        }
        false
    }

    fn tell_signal(&self) {
        /// The processor rejected the access without giving an address.
        const SI_KERNEL: i32 = 0x80;
        let Fault { signal, address, .. } = *self;
        // SAFETY: a plain system call.
        let own = unsafe { libc::getpid() };
        match signal {
            _ if self.was_sent() && self.sender != own => {
                say(format_args!("{self}: process {} has sent signal {signal}", self.sender));
            }
            libc::SIGABRT => say(format_args!("{self} aborted (signal {signal})")),
            _ if self.was_sent() => say(format_args!("{self} raised signal {signal}")),
            libc::SIGILL => say(format_args!(
                "{self}: illegal instruction at address {:#x} (signal {signal})",
                self.pc
            )),
            libc::SIGFPE => say(format_args!(
                "{self}: arithmetic error, such as a division by zero (signal {signal})"
            )),
            _ if self.code == SI_KERNEL => say(format_args!(
                "{self}: invalid memory access, to an address that cannot be (signal {signal})"
            )),
            _ => say(format_args!(
                "{self}: invalid memory access at address {address:#x} (signal {signal})"
            )),
        }
    }
}

extern "C-unwind" fn on_crash(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes both.
    if unsafe { signals::handle_fault(signal, info, context) } {
        return;
    }
    // What the rank may not do, the handler may; and it waits without giving way to other ranks.
    // SAFETY: the process's heap.
    let heap = unsafe { hooks::use_heap(std::ptr::null_mut()) };
    // SAFETY: the kernel passes both.
    let fault = unsafe { Fault::new(signal, info, context.cast()) };
    let first = core::claim();
    let with_status = fault.tell();
    let out_of_memory = with_status && signal == libc::SIGBUS;
    if fault.whereabouts.is_some() && !out_of_memory {
        backtrace::print(&fault);
    }
    let leaves_core = first && core::include_rank_of(&fault);
    if with_status {
        match job() {
            Some(job) => job.end(Ended::Status, STATUS_RUNTIME),
            None => abort_unhandled(),
        };
        if !leaves_core {
            // SAFETY: `_exit` may be called from a handler.
            unsafe { libc::_exit(STATUS_RUNTIME) };
        }
    }
    // SAFETY: it was in use when the fault came.
    unsafe { hooks::use_heap(heap) };
    // The fault happens again when this returns, and `abort` goes on, under the handler that was
    // there before: so a core file shows the rank and not this handler. What was sent is sent again.
    // SAFETY: restores an action that was in force, which is kept for good; zeros are the default one.
    unsafe {
        let at = SIGNALS.iter().position(|other| *other == signal).unwrap_or_default();
        let previous = PREVIOUS[at].load(Ordering::Acquire).as_ref();
        let by_default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, previous.unwrap_or(&by_default), std::ptr::null_mut());
        if fault.was_sent() {
            libc::raise(signal);
        }
    }
}

/// Ends a process that is not a PE.
fn abort_unhandled() -> ! {
    // SAFETY: in a handler; nothing else may run.
    unsafe {
        libc::signal(libc::SIGABRT, libc::SIG_DFL);
        libc::abort()
    }
}
