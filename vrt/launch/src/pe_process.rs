//! The life of a PE process, from the fork to its end.

use std::io::Write;
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::config::{Config, Core};
use crate::crash;
use crate::end::{self, end_after_panic, leave, report_waits, waits};
use crate::parts::Parts;
use crate::shares::Shares;
use crate::watchdog::Watchdog;
use vrt_balance::Balancer;
use vrt_core::blocking;
use vrt_core::comm::Combining;
use vrt_core::net::local::Events;
use vrt_core::net::shared::{Ended, Shared};
use vrt_core::pe::{self, Options, Outcome, Pe, Setup};
use vrt_slot::external::carried::Prepared;
use vrt_slot::rank::Program;
use vrt_slot::report::{self, STATUS_RUNTIME};
use vrt_slot::{self, Arena, SlotId, foreign, hooks, outside};

/// What a PE process starts with.
pub(super) struct PeInit<'a> {
    pub(super) id: u32,
    pub(super) config: &'a Config,
    pub(super) options: Options,
    pub(super) arena: &'static Arena,
    pub(super) shared: Shared,
    pub(super) events: &'a Arc<[RawFd]>,
    pub(super) report: RawFd,
    pub(super) core: Option<usize>,
    pub(super) program: Program,
    pub(super) supervisor: libc::pid_t,
    pub(super) parts: &'a Parts,
    /// How descriptors move with ranks, if they do.
    pub(super) carried: Option<Prepared>,
}

/// Runs the PE; never returns.
pub(super) fn live(init: PeInit<'_>) -> ! {
    prepare_process(&init);
    let PeInit { id, config, options, arena, shared, events, program, parts, carried, .. } = init;
    if let Some(carried) = carried {
        carried.begin(id);
    }
    let setup = Setup {
        id,
        uid: id + 1,
        shared,
        events: Events { wake: events.clone(), own: events[id as usize] },
        remote: None,
        options,
        extensions: parts.of_pe(id, &shared),
        observer: parts.observer(id, &shared),
        locks: &blocking::Futexes,
        pool: SlotId(config.ranks() + id),
        ranks: shared.begin_at(id).map(|rank| (rank, SlotId(rank))).collect(),
    };
    // SAFETY: each PE has its own range of ranks and its own pool slot.
    let pe = unsafe { Pe::new(setup, program, arena) };
    let _entered = pe.enter();
    // SAFETY: this process is that PE, which begins now.
    unsafe { outside::begin(id) };
    let _watchdog = pe::while_stopped(|pe| Watchdog::start(config.watchdog(), &shared, pe));
    let _shares = pe::while_stopped(|pe| Shares::start(config, pe));
    match pe::run() {
        Ok(Outcome::Finished) => {
            tell_what_was_done(config);
            leave(0)
        }
        Ok(Outcome::Ended(Ended::Deadlock)) => {
            report_waits(&waits());
            leave(STATUS_RUNTIME)
        }
        Ok(Outcome::Panicked(rank, _)) => end_after_panic(rank),
        Ok(Outcome::Ended(_)) => {
            tell_of_ended_job(config);
            leave(shared.job().status())
        }
        Err(error) => {
            report::say(format_args!("PE {id}: {error}"));
            report::end_job(STATUS_RUNTIME)
        }
    }
}

/// Prints a PE's final reports.
pub(super) fn tell_what_was_done(config: &Config) {
    let statistics = config.prints_statistics();
    pe::while_stopped(|pe| {
        if let Some(balancer) = pe.engine.find::<Balancer>() {
            balancer.write_dump();
            balancer.keep_learned();
            balancer.tell_totals(statistics);
        }
        if statistics {
            let groups = pe.engine.extension::<Combining>().groups.made();
            pe.engine.print_statistics(groups);
        }
    });
}

/// Prints a PE's reports when the job was ended before all its ranks had finished.
pub(super) fn tell_of_ended_job(config: &Config) {
    pe::while_stopped(|pe| {
        if let Some(balancer) = pe.engine.find::<Balancer>() {
            balancer.write_dump();
            balancer.tell_totals(config.prints_statistics());
        }
    });
}

fn prepare_process(init: &PeInit<'_>) {
    end::report_to(init.report);
    // SAFETY: plain system calls in a process with one thread.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != init.supervisor {
            libc::_exit(STATUS_RUNTIME);
        }
        // Ctrl-C is the supervisor's. A handler, unlike SIG_IGN, is not inherited by programs
        // that a rank starts.
        libc::signal(libc::SIGINT, on_interrupt as *const () as usize);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        if let Some(core) = init.core {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
    prepare_for_ranks(&init.shared, init.id, init.config);
}

/// Prepares what every process that runs ranks needs.
pub(super) fn prepare_for_ranks(shared: &Shared, pe: u32, config: &Config) {
    vrt_shm::register();
    vrt_slot::external::begin();
    if let Some(block) = shared.block_of(pe as usize) {
        block.doorbell.make_heavy();
    }
    crash::set_job(shared.job(), pe);
    crash::install();
    if config.core() == Some(Core::Rank) {
        crash::core::want_rank(pe);
    }
    touch_process_wide_state();
    vrt_slot::check::begin(config.checks_stacks());
    set_panic_hook();
}

extern "C" fn on_interrupt(_: i32) {}

/// Allocates what the standard library allocates once and keeps, so that it is not in a rank's heap.
pub(super) fn touch_process_wide_state() {
    let _ = std::io::stdout().flush();
    let _ = std::io::stdout().lock();
    let _ = std::io::stderr().lock();
    let _ = std::io::stdin().lock();
    let _ = std::thread::current().id();
    let _ = std::env::args_os().count();
    let _ = std::collections::HashMap::<u8, u8>::new();
    let _ = std::thread::available_parallelism();
    let _ = std::time::Instant::now();
    // The buffer of `println!` is allocated with the first byte.
    print!("");
}

/// Prints which rank panics, and keeps what printing a backtrace loads out of the rank's heap.
fn set_panic_hook() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if foreign::is_probing() {
            return;
        }
        hooks::runtime_heap(|| {
            if let Some(pe) = pe::pe_in_tokio() {
                report::say(format_args!("panic in a tokio task on PE {pe}:"));
            } else if let Some((rank, pe)) = pe::whereabouts() {
                report::say(format_args!("panic in rank {rank} on PE {pe}:"));
            }
            previous(info);
        });
    }));
}
