//! Ranks on one PE inside the calling thread: those of [`run_local`], or the thread itself.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::resume_unwind;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::{Config, ConfigError};
use crate::end::{Local, end_job};
use crate::error::LaunchError;
use crate::local_slots::LocalSlots;
use crate::parts::Parts;
use crate::{crash, pe_process};
use vrt_core::blocking;
use vrt_core::net::local::Events;
use vrt_core::net::shared::{Ended, Shared};
use vrt_core::operation::finish_tasks;
use vrt_core::pe::{Options, Outcome, Pe, Setup};
use vrt_slot::report;
use vrt_slot::{SlotHeader, SlotId, hooks};
use vrt_slot::{rank::Program, thread};

/// Unique numbers of local PEs begin above those of any job's PEs.
static NEXT_UID: AtomicU32 = AtomicU32::new(1 << 16);

/// Runs `program` on `ranks` virtual ranks, all on one PE in the calling thread, and returns when all have ended.
/// Several threads may do this at the same time.
///
/// When it panics, ranks that have not ended are abandoned where they wait: no destructors run, and detached threads
/// that they started continue. If such a rank waits in a `std::thread::scope`, or has other threads to join, these
/// threads may use what they borrowed from it: then the process ends.
///
/// # Panics
/// With a rank's panic; if a rank calls `exit` with a status other than 0; if all ranks wait for each other (the
/// message says for what); and if the ranks cannot be created: in a PE of a job, inside another local run, or if there
/// is not enough memory.
pub fn run_local(ranks: u32, program: &(dyn Fn() + Sync)) {
    let program = || {
        program();
        finish_tasks();
        0
    };
    let program: &(dyn Fn() -> i32 + Sync) = &program;
    // SAFETY: no rank runs after `run` has returned or unwound: those that have not ended are
    // abandoned, without destructors.
    let program: Program =
        unsafe { std::mem::transmute::<&(dyn Fn() -> i32 + Sync), Program>(program) };
    if let Err(error) = run(ranks, program, |_| {}) {
        panic!("cannot run {ranks} ranks here: {error}");
    }
}

/// Makes the calling thread the only rank of a world, until it ends.
///
/// # Errors
/// The thread already runs ranks, or belongs to a PE of a job; or there is not enough memory.
pub(crate) fn begin_world_of_one() -> Result<(), LaunchError> {
    let stack =
        thread::stack().map_err(|source| LaunchError::System { what: "map a stack", source })?;
    thread::begin(stack, |yielder| {
        run(1, &|| 0, |slot| {
            // SAFETY: this is the loop of the PE whose slot it is, and the yielder's coroutine.
            unsafe { thread::become_thread(slot, yielder) }
        })
    })
}

/// Why the ranks of a thread have no thread-locals of their own.
const SHARE_THREAD: &str = "--private-thread-locals (VRT_PRIVATE_THREAD_LOCALS): local ranks share the \
    thread-locals of their thread; ranks of a job may have their own";

/// Runs ranks on a PE in this thread; `prepared` receives the slot of the first one.
fn run(
    ranks: u32,
    program: Program,
    prepared: impl FnOnce(*mut SlotHeader),
) -> Result<(), LaunchError> {
    let config = Config::from_env()?.with_pes(1).with_ranks(ranks);
    config.check()?;
    if ranks > 1 && config.has_private_thread_locals() {
        return Err(ConfigError::Option(SHARE_THREAD.to_owned()).into());
    }
    if crash::job().is_some() || hooks::pe_of_thread() != 0 {
        return Err(LaunchError::Nested);
    }
    static TOUCHED: Once = Once::new();
    TOUCHED.call_once(pe_process::touch_process_wide_state);
    let slots = LocalSlots::take(ranks as usize + 1, &config.slot_sizes())?;
    crash::install();
    report::set_end(end_job);
    let shared = Shared::map(1, ranks as usize, 1)
        .map_err(|source| LaunchError::System { what: "map control memory", source })?;
    let _unmap = Unmap(shared);
    let event = eventfd()?;
    let setup = Setup {
        id: 0,
        uid: NEXT_UID.fetch_add(1, Ordering::Relaxed),
        shared,
        events: Events { wake: [event.as_raw_fd()].into(), own: event.as_raw_fd() },
        remote: None,
        options: Options { local: true, ..config.options() },
        extensions: Parts::alone(&config)?.of_pe(0, &shared),
        observer: None,
        locks: &blocking::Futexes,
        pool: slots.ids()[0],
        ranks: (0..).zip(slots.ids()[1..].iter().copied()).collect::<Vec<(u32, SlotId)>>(),
    };
    // SAFETY: the slots were just taken; `enter` below checks the thread.
    let pe = unsafe { Pe::new(setup, program, slots.arena()) };
    prepared(slots.arena().header(slots.ids()[1]));
    let entered = pe.enter();
    let _local = Local::begin();
    let outcome = vrt_core::pe::run().map_err(|error| LaunchError::System {
        what: "run",
        source: std::io::Error::other(error),
    })?;
    match outcome {
        Outcome::Finished => {
            drop(entered);
            slots.finish();
            Ok(())
        }
        Outcome::Ended(Ended::Deadlock) => {
            let table: String = vrt_core::pe::waits().into_iter().map(|row| row + "\n").collect();
            panic!("all ranks wait for each other:\n{table}")
        }
        Outcome::Panicked(_, payload) => resume_unwind(payload),
        Outcome::Ended(_) => Ok(()),
    }
}

struct Unmap(Shared);

impl Drop for Unmap {
    fn drop(&mut self) {
        // SAFETY: declared before the PE, so dropped after it and its rings.
        unsafe { self.0.unmap() };
    }
}

pub(super) fn eventfd() -> Result<OwnedFd, LaunchError> {
    // SAFETY: a plain system call; the descriptor is ours.
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
        if fd < 0 {
            return Err(LaunchError::system("create an event descriptor"));
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}
