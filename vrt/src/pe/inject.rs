//! Waking a rank from a thread that is not its PE's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use vrt_shm::{Doorbell, Sleep};

use crate::arena::hooks;
use crate::pe;

/// The PEs of this process: one in a job, one a thread with `run_local`.
static PES: Mutex<Vec<(u32, Arc<Injector>)>> = Mutex::new(Vec::new());

/// Where other threads leave the ranks that they wake.
#[derive(Debug)]
pub(crate) struct Injector {
    woken: Mutex<Vec<u32>>,
    any: AtomicBool,
    doorbell: &'static Doorbell,
    event: i32,
}

impl Injector {
    pub(crate) fn register(uid: u32, doorbell: &'static Doorbell, event: i32) -> Arc<Injector> {
        let injector = Arc::new(Injector {
            woken: Mutex::new(Vec::new()),
            any: AtomicBool::new(false),
            doorbell,
            event,
        });
        lock(&PES).push((uid, injector.clone()));
        injector
    }

    pub(crate) fn unregister(uid: u32) {
        lock(&PES).retain(|(u, _)| *u != uid);
    }

    /// Whether somebody was woken; a cheap look.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// The ranks woken since the last call.
    pub(crate) fn take(&self) -> Vec<u32> {
        let mut woken = lock(&self.woken);
        self.any.store(false, Ordering::Release);
        std::mem::take(&mut *woken)
    }

    fn push(&self, rank: u32) {
        {
            let mut woken = lock(&self.woken);
            woken.push(rank);
            self.any.store(true, Ordering::Release);
        }
        match self.doorbell.ring() {
            None => {}
            Some(Sleep::Futex) => self.doorbell.wake(),
            Some(Sleep::Event) => {
                let one = 1u64;
                // SAFETY: eight readable bytes; the descriptor is the PE's eventfd.
                unsafe { libc::write(self.event, (&raw const one).cast(), 8) };
            }
        }
    }
}

/// Wakes a rank of the PE with this unique number, from any thread.
pub(crate) fn wake_from_outside(uid: u32, rank: u32) {
    if hooks::pe_of_thread() == uid && pe::try_wake(rank) {
        hooks::runtime_heap(pe::idle::interrupt_sleep);
        return;
    }
    hooks::runtime_heap(|| {
        let injector = lock(&PES).iter().find(|(u, _)| *u == uid).map(|(_, i)| i.clone());
        if let Some(injector) = injector {
            injector.push(rank);
        }
    });
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
