//! Signals of ranks that run images: each rank has its own handlers, as a process does, and its threads have their own
//! masks.
//!
//! The kernel has one table of handlers per PE, which is the runtime's. A program's settings are kept in the rank's
//! heap, so they move along; a raised signal finds its handler there:
//!
//! ```text
//! raise, kill, sigqueue, pthread_kill .. of the rank's own --.
//! a timer of the rank's (`timers`) ---------------------------+--> waits, for the rank or a thread of it
//! a child of the rank's has changed (`children`) -------------+        |
//! a child that the rank has forked has sent it ---------------'        | not blocked
//!                                                                      v
//! a fault of the rank's --------------------------------> the rank's handler, on the stack of the rank
//! ```
//!
//! | where the handler runs | when |
//! |---|---|
//! | the thread that raises the signal | at once, as a function |
//! | a running rank, another thread of a rank | at once: the kernel's [`nudge`](kernel) interrupts it |
//! | a rank inside of the runtime | when it leaves the runtime, by a timer of the PE that nudges it again |
//! | a suspended rank | it is woken, and runs the handler before it continues ([`run_before_resuming`]), or, in a call that a signal may interrupt, after it has left that call (`vrt-core`'s `blocking`) |
//!
//! Masks exist only in these tables: the kernel's mask of a PE's thread is always empty, even while a handler runs, as
//! that may leave by a jump (`jumps`) and other ranks run then.
//!
//! A signal without a handler has the system's default effect. A signal sent by another process is the PE's, except if
//! the process is a child that a rank has forked.

#[path = "signal_calls.rs"]
mod calls;
#[path = "signal_children.rs"]
mod children;
#[path = "signal_jumps.rs"]
mod jumps;
#[path = "signal_kernel.rs"]
pub(crate) mod kernel;
#[path = "signal_lock.rs"]
mod lock;
#[path = "signal_pending.rs"]
mod pending;
#[path = "signal_waits.rs"]
mod waits;

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::hooks::{self, heap_in_use};
use crate::interpose::Real;
use crate::timers::Timers;
use crate::{SlotHeader, accounts, forked, image, image_thread, report};

pub(crate) use calls::{by_number, provided};
pub(crate) use children::look_soon as look_for_children;
pub(crate) use jumps::provided as provided_jumps;
pub use kernel::{begin, handle_fault};
use lock::Lock;
pub(crate) use pending::Info;
use pending::Pending;
pub use waits::*;

const COUNT: usize = 65;
/// The kernel's first real-time signal; libc keeps the first two for itself.
const FIRST_REAL_TIME: c_int = 32;

type Handler = unsafe extern "C-unwind" fn(c_int);
type HandlerWithInfo = unsafe extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The handling of a signal.
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    flags: c_int,
    mask: u64,
}

impl Action {
    const DEFAULT: Action = Action { handler: libc::SIG_DFL, flags: 0, mask: 0 };

    fn is_handler(&self) -> bool {
        !matches!(self.handler, libc::SIG_DFL | libc::SIG_IGN)
    }

    /// Whether a signal that is not blocked is dropped.
    fn drops(&self, signal: c_int) -> bool {
        self.handler == libc::SIG_IGN
            || self.handler == libc::SIG_DFL && is_ignored_by_default(signal)
    }
}

/// The signals of a rank.
pub(crate) struct Signals {
    /// The handling of each, by its number.
    actions: [UnsafeCell<Action>; COUNT],
    lock: Lock,
    /// Those for any thread of the rank.
    pending: UnsafeCell<Pending>,
    /// The rank's own thread, and those that it has started.
    main: ThreadSignals,
    threads: AtomicPtr<ThreadSignals>,
    pub(crate) timers: Timers,
    /// Signals from a child that the lock has kept from becoming pending with the others.
    from_child: AtomicU64,
}

/// The signal state of one thread of a rank.
pub(crate) struct ThreadSignals {
    blocked: AtomicU64,
    /// Those that it consumes itself (`sigwait`).
    waits_for: AtomicU64,
    pending: UnsafeCell<Pending>,
    /// It is suspended in a call that checks for signals itself.
    looks: AtomicBool,
    /// Number of handlers that have run here, and of those that interrupt a call which could continue.
    handled: AtomicU32,
    interrupting: AtomicU32,
    /// Counts arrivals: a word to wait at.
    came: AtomicU32,
    /// Its identity for others: libc's identity and the kernel's number; 0 while unknown, and for a rank's own thread.
    identity: AtomicUsize,
    number: AtomicU32,
    next: Cell<*mut ThreadSignals>,
}

impl ThreadSignals {
    fn new(blocked: u64) -> ThreadSignals {
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

fn bit(signal: c_int) -> u64 {
    1 << ((signal - 1) as u32 & 63)
}

/// Whether a number is that of a signal for which a program may have a handler.
fn is_handled(signal: c_int) -> bool {
    is_signal(signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP
}

fn is_signal(signal: c_int) -> bool {
    (1..COUNT as c_int).contains(&signal)
}

fn is_ignored_by_default(signal: c_int) -> bool {
    [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT].contains(&signal)
}

/// The first 64 signals of a set, which are all that exist.
fn word_of(set: &libc::sigset_t) -> u64 {
    // SAFETY: a set is longer than a word; its lowest bit is signal 1. The two that nothing can block are left out.
    let word = unsafe { std::ptr::from_ref(set).cast::<u64>().read() };
    word & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP))
}

/// Stores signals as a set.
///
/// # Safety
/// There is room for a set.
unsafe fn store_set(word: u64, set: *mut libc::sigset_t) {
    // SAFETY: as the caller promises; a set is longer than a word, and all zero the empty one.
    unsafe {
        set.write(std::mem::zeroed());
        set.cast::<u64>().write(word);
    }
}

/// The running rank's slot, if it runs an image.
pub(crate) fn slot() -> Option<&'static SlotHeader> {
    image::program()?;
    let slot = heap_in_use();
    // SAFETY: the heap in use is the running rank's, whose header stays mapped.
    let slot = (!slot.is_null()).then(|| unsafe { &*slot })?;
    (slot.thread_pointer.get() != 0).then_some(slot)
}

/// The slot of the calling rank, or of the rank that has started the calling thread.
pub(crate) fn slot_of_caller() -> Option<&'static SlotHeader> {
    slot().or_else(|| {
        image_thread::base()?;
        // SAFETY: the rank stays here as long as the thread runs, and headers stay mapped.
        Some(unsafe { &*accounts::starter()? })
    })
}

/// The calling thread, which belongs to a rank that runs an image.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    slot: &'static SlotHeader,
    pub(crate) signals: &'static Signals,
    thread: &'static ThreadSignals,
}

/// The signals of a slot's rank, if it has changed any setting.
fn of_slot(slot: &SlotHeader) -> Option<&'static Signals> {
    // SAFETY: null, or what `prepare` has put into the rank's heap, which stays as long as the rank.
    unsafe { slot.signals.get().as_ref() }
}

/// The caller, if its rank has changed any setting of signals.
pub(crate) fn existing() -> Option<Caller> {
    let slot = slot_of_caller()?;
    let signals = of_slot(slot)?;
    // SAFETY: null, or the calling thread's own, which is freed when it ends.
    let thread = unsafe { image_thread::signals().as_ref() }.unwrap_or(&signals.main);
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
        slot.signals.set(Box::into_raw(new));
    }
}

/// The destination of a signal.
#[derive(Clone, Copy)]
enum For<'a> {
    Rank,
    Thread(&'a ThreadSignals),
}

impl Signals {
    fn action(&self, signal: c_int) -> Action {
        // SAFETY: written whole with the lock; who reads it meanwhile gets one of its words old, another new, as a
        // program does that sets handlers while signals come.
        unsafe { self.actions[signal as usize].get().read_volatile() }
    }

    /// Runs `f` with the lock; for callers that are not handlers of the kernel's.
    fn locked<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        self.lock.with(f)
    }

    /// All threads, the rank's own first.
    fn threads(&self) -> impl Iterator<Item = &ThreadSignals> {
        // SAFETY: threads are put in and taken out with the lock, which the caller has.
        let next = |thread: &&ThreadSignals| unsafe { thread.next.get().as_ref() };
        // SAFETY: as above.
        let first = unsafe { self.threads.load(Ordering::Acquire).as_ref() };
        std::iter::once(&self.main).chain(std::iter::successors(first, next))
    }

    /// The rank belongs to a child process: only its own thread continues, and nothing is pending for it.
    fn has_one_thread(&self) {
        self.threads.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.locked(|| {
            // SAFETY: the lock is held.
            unsafe {
                (*self.pending.get()) = Pending::new();
                (*self.main.pending.get()) = Pending::new();
            }
        });
    }

    /// Makes a signal pending for its destination, and notifies that. Returns false if there is no room for another one
    /// of its kind; `None` if the caller is a handler that has run too early (see [`Lock`]).
    fn post(&self, slot: &SlotHeader, whom: For<'_>, info: Info) -> Option<bool> {
        self.lock.with(|| self.post_locked(slot, whom, info))
    }

    /// [`post`](Self::post) with the lock.
    fn post_locked(&self, slot: &SlotHeader, whom: For<'_>, info: Info) -> bool {
        let pending = match whom {
            For::Rank => &self.pending,
            For::Thread(thread) => &thread.pending,
        };
        // SAFETY: the lock is held.
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
        wake(&thread.came);
        if std::ptr::eq(thread, &raw const self.main) {
            slot.has_signal.store(true, Ordering::SeqCst);
            kernel::nudge_rank(slot);
        } else {
            // One that has not begun looks then.
            match thread.number.load(Ordering::SeqCst) {
                0 => {}
                number => kernel::nudge(number),
            }
        }
    }

    /// Adds what timers and children have left because it could not become pending at that time. With the lock.
    fn collect(&self, slot: &SlotHeader) {
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
    fn waiting_for(&self, thread: &ThreadSignals) -> u64 {
        // SAFETY: the sets alone are read; what another thread writes meanwhile, it tells afterwards.
        unsafe { (*thread.pending.get()).set() | (*self.pending.get()).set() }
    }

    fn is_deliverable(&self, thread: &ThreadSignals) -> bool {
        self.waiting_for(thread) & !thread.blocked.load(Ordering::SeqCst) != 0
    }
}

impl Caller {
    /// Takes one of the pending signals.
    fn take(self, wanted: u64) -> Option<Info> {
        let (signals, thread) = (self.signals, self.thread);
        let take = || {
            signals.collect(self.slot);
            // SAFETY: the lock is held.
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

    /// Calls handlers for pending signals that are not blocked; without a handler, applies the system's default.
    /// `context` is the kernel's, or null. A handler may leave by a jump, or an exception.
    pub(crate) fn deliver(self, context: *mut c_void) {
        while let Some((action, info)) = self.take_handled() {
            // SAFETY: the handler that the program has set for it.
            unsafe { self.call(action, &info, context) };
        }
    }

    /// The next one that has a handler.
    fn take_handled(self) -> Option<(Action, Info)> {
        loop {
            let info = self.take(!self.thread.blocked.load(Ordering::SeqCst))?;
            let action = self.signals.action(info.signal);
            match action.is_handler() {
                true => return Some((action, info)),
                false if action.drops(info.signal) => {}
                false => by_default(info.signal),
            }
        }
    }

    /// Calls a handler, after those of other signals that arrive in between: as if the kernel had put the frames of all
    /// on the stack, and the last one ran first.
    ///
    /// # Safety
    /// It belongs to the program.
    unsafe fn call(self, action: Action, info: &Info, context: *mut c_void) {
        let before = self.enter(action, info.signal);
        self.deliver(context);
        let mut given = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: zeros are a valid description, which is filled in; the handler is as the caller promises.
        unsafe {
            info.write_to(given.assume_init_mut());
            self.run(action, given.as_mut_ptr(), context);
        }
        self.thread.blocked.store(before, Ordering::SeqCst);
    }

    /// Blocks what a handler has blocked while it runs; returns the previous mask.
    fn enter(self, action: Action, signal: c_int) -> u64 {
        let thread = self.thread;
        let own = if action.flags & libc::SA_NODEFER != 0 { 0 } else { bit(signal) };
        let before = thread.blocked.load(Ordering::SeqCst);
        thread.blocked.store(before | own | action.mask, Ordering::SeqCst);
        thread.handled.fetch_add(1, Ordering::Relaxed);
        if action.flags & libc::SA_RESTART == 0 {
            thread.interrupting.fetch_add(1, Ordering::Relaxed);
        }
        if action.flags & libc::SA_RESETHAND != 0 {
            self.signals.set_action(signal, Action::DEFAULT);
        }
        before
    }

    /// Runs a handler.
    ///
    /// # Safety
    /// It belongs to the program; the description is valid, and so is the context, unless null.
    unsafe fn run(self, action: Action, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the handler is of the kind that its flags say; zeros are valid registers.
        unsafe {
            let signal = (*info).si_signo;
            if action.flags & libc::SA_SIGINFO == 0 {
                return std::mem::transmute::<usize, Handler>(action.handler)(signal);
            }
            let handler = std::mem::transmute::<usize, HandlerWithInfo>(action.handler);
            let mut registers = MaybeUninit::<libc::ucontext_t>::zeroed();
            let context = match context.is_null() {
                true => registers.as_mut_ptr().cast(),
                false => context,
            };
            handler(signal, info, context);
        }
    }
}

impl Signals {
    /// A timer is deleted: its signals that have not been taken are removed.
    pub(crate) fn forget_timer(&self, signal: c_int, number: c_int) {
        // SAFETY: the lock is held.
        self.lock.with(|| unsafe { (*self.pending.get()).forget_timer(signal, number) });
    }

    fn set_action(&self, signal: c_int, action: Action) {
        self.lock.with(|| {
            // SAFETY: the lock is held.
            unsafe { self.actions[signal as usize].get().write_volatile(action) };
        });
    }
}

/// The system's default for a signal without a handler.
fn by_default(signal: c_int) {
    /// Added by a shell to the number of the signal that has ended a program.
    const SIGNALLED: c_int = 128;
    const STOPPING: [c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    if is_ignored_by_default(signal) {
        return;
    }
    if forked::is_child() {
        // SAFETY: plain calls: the process ends, or stops, as it would have without handlers.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
        }
        if STOPPING.contains(&signal) {
            return;
        }
        // SAFETY: a plain call; something has blocked the signal.
        unsafe { libc::_exit(SIGNALLED + signal) };
    }
    if STOPPING.contains(&signal) {
        // One rank of a PE cannot be stopped alone.
        return;
    }
    let rank = match slot_of_caller() {
        Some(slot) => slot.rank.get(),
        None => hooks::current_rank().unwrap_or_default(),
    };
    report::say(format_args!(
        "rank {rank}: signal {signal}, for which it has no handler; ending the job"
    ));
    report::end_job(SIGNALLED + signal)
}

/// The caller starts a thread, which gets its mask. Returns null if signals are the process's.
pub(crate) fn thread_is_made() -> *mut ThreadSignals {
    let Some(caller) = caller() else { return std::ptr::null_mut() };
    let blocked = caller.thread.blocked.load(Ordering::SeqCst);
    let thread = hooks::runtime_heap(|| Box::into_raw(Box::new(ThreadSignals::new(blocked))));
    caller.signals.locked(|| {
        // SAFETY: nobody else knows it yet, and the list is changed with the lock.
        unsafe { (*thread).next.set(caller.signals.threads.load(Ordering::Relaxed)) };
        caller.signals.threads.store(thread, Ordering::Release);
    });
    thread
}

/// The thread that the caller has started has this identity, if it still exists.
pub(crate) fn thread_is_known(thread: *mut ThreadSignals, identity: usize) {
    let Some(caller) = existing().filter(|_| !thread.is_null()) else { return };
    caller.signals.locked(|| {
        let is_it = |of: &&ThreadSignals| std::ptr::eq(*of, thread);
        if let Some(thread) = caller.signals.threads().find(is_it) {
            thread.identity.store(identity, Ordering::Relaxed);
        }
    });
}

/// The thread begins: signals that are already pending for it are delivered.
pub(crate) fn thread_begins() {
    let Some(caller) = existing() else { return };
    let thread = caller.thread;
    thread.identity.store(image_thread::identity(), Ordering::Relaxed);
    // SAFETY: a plain call.
    thread.number.store(unsafe { libc::gettid() } as u32, Ordering::SeqCst);
    caller.deliver(std::ptr::null_mut());
}

/// A thread has ended, or was not created. Signals pending for it alone are lost, as in any process.
pub(crate) fn thread_ends(thread: *mut ThreadSignals) {
    let signals = slot_of_caller().and_then(of_slot);
    let Some(signals) = signals.filter(|_| !thread.is_null()) else { return };
    signals.locked(|| {
        // SAFETY: threads of the list live, and it is changed with the lock.
        unsafe {
            let mut at = signals.threads.load(Ordering::Relaxed);
            if at == thread {
                signals.threads.store((*thread).next.get(), Ordering::Release);
            }
            while !at.is_null() {
                if (*at).next.get() == thread {
                    (*at).next.set((*thread).next.get());
                }
                at = (*at).next.get();
            }
        }
    });
    // SAFETY: nobody finds it any more. Who was about to does so with the lock.
    drop(unsafe { hooks::runtime_heap(|| Box::from_raw(thread)) });
}

/// The rank of a slot, which is about to be resumed, has signals: it runs its handlers first, on its own stack, unless
/// it checks for them itself.
#[cold]
#[inline(never)]
pub(crate) fn run_before_resuming(slot: &SlotHeader) {
    slot.has_signal.store(false, Ordering::SeqCst);
    let Some(signals) = of_slot(slot) else { return };
    if signals.main.looks.load(Ordering::Relaxed) {
        return;
    }
    signals.locked(|| signals.collect(slot));
    // That has told the rank anew.
    slot.has_signal.store(false, Ordering::SeqCst);
    if signals.is_deliverable(&signals.main) {
        // SAFETY: the rank's PE is about to resume it.
        unsafe { crate::rank::Body::run_first(slot, deliver_on_stack) };
    }
}

/// Whether the rank of a slot, which is suspended, must be resumed for its signals, or to query a child.
///
/// # Safety
/// The calling PE owns the slot.
pub unsafe fn has_some(slot: *mut SlotHeader) -> bool {
    // SAFETY: as the caller promises; headers stay mapped.
    unsafe { (*slot).has_signal.load(Ordering::SeqCst) }
}

/// Runs the handlers of the rank that has just been resumed.
extern "C-unwind" fn deliver_on_stack() {
    if let Some(caller) = existing() {
        caller.deliver(std::ptr::null_mut());
    }
}

/// Reports the reason of a failed call in `errno`.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: the place is the thread's.
    unsafe { *errno_location() = error };
    -1
}

/// The program's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the place is the thread's.
    unsafe { *errno_location() }
}

fn errno_location() -> *mut c_int {
    static REAL: Real = Real::new(c"__errno_location");
    type Location = unsafe extern "C" fn() -> *mut c_int;
    // SAFETY: libc's function, the rank's own or the process's.
    unsafe { std::mem::transmute::<*mut c_void, Location>(REAL.get())() }
}
