//! What has crashed, and how that is said.

use std::fmt;
use std::ops::Range;

use super::job::{job, pe};
use vrt_core::pe::whereabouts;
use vrt_slot::report::say;
use vrt_slot::{Arena, image};

/// The signals that mean a fault of the process.
pub(super) const SIGNALS: [i32; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// Describes a crash: what has happened, and where.
pub(super) struct Fault {
    pub(super) signal: i32,
    /// The kernel's code for the reason; 0 or less: the signal was sent.
    pub(super) code: i32,
    pub(super) sender: libc::pid_t,
    pub(super) address: usize,
    /// Program counter and stack pointer.
    pub(super) pc: usize,
    pub(super) sp: usize,
    /// Rank and PE of the thread; `None`: it runs no ranks.
    pub(super) whereabouts: Option<(u32, u32)>,
    /// The registers that the handler returns to.
    pub(super) context: *mut libc::ucontext_t,
}

impl fmt::Display for Fault {
    /// Names who has crashed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whereabouts {
            Some((rank, pe)) if Arena::contains(self.sp) => write!(f, "rank {rank} on PE {pe}"),
            Some((u32::MAX, pe)) => write!(f, "PE {pe}"),
            Some((rank, pe)) => write!(f, "PE {pe} (rank {rank} ran last)"),
            None => write!(f, "a thread of PE {}", pe()),
        }
    }
}

impl Fault {
    /// # Safety
    /// Both are the arguments that the kernel passed to the handler of `signal`.
    pub(super) unsafe fn new(
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
                whereabouts: whereabouts(),
                context,
            }
        }
    }

    /// Changes the registers of the fault to their values after the return of a function of which
    /// only the call was executed; returns the return address.
    ///
    /// # Safety
    /// The handler does not return afterwards. The stack pointer may be invalid: that is a fault.
    pub(super) unsafe fn return_from_nothing(&self) -> usize {
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
    pub(super) fn stack_of_rank(&self) -> Option<Range<usize>> {
        let arena = Arena::current().filter(|_| Arena::contains(self.sp))?;
        let slot = arena.slot_at(self.sp);
        let (guard, _) = arena.layout.guard_of(slot);
        Some(guard..arena.layout.top(slot) + 1)
    }

    /// Whether the signal was sent, by this process (`abort`) or by another one.
    pub(super) fn was_sent(&self) -> bool {
        self.code <= 0
    }

    /// Reports what happened; returns whether the job ends with the runtime's status.
    pub(super) fn tell(&self) -> bool {
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
