//! Ranks on one PE inside the calling thread.

use std::cell::Cell;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::arena::SlotId;
use crate::balance::Balancer;
use crate::config::Config;
use crate::launch::{LaunchError, crash, reserve};
use crate::net::local::Events;
use crate::net::shared::{Ended, Shared};
use crate::pe::{Outcome, Pe, Setup};
use crate::rank::Program;
use crate::topology::SimpleCommunicator;

/// Slots for all local runs of a process.
const SLOTS: u32 = 4096;
/// Unique numbers of local PEs begin above those of any job's PEs.
static NEXT_UID: AtomicU32 = AtomicU32::new(1 << 16);
static FREE_SLOTS: Mutex<(u32, Vec<u32>)> = Mutex::new((0, Vec::new()));

thread_local! {
    static LOCAL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside [`run_local`].
pub(crate) fn is_local() -> bool {
    LOCAL.get()
}

/// Runs `program` on `ranks` virtual ranks, all on one PE in the calling thread, and returns when
/// all have ended. For unit tests and examples; several threads may do so at the same time.
///
/// # Panics
/// With a rank's panic, when a rank calls `exit` with a status other than 0, when all ranks wait
/// for each other (the message says for what), and when the ranks cannot be created.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(3, |world| {
///     let mut sum = 0;
///     world.all_reduce_into(&world.rank(), &mut sum, vrt::collective::SystemOperation::sum());
///     assert_eq!(sum, 0 + 1 + 2);
/// });
/// ```
pub fn run_local<F>(ranks: u32, program: F)
where
    F: Fn(&SimpleCommunicator) + Sync,
{
    let program = || {
        program(&SimpleCommunicator::world());
        0
    };
    let program: &(dyn Fn() -> i32 + Sync) = &program;
    // SAFETY: no rank runs after `run` has returned or unwound: those that have not ended are
    // abandoned, without destructors.
    let program: Program =
        unsafe { std::mem::transmute::<&(dyn Fn() -> i32 + Sync), Program>(program) };
    if let Err(error) = run(ranks, program) {
        panic!("cannot run {ranks} ranks here: {error}");
    }
}

fn run(ranks: u32, program: Program) -> Result<(), LaunchError> {
    let config = Config::from_env()?.with_pes(1).with_ranks(ranks);
    config.check()?;
    let arena = reserve(&config, SLOTS as usize)?;
    crash::install();
    let slots = Slots::take(ranks + 1);
    assert!(
        slots.0.len() == ranks as usize + 1,
        "all local runs of a process together have at most {SLOTS} ranks; {ranks} more do not fit"
    );
    let shared = Shared::map(1, ranks as usize, 1)
        .map_err(|source| LaunchError::System { what: "map control memory", source })?;
    let _unmap = Unmap(shared);
    let event = eventfd()?;
    let setup = Setup {
        id: 0,
        uid: NEXT_UID.fetch_add(1, Ordering::Relaxed),
        shared,
        events: Events { wake: vec![event.as_raw_fd()], own: event.as_raw_fd() },
        remote: None,
        options: config.options()?,
        balancer: Balancer::new(None, false, 0, &shared),
        pool: SlotId(slots.0[0]),
        ranks: slots.0[1..].iter().enumerate().map(|(r, s)| (r as u32, SlotId(*s))).collect(),
    };
    // SAFETY: the slots were just taken; `enter` below checks the thread.
    let mut pe = unsafe { Pe::new(setup, program, arena) };
    let _entered = pe.enter();
    let _local = Local(LOCAL.replace(true));
    let outcome = crate::pe::run().map_err(|error| LaunchError::System {
        what: "run",
        source: std::io::Error::other(error),
    })?;
    match outcome {
        Outcome::Finished => {
            slots.give_back();
            Ok(())
        }
        Outcome::Ended(Ended::Deadlock) => {
            let table: String = crate::pe::waits().into_iter().map(|row| row + "\n").collect();
            panic!("all ranks wait for each other:\n{table}")
        }
        Outcome::Ended(_) => Ok(()),
    }
}

/// Slots of one run. They are used again only if every rank ended and left nothing behind; a slot
/// that kept something is never reused.
struct Slots(Vec<u32>);

impl Slots {
    fn take(n: u32) -> Slots {
        let mut free = FREE_SLOTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut slots: Vec<u32> = Vec::new();
        while slots.len() < n as usize {
            match free.1.pop() {
                Some(slot) => slots.push(slot),
                None if free.0 < SLOTS => {
                    slots.push(free.0);
                    free.0 += 1;
                }
                None => break,
            }
        }
        Slots(slots)
    }

    fn give_back(self) {
        let clean = self.0.iter().copied().filter(|slot| crate::pe::slot_is_clean(SlotId(*slot)));
        let clean: Vec<u32> = clean.collect();
        FREE_SLOTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).1.extend(clean);
    }
}

struct Local(bool);

impl Drop for Local {
    fn drop(&mut self) {
        LOCAL.set(self.0);
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
