//! A thread of each PE that samples whether the PE's thread runs a rank's code or the runtime's (`vrt_core::pe`,
//! `shares`): from the beginning with `--statistics` or `--monitor`, otherwise from the first time that somebody asks
//! what the PE does (`vrtrun top`). Until then it sleeps.
//!
//! It is bound to the same core as the PE's thread, so a sample sees where that thread was interrupted. A sample takes
//! a few microseconds, mostly in the system, every [`PERIOD`]: 0.2% of the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crate::config::Config;
use crate::threads;
use vrt_core::pe::{Pe, count_look, when_asked};
use vrt_slot::foreign;
use vrt_slot::hooks::Watched;

/// Mean time between two samples. It varies, so that a periodic activity is not sampled at the same point each time.
const PERIOD: Duration = Duration::from_millis(2);

/// The PE that is sampled, while it exists.
static WATCHED: Mutex<Option<(Watched, &'static AtomicBool)>> = Mutex::new(None);

/// Whether samples are wanted; the thread, if there is one.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
static LOOKER: Mutex<Option<Thread>> = Mutex::new(None);

/// While it lives, the calling thread's PE is sampled.
pub(super) struct Shares(());

impl Shares {
    /// Samples the PE of the calling thread as soon as samples are wanted. `None`: no thread can be created, so nothing
    /// is sampled.
    pub(super) fn start(config: &Config, pe: &Pe) -> Option<Shares> {
        // SAFETY: the word stays where it is until `Shares` is dropped, which comes before the PE is.
        let idles = unsafe { &*std::ptr::from_ref(pe.engine.idles()) };
        *watched() = Some((Watched::this_thread(), idles));
        let is_wanted = config.prints_statistics() || config.has_monitor();
        IS_WANTED.store(is_wanted, Ordering::Relaxed);
        *looker() = Some(threads::start("vrt-shares", look_again_and_again)?);
        foreign::expect_threads(1);
        when_asked(want);
        Some(Shares(()))
    }
}

/// Samples are wanted from now on.
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
