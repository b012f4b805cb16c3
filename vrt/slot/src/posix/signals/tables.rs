//! The signals of a rank and of its threads, in the rank's heap; and which of them are the caller's.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::lock::Lock;
use super::nudge;
use super::pending::{Info, Pending};
use super::sets::{Action, COUNT, bit};
use crate::arena::{Arena, SlotHeader};
use crate::heap_word::running;
use crate::posix::timer_table::Timers;
use crate::{image, owner};

/// The signals of a rank.
pub(crate) struct Signals {
    /// The handling of each, by its number.
    pub(super) actions: [UnsafeCell<Action>; COUNT],
    pub(super) lock: Lock,
    /// Those for any thread of the rank.
    pub(super) pending: UnsafeCell<Pending>,
    /// The rank's own thread, and those that it has started.
    pub(super) main: ThreadSignals,
    pub(super) threads: AtomicPtr<ThreadSignals>,
    pub(crate) timers: Timers,
    /// Signals from a child that the lock has kept from becoming pending with the others.
    pub(super) from_child: AtomicU64,
}

/// The signal state of one thread of a rank.
pub(crate) struct ThreadSignals {
    pub(super) blocked: AtomicU64,
    /// Those that it consumes itself (`sigwait`).
    pub(super) waits_for: AtomicU64,
    pub(super) pending: UnsafeCell<Pending>,
    /// It is suspended in a call that checks for signals itself.
    pub(super) looks: AtomicBool,
    /// Number of handlers that have run here, and of those that interrupt a call which could continue.
    pub(super) handled: AtomicU32,
    pub(super) interrupting: AtomicU32,
    /// Counts arrivals: a word to wait at.
    pub(super) came: AtomicU32,
    /// Its identity for others: libc's identity and the kernel's number; 0 while unknown, and for a rank's own thread.
    pub(super) identity: AtomicUsize,
    pub(super) number: AtomicU32,
    pub(super) next: Cell<*mut ThreadSignals>,
}

impl ThreadSignals {
    pub(super) fn new(blocked: u64) -> ThreadSignals {
        ThreadSignals {
            blocked: AtomicU64::new(blocked),
            waits_for: AtomicU64::new(0),
            pending: UnsafeCell::new(Pending::new()),
            looks: AtomicBool::new(false),
            handled: AtomicU32::new(0),
            interrupting: AtomicU32::new(0),
            came: AtomicU32::new(0),
            identity: AtomicUsize::new(0),
            number: AtomicU32::new(0),
            next: Cell::new(std::ptr::null_mut()),
        }
    }
}

thread_local! {
    /// Those of this thread, if a rank that has signals has started it.
    static OF_THREAD: Cell<*mut ThreadSignals> = const { Cell::new(std::ptr::null_mut()) };
}

/// The calling thread has these signals from now on; returns what it had. Never inlined: its thread pointer is an
/// image's.
///
/// # Safety
/// Null, or what `thread_is_made` has made for this thread, which has not ended.
#[inline(never)]
pub(crate) unsafe fn exchange_of_thread(signals: *mut ThreadSignals) -> *mut ThreadSignals {
    OF_THREAD.replace(signals)
}

/// The running rank's slot, if it runs an image.
pub(crate) fn slot() -> Option<&'static SlotHeader> {
    image::program()?;
    running().filter(|slot| slot.thread_pointer.get() != 0)
}

/// The slot of the calling rank, or of the rank that has started the calling thread.
pub(crate) fn slot_of_caller() -> Option<&'static SlotHeader> {
    slot().or_else(|| {
        image::base_of_thread()?;
        Arena::current()?.slot(owner::starter()?)
    })
}

/// The calling thread, which belongs to a rank that runs an image.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    pub(super) slot: &'static SlotHeader,
    pub(crate) signals: &'static Signals,
    pub(super) thread: &'static ThreadSignals,
}

/// The signals of a slot's rank, if it has changed any setting.
pub(crate) fn of_slot(slot: &SlotHeader) -> Option<&'static Signals> {
    // SAFETY: P2, or null.
    unsafe { slot.signals.get().cast::<Signals>().as_ref() }
}

/// The caller, if its rank has changed any setting of signals.
pub(crate) fn existing() -> Option<Caller> {
    let slot = slot_of_caller()?;
    let signals = of_slot(slot)?;
    // SAFETY: P2, or null: `exchange_of_thread`.
    let thread = unsafe { OF_THREAD.get().as_ref() }.unwrap_or(&signals.main);
    Some(Caller { slot, signals, thread })
}

/// The caller.
pub(crate) fn caller() -> Option<Caller> {
    prepare();
    existing()
}

/// The running rank has its own signals from now on.
pub(crate) fn prepare() {
    if let Some(slot) = slot()
        && slot.signals.get().is_null()
    {
        let new = Box::new(Signals {
            actions: [const { UnsafeCell::new(Action::DEFAULT) }; COUNT],
            lock: Lock::new(),
            pending: UnsafeCell::new(Pending::new()),
            main: ThreadSignals::new(0),
            threads: AtomicPtr::new(std::ptr::null_mut()),
            timers: Timers::default(),
            from_child: AtomicU64::new(0),
        });
        slot.signals.set(Box::into_raw(new).cast());
    }
}

/// The destination of a signal.
#[derive(Clone, Copy)]
pub(super) enum For<'a> {
    Rank,
    Thread(&'a ThreadSignals),
}

impl Signals {
    pub(super) fn action(&self, signal: c_int) -> Action {
        // SAFETY: P1: written whole with the lock. Who reads it meanwhile gets one of its words old, another new, as a
        // program does that sets handlers while signals come.
        unsafe { self.actions[signal as usize].get().read_volatile() }
    }

    /// Runs `f` with the lock; for callers that are not handlers of the kernel's.
    pub(super) fn locked<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        self.lock.with(f)
    }

    /// All threads, the rank's own first. With the lock.
    pub(super) fn threads(&self) -> impl Iterator<Item = &ThreadSignals> {
        // SAFETY: P1 and P2, or null.
        let at = |thread: *mut ThreadSignals| unsafe { thread.as_ref() };
        let first = at(self.threads.load(Ordering::Acquire));
        let others = std::iter::successors(first, move |thread| at(thread.next.get()));
        std::iter::once(&self.main).chain(others)
    }

    /// The rank belongs to a child process: only its own thread continues, and nothing is pending for it.
    pub(super) fn has_one_thread(&self) {
        self.threads.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.locked(|| {
            // SAFETY: P1: this is inside the lock.
            unsafe {
                (*self.pending.get()) = Pending::new();
                (*self.main.pending.get()) = Pending::new();
            }
        });
    }

    /// Makes a signal pending for its destination, and notifies that. Returns false if there is no room for another one
    /// of its kind; `None` if the caller is a handler that has run too early (see [`Lock`]).
    pub(super) fn post(&self, slot: &SlotHeader, whom: For<'_>, info: Info) -> Option<bool> {
        self.lock.with(|| self.post_locked(slot, whom, info))
    }

    /// [`post`](Self::post) with the lock.
    pub(super) fn post_locked(&self, slot: &SlotHeader, whom: For<'_>, info: Info) -> bool {
        let pending = match whom {
            For::Rank => &self.pending,
            For::Thread(thread) => &thread.pending,
        };
        // SAFETY: P1: this is called with the lock.
        if !unsafe { (*pending.get()).add(info) } {
            return false;
        }
        let taker = match whom {
            For::Thread(thread) => Some(thread),
            For::Rank => self.taker_of(bit(info.signal)),
        };
        if let Some(taker) = taker {
            self.tell(slot, taker);
        }
        true
    }

    /// Whether a thread is the calling one.
    fn is_caller(&self, thread: &ThreadSignals) -> bool {
        existing().is_some_and(|caller| std::ptr::eq(caller.thread, thread))
    }

    /// The thread that takes a signal for any thread: one that waits for it, or does not block it, the rank's own
    /// thread first.
    fn taker_of(&self, bits: u64) -> Option<&ThreadSignals> {
        let waits = |thread: &&ThreadSignals| thread.waits_for.load(Ordering::SeqCst) & bits != 0;
        let takes = |thread: &&ThreadSignals| thread.blocked.load(Ordering::SeqCst) & bits == 0;
        self.threads().find(waits).or_else(|| self.threads().find(takes))
    }

    /// Notifies a thread that there may be something for it.
    fn tell(&self, slot: &SlotHeader, thread: &ThreadSignals) {
        thread.came.fetch_add(1, Ordering::SeqCst);
        if self.is_caller(thread) {
            // It looks itself, in this handler or function.
            return;
        }
        nudge::wake_waiting(&thread.came);
        if std::ptr::eq(thread, &raw const self.main) {
            slot.has_signal.store(true, Ordering::SeqCst);
            nudge::nudge_rank(slot);
        } else {
            // One that has not begun looks then.
            match thread.number.load(Ordering::SeqCst) {
                0 => {}
                number => nudge::nudge(number),
            }
        }
    }

    /// Adds what timers and children have left because it could not become pending at that time. With the lock.
    pub(super) fn collect(&self, slot: &SlotHeader) {
        let mut bits = self.from_child.swap(0, Ordering::SeqCst);
        while bits != 0 {
            let signal = bits.trailing_zeros() as c_int + 1;
            bits &= bits - 1;
            let info = Info { signal, code: libc::SI_USER, ..Info::default() };
            self.post_locked(slot, For::Rank, info);
        }
        self.timers.collect(|info| self.post_locked(slot, For::Rank, info));
    }

    /// What is pending for a thread, as a set.
    pub(super) fn waiting_for(&self, thread: &ThreadSignals) -> u64 {
        // What another thread writes meanwhile, it tells afterwards.
        Pending::set_of(&thread.pending) | Pending::set_of(&self.pending)
    }

    pub(super) fn is_deliverable(&self, thread: &ThreadSignals) -> bool {
        self.waiting_for(thread) & !thread.blocked.load(Ordering::SeqCst) != 0
    }

    /// A timer is deleted: its signals that have not been taken are removed.
    pub(crate) fn forget_timer(&self, signal: c_int, number: c_int) {
        // SAFETY: P1: this is inside the lock.
        self.lock.with(|| unsafe { (*self.pending.get()).forget_timer(signal, number) });
    }

    pub(super) fn set_action(&self, signal: c_int, action: Action) {
        self.lock.with(|| {
            // SAFETY: P1: this is inside the lock.
            unsafe { self.actions[signal as usize].get().write_volatile(action) };
        });
    }
}

impl Caller {
    /// Takes one of the pending signals.
    pub(super) fn take(self, wanted: u64) -> Option<Info> {
        let (signals, thread) = (self.signals, self.thread);
        let take = || {
            signals.collect(self.slot);
            // SAFETY: P1: this is inside the lock.
            unsafe {
                (*thread.pending.get())
                    .take(wanted)
                    .or_else(|| (*signals.pending.get()).take(wanted))
            }
        };
        let mut taken = signals.lock.with(take).flatten()?;
        if taken.code == libc::SI_TIMER {
            signals.timers.is_taken(&mut taken);
        }
        Some(taken)
    }

    /// Makes what timers and children have left pending with the rest.
    pub(crate) fn collect(self) {
        self.signals.locked(|| self.signals.collect(self.slot));
    }
}
