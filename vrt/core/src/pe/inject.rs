//! Waking a rank from a thread that is not its PE's: one of the same process, or of another PE of the node.
//!
//! Threads of the process put the ranks that they wake into a list. If ranks of another PE wait for a word of the
//! arena, a lock that they share with ranks here, only the word's bucket is known: a waker of the word signals the
//! bucket to every PE that has ranks waiting there, and that PE wakes all of them. A wait for a word may end
//! spuriously, so the ranks for which it was not meant check again.
//!
//! A rank that begins to wait for such a word also signals its bucket to PEs that sleep until a message arrives:
//! threads of theirs may hold the lock, so now they must not count as PEs where nothing can happen (`idle`).
//!
//! Each signal is a bit in the PE's block, whose doorbell is rung then. The request of an observer of the job
//! (`answer`) and a new ring (`net::rings`) are signalled the same way: they cost a PE nothing while they do not occur.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use vrt_shm::Sleep;

use crate::net::shared::{Idleness, NEW_RINGS, PeBlock, Shared, WORD_BUCKETS};
use vrt_slot::hooks;

/// The PEs of this process: one in a job, one a thread with `run_local`.
static PES: Mutex<Vec<(u32, Arc<Injector>)>> = Mutex::new(Vec::new());

/// Signals given to other PEs by this process.
static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// The signals that ranks are in the list, that somebody asks what the PE does, and that signals of the system have
/// come for ranks; the bits below are the buckets of words.
const RANKS: u64 = 1 << WORD_BUCKETS;
const ASKED: u64 = RANKS << 1;
const SIGNALLED: u64 = ASKED << 1;
const _: () = assert!(SIGNALLED << 1 == NEW_RINGS);

/// The PE of a process that has one, for signal handlers.
static OWN: OnceLock<Neighbour> = OnceLock::new();

/// The bucket of a word.
pub(crate) fn bucket(address: usize) -> usize {
    // Fibonacci hashing: neighbouring locks get different buckets.
    let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    hash as usize % WORD_BUCKETS
}

/// A PE as others signal to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub block: &'static PeBlock,
    /// Its eventfd.
    pub event: i32,
}

/// What has come.
pub(crate) struct Taken {
    /// Ranks that were woken.
    pub ranks: Vec<u32>,
    /// Buckets of words, a bit each.
    pub words: u64,
    /// The state of the PE was requested.
    pub asked: bool,
    /// Signals of the system have arrived for ranks.
    pub signalled: bool,
}

impl Neighbour {
    /// Requests the state of the PE.
    pub(super) fn ask(self) {
        self.signal(ASKED);
    }

    fn signal(self, signals: u64) {
        self.block.signals.fetch_or(signals, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the PE if it sleeps.
    pub(super) fn wake(self) {
        match self.block.doorbell.ring() {
            None => {}
            Some(Sleep::Futex) => self.block.doorbell.wake(),
            Some(Sleep::Event) => {
                let one = 1u64;
                // SAFETY: eight readable bytes; the descriptor is the PE's eventfd.
                unsafe { libc::write(self.event, (&raw const one).cast(), 8) };
            }
        }
    }
}

/// Where other threads leave the ranks that they wake.
#[derive(Debug)]
pub(crate) struct Injector {
    woken: Mutex<Vec<u32>>,
    id: u32,
    own: Neighbour,
    shared: Shared,
    /// The eventfds of all PEs of the node.
    events: Arc<[i32]>,
}

impl Injector {
    pub(crate) fn register(id: u32, uid: u32, shared: Shared, events: Arc<[i32]>) -> Arc<Injector> {
        let own = Neighbour { block: shared.pe(id as usize), event: events[id as usize] };
        let _: &Neighbour = OWN.get_or_init(|| own);
        let injector = Injector { woken: Mutex::new(Vec::new()), id, own, shared, events };
        let injector = Arc::new(injector);
        lock(&PES).push((uid, injector.clone()));
        injector
    }

    pub(crate) fn unregister(uid: u32) {
        lock(&PES).retain(|(u, _)| *u != uid);
    }

    /// The other PEs of the node.
    fn others(&self) -> impl Iterator<Item = Neighbour> {
        let others = self.shared.pes_of_node().filter(|pe| *pe != self.id as usize);
        others.map(|pe| Neighbour { block: self.shared.pe(pe), event: self.events[pe] })
    }

    /// Whether no rank was woken; a cheap check.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.own.block.signals.load(Ordering::Acquire) == 0
    }

    /// Whether a ring was opened to the PE since the last call.
    pub(crate) fn take_new_rings(&self) -> bool {
        self.own.block.signals.fetch_and(!NEW_RINGS, Ordering::SeqCst) & NEW_RINGS != 0
    }

    /// Everything else since the last call.
    pub(crate) fn take(&self) -> Taken {
        let signals = self.own.block.signals.fetch_and(NEW_RINGS, Ordering::SeqCst) & !NEW_RINGS;
        let ranks =
            if signals & RANKS != 0 { std::mem::take(&mut *lock(&self.woken)) } else { Vec::new() };
        Taken {
            ranks,
            words: signals & !(RANKS | ASKED | SIGNALLED),
            asked: signals & ASKED != 0,
            signalled: signals & SIGNALLED != 0,
        }
    }

    /// Whether ranks of other PEs of the node wait for words, which threads of this process may know.
    pub(crate) fn others_wait(&self) -> bool {
        let waits = |n: &AtomicU32| n.load(Ordering::SeqCst) > 0;
        waits(self.shared.waiting_in_node())
            && self.others().any(|other| other.block.waiting.iter().any(waits))
    }

    /// A rank of this PE begins to wait for a word of the arena, and is counted already.
    pub(crate) fn tell_waiting(&self, address: usize) {
        for other in self.others() {
            let waits = [Idleness::Messages as u32, Idleness::Looking as u32];
            if waits.contains(&other.block.idle.load(Ordering::SeqCst)) {
                SIGNALS.fetch_add(1, Ordering::SeqCst);
                other.signal(1 << bucket(address));
            }
        }
    }

    /// Leaves a rank of the PE with this unique number to it.
    pub(super) fn leave_for(uid: u32, rank: u32) {
        // Locked until it is done: the PE's block is there as long as the PE is in the list.
        if let Some((_, injector)) = lock(&PES).iter().find(|(u, _)| *u == uid) {
            injector.push(rank);
        }
    }

    fn push(&self, rank: u32) {
        lock(&self.woken).push(rank);
        self.own.signal(RANKS);
    }
}

/// Signals of the system have come for ranks of this process's PE. It may be called in a signal handler.
pub(crate) fn signalled() {
    if let Some(own) = OWN.get() {
        own.signal(SIGNALLED);
    }
}

/// Has the other PEs of the node wake their ranks that wait for a word of the arena. To be called
/// after the word was changed, and a full fence.
pub(crate) fn wake_elsewhere(address: usize) {
    let bucket = bucket(address);
    hooks::runtime_heap(|| {
        for (_, injector) in lock(&PES).iter() {
            if injector.shared.waiting_in_node().load(Ordering::SeqCst) == 0 {
                continue;
            }
            for other in injector.others() {
                if other.block.waiting[bucket].load(Ordering::SeqCst) > 0 {
                    SIGNALS.fetch_add(1, Ordering::SeqCst);
                    other.signal(1 << bucket);
                }
            }
        }
    });
}

/// How many signals this process has given to other PEs.
pub(crate) fn signals_given() -> u64 {
    SIGNALS.load(Ordering::SeqCst)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
