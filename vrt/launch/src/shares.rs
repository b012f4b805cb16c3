//! A thread of each PE that looks now and then whether a rank's code or the runtime's runs on the PE's own thread
//! (`vrt_core::pe`, `shares`): with `--statistics` or `--monitor` from the beginning, else from when somebody asks
//! for the first time what the PE does (`vrtrun top`). Until then it sleeps.
//!
//! It is bound to the core of its PE as that is, so it looks where the PE's thread was interrupted. A look takes
//! some microseconds, mostly of the system, every [`PERIOD`]: 0.2% of the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crate::config::Config;
use crate::threads;
use vrt_core::pe::{Pe, count_look, when_asked};
use vrt_slot::foreign;
use vrt_slot::hooks::Watched;

/// Time between two looks, in the mean: what happens as regularly is not met at the same point each time.
const PERIOD: Duration = Duration::from_millis(2);

/// Who is looked at, while there is a PE.
static WATCHED: Mutex<Option<(Watched, &'static AtomicBool)>> = Mutex::new(None);

/// Whether somebody wants to know what comes of it; the thread, if there is one.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
static LOOKER: Mutex<Option<Thread>> = Mutex::new(None);

/// While it lives, the calling thread's PE is looked at.
pub(super) struct Shares(());

impl Shares {
    /// Looks at the PE of the calling thread as soon as somebody wants to know. `None`: nobody does, since no thread
    /// can be made.
    pub(super) fn start(config: &Config, pe: &Pe) -> Option<Shares> {
        // SAFETY: the word stays where it is until `Shares` is dropped, which comes before the PE is.
        let idles = unsafe { &*std::ptr::from_ref(&pe.engine.idles) };
        *watched() = Some((Watched::this_thread(), idles));
        let is_wanted = config.prints_statistics() || config.has_monitor();
        IS_WANTED.store(is_wanted, Ordering::Relaxed);
        *looker() = Some(threads::start("vrt-shares", look_again_and_again)?);
        foreign::expect_threads(1);
        when_asked(want);
        Some(Shares(()))
    }
}

/// Somebody wants to know, from now on.
fn want() {
    if !IS_WANTED.swap(true, Ordering::Relaxed)
        && let Some(thread) = &*looker()
    {
        thread.unpark();
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        *watched() = None;
    }
}

fn watched() -> MutexGuard<'static, Option<(Watched, &'static AtomicBool)>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn looker() -> MutexGuard<'static, Option<Thread>> {
    LOOKER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look_again_and_again() {
    while !IS_WANTED.load(Ordering::Relaxed) {
        std::thread::park();
    }
    let mut lot = 1_u32;
    loop {
        // From half of the period to one and a half, by a generator that is good enough.
        lot = lot.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(PERIOD / 2 + PERIOD * (lot >> 24) / 256);
        let Some((thread, idles)) = *watched() else { return };
        if !idles.load(Ordering::Relaxed) {
            // SAFETY: the PE is there, since it is watched; so are its thread and the arena.
            count_look(unsafe { thread.runs_rank() });
        }
    }
}
