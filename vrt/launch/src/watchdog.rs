//! A thread of each PE that notices when a rank keeps the PE's own thread from its neighbours.
//!
//! ```text
//! watchdog, twice in each period                     the PE's thread
//!   switches as before, PE not idle, for a period?     a rank runs, or blocks in a system call
//!     reads which (from /proc)
//!     sends it a signal ------------------------------> handler: does anybody wait for the thread?
//!                                                         says who keeps it, where, for how long
//! ```
//!
//! The runtime's state belongs to the PE's thread alone, so a handler on that thread inspects it, and only reads. A
//! rank that computes for long while no other waits for its PE is left alone.
//!
//! **A deadlock** is reported if the rank waits without a time limit for a futex of this process, and no other thread
//! exists that could wake it. (Ranks that wait for a lock are suspended wherever that is possible; the remaining case
//! are locks of C, which block the thread.)
//!
//! The watchdog's thread takes no signals, and allocates only on the process's heap. If no thread can be created, the
//! PE runs without it.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{end, threads};
use vrt_core::net::shared::{Idleness, Shared};
use vrt_core::pe::{self, Holder, Pe};
use vrt_slot::{foreign, report};

/// What the watchdog observes, while there is a PE.
#[derive(Clone, Copy)]
struct Watched {
    /// Incremented whenever a rank stops running.
    switches: &'static AtomicU64,
    /// An [`Idleness`].
    idle: &'static AtomicU32,
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

/// The arguments of the handler: milliseconds since the last switch, and the system call that the
/// PE's thread is in, with its first arguments.
static HELD: AtomicU64 = AtomicU64::new(0);
static CALL: AtomicI64 = AtomicI64::new(COMPUTING);
static ARGUMENTS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// The handler's answer: it has printed something.
static SAID: AtomicBool = AtomicBool::new(false);

/// Stand for a system call: none, and unknown.
const COMPUTING: i64 = -1;
const UNKNOWN: i64 = -2;

/// While it lives, the calling thread's PE is watched.
pub(super) struct Watchdog(());

impl Watchdog {
    /// Watches the PE of the calling thread. `None`: it is not watched.
    pub(super) fn start(period: Option<Duration>, shared: &Shared, pe: &Pe) -> Option<Watchdog> {
        let period = period?;
        let block = shared.block_of(pe.engine.id() as usize)?;
        // SAFETY: the control memory stays mapped while this process lives; the PE's counter stays
        // where it is until `Watchdog` is dropped, which comes before the PE is.
        let watched = unsafe {
            Watched { switches: &*std::ptr::from_ref(pe.engine.switches()), idle: &block.idle }
        };
        *watched_now() = Some(watched);
        install_handler();
        // SAFETY: a plain system call.
        let thread = unsafe { libc::gettid() };
        threads::start("vrt-watchdog", move || watch(thread, period))?;
        foreign::expect_threads(1);
        Some(Watchdog(()))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *watched_now() = None;
    }
}

fn watched_now() -> MutexGuard<'static, Option<Watched>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watchdog's thread.
fn watch(thread: libc::pid_t, period: Duration) {
    let (mut last, mut ticks, mut said) = (0, 0u32, false);
    loop {
        std::thread::sleep(period / 2);
        let Some(Watched { switches, idle }) = *watched_now() else { return };
        let now = switches.load(Ordering::Relaxed);
        let busy = idle.load(Ordering::Relaxed) == Idleness::Busy as u32;
        if now != last || !busy {
            (last, ticks, said) = (now, 0, false);
            continue;
        }
        // Its own ticks, not a clock: a process that was stopped for a while is not late.
        ticks += 1;
        if ticks < 2 || said {
            continue;
        }
        HELD.store((period / 2 * ticks).as_millis() as u64, Ordering::Relaxed);
        note_call(thread);
        SAID.store(false, Ordering::Release);
        // SAFETY: a signal to a thread of this process that lives as long, and handles it.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal()) };
        std::thread::sleep((period / 20).min(Duration::from_millis(100)));
        said = SAID.load(Ordering::Acquire);
    }
}

/// Notes the system call that a thread of this process is in.
fn note_call(thread: libc::pid_t) {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
    let text = text.unwrap_or_default();
    let mut words = text.split_whitespace();
    let call = match words.next() {
        Some("running") => COMPUTING,
        Some(number) => number.parse().unwrap_or(UNKNOWN),
        None => UNKNOWN,
    };
    for argument in &ARGUMENTS {
        let word = words.next().and_then(|word| word.strip_prefix("0x"));
        let value = word.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        argument.store(value.unwrap_or_default(), Ordering::Relaxed);
    }
    CALL.store(call, Ordering::Relaxed);
}

/// The signal that the watchdog sends to the PE's thread.
fn signal() -> c_int {
    libc::SIGRTMAX()
}

fn install_handler() {
    // SAFETY: the handler only reads, and writes to stderr; it runs on the crash handler's stack,
    // for a rank may have little left of its own.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(signal(), &action, std::ptr::null_mut());
    }
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: errno of this thread.
    let errno = unsafe { *libc::__errno_location() };
    if tell() {
        SAID.store(true, Ordering::Release);
    }
    // SAFETY: errno of this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// Prints which rank keeps the thread, if another rank waits for it. Runs in the handler.
fn tell() -> bool {
    let Some(stall) = pe::stall() else { return false };
    let seconds = HELD.load(Ordering::Relaxed) as f64 / 1000.0;
    let pe = stall.pe;
    match stall.holder {
        Holder::Rank(rank) if pe::in_rank() && never_wakes() => {
            report::say(format_args!(
                "rank {rank} has blocked the thread of PE {pe} for {seconds} s, {}, and no thread \
                 is there that could wake it",
                Doing
            ));
            end::end_in_deadlock(ARGUMENTS[0].load(Ordering::Relaxed))
        }
        _ if !stall.is_waited_for() => false,
        Holder::Rank(rank) => {
            report::say(format_args!(
                "rank {rank} has kept the thread of PE {pe} for {seconds} s, {Doing}, while {} \
                 other ranks are ready{}: a rank that blocks its thread stops its neighbours",
                stall.ready,
                if stall.came { " and messages have come" } else { "" },
            ));
            true
        }
        Holder::Task => {
            report::say(format_args!(
                "a tokio task has kept the thread of PE {pe} for {seconds} s, {Doing}, while {} \
                 ranks are ready{}",
                stall.ready,
                if stall.came { " and messages have come" } else { "" },
            ));
            true
        }
    }
}

/// Whether the PE's thread waits for a wake-up by this process, which has no other thread to do it.
fn never_wakes() -> bool {
    let argument = |n: usize| ARGUMENTS[n].load(Ordering::Relaxed);
    let operation = argument(1) as c_int;
    let waits =
        matches!(operation & libc::FUTEX_CMD_MASK, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET);
    CALL.load(Ordering::Relaxed) == libc::SYS_futex
        && waits
        && operation & libc::FUTEX_PRIVATE_FLAG != 0
        && argument(3) == 0
        && !foreign::has_foreign_threads()
}

/// What the PE's thread does, in words.
struct Doing;

impl std::fmt::Display for Doing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let call = CALL.load(Ordering::Relaxed);
        match call {
            COMPUTING => return f.write_str("computing"),
            UNKNOWN => return f.write_str("doing something"),
            libc::SYS_futex => {
                let word = ARGUMENTS[0].load(Ordering::Relaxed);
                return write!(f, "waiting for a lock or condition at {word:#x}");
            }
            _ => {}
        }
        let known = NAMES.iter().find(|(number, _)| *number == call);
        match known {
            Some((_, name)) => write!(f, "in the system call {name}"),
            None => write!(f, "in system call {call}"),
        }
    }
}

/// System calls in which threads block.
const NAMES: [(c_long, &str); 15] = [
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_flock, "flock"),
];
