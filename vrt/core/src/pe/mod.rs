//! A PE: one thread that runs ranks.
//!
//! All state of a PE is plain single-threaded Rust, reached through [`with`], whose closure cannot
//! suspend: while it runs, the thread's heap is the process's, so a suspend or a second `with`
//! inside is caught. What a closure returns is numbers and `Copy`
//! values; nothing of the PE's heap ever lies on a rank's stack while the rank is suspended.
//!
//! | file | subject |
//! |---|---|
//! | `run` | the loop: ready ranks, progress, tokio's turns |
//! | `idle` | going to sleep, and seeing that everybody does (deadlock) |
//! | `patience` | how long it looks for something to do before |
//! | `contexts` | what a rank has done on its communicators |
//! | `ranks` | a rank's state in the PE, waking it |
//! | `requests` | operations that are not done, what they put where, what came of them |
//! | `ready` | the queue of ready ranks |
//! | `send`, `receive` | messages: the engine's half of point-to-point |
//! | `sharing` | long copies between PEs, in which both take part |
//! | `withdraw` | taking back a send that waits for its receive |
//! | `reserve` | receives that get their memory late, requests that nobody waits for |
//! | `termination` | how many ranks are left, and deadlock, where nodes share no memory |
//! | `flow` | how much memory unexpected messages take |
//! | `extension` | what else works on a PE: migration, collective operations, windows, balancing |
//! | `location` | what comes for ranks that are not here |
//! | `abandon` | ranks that have not ended when a local run does |
//! | `stall` | who keeps the thread, and who waits for it |
//! | `timers` | `vrt`'s own timers |
//! | `locks` | ranks that wait for locks of their process |
//! | `inject` | waking a rank from another thread |
//! | `observe` | telling an observer what happens: a trace is made of it |
//! | `report` | what ranks wait for, what the PE has done |
//! | `shares` | what part of its time is the runtime's own |
//! | `answer` | the same for somebody who looks at the running job |

mod abandon;
mod answer;
mod contexts;
mod extension;
mod flow;
pub mod idle;
mod inject;
mod location;
mod locks;
mod memory;
mod observe;
mod patience;
mod ranks;
mod ready;
mod receive;
mod report;
mod requests;
mod reserve;
mod run;
mod send;
mod shares;
mod sharing;
mod stall;
mod termination;
mod timers;
mod withdraw;

pub use crate::cycles::now as cycle_counter;
pub use answer::Looker;
pub use contexts::Begun;
pub(crate) use contexts::ContextUse;
pub use extension::{Extension, Extensions, Handlers};
pub(crate) use flow::{Flow, Told};
pub(crate) use inject::{bucket, wake_elsewhere, wake_from_outside};
pub use locks::{AtLocks, Locks};
pub(crate) use observe::collective_ends;
pub use observe::{
    By, CAN_BE_OBSERVED, Envelope, Event, Observer, Placed, Then, is_observed, region_begins,
    region_ends,
};
pub use ranks::{AtSync, Awaited, Counters, Encoded, Owned, RankState, Status, Wait, WindowPart};
pub(crate) use ranks::{Awaiting, Blocked, Obstacle};
use ready::ReadyQueue;
pub use receive::Body;
pub use receive::Probed;
pub use receive::UnexpectedPayload;
pub use report::waits;
pub use requests::{Completion, Request, RequestEnd, Room, Started};
pub(crate) use requests::{RESERVES, copy_short};
pub(crate) use reserve::Landed;
pub use run::{Outcome, run};
use send::Eager;
pub use send::{Mode, Outbound};
pub use shares::{count_look, when_asked};
pub use stall::{Holder, blocked_for_ever, pe_in_tokio, stall};
pub use timers::monotonic;

pub use vrt_slot::hooks::{current_rank, in_rank};

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::cycles;
use crate::net::local::{Events, Outgoing, none_for_each};
use crate::net::parcel;
use crate::net::remote::Remote;
use crate::net::rings::Receiver;
use crate::net::shared::Shared;
use vrt_slot::rank::{self, Program, Runtime};
use vrt_slot::{Arena, SlotHeader, SlotId, hooks, outside};

thread_local! {
    static PE: Cell<*mut Pe> = const { Cell::new(std::ptr::null_mut()) };
    /// The loop has called tokio.
    static OUTSIDE: Cell<bool> = const { Cell::new(false) };
    /// The loop runs.
    static RUNS: Cell<bool> = const { Cell::new(false) };
    /// What is known of the PE while its state is in use, and in a signal handler.
    static ABOUT: Cell<Option<About>> = const { Cell::new(None) };
    /// The rank that was resumed last.
    static RAN_LAST: Cell<u32> = const { Cell::new(u32::MAX) };
}

#[cfg(debug_assertions)]
thread_local! {
    /// The loop has the PE's state.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// What does not change of a PE.
#[derive(Clone, Copy)]
struct About {
    pool: *mut SlotHeader,
    id: u32,
}

/// A PE and its ends of the rings.
pub struct Pe {
    /// Everything but the receiving ends, so that handlers can use it while a ring is read.
    pub engine: Engine,
    /// By the PE that sends; those through which something was sent.
    consumers: Vec<Receiver>,
}

/// Everything of a PE but its receiving ends: its core, and what else works on it.
pub struct Engine {
    /// Ranks, messages and the loop; the engine derefs to it.
    pub core: Core,
    extensions: Extensions,
}

/// What is not about an extension is the core's.
impl Deref for Engine {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Engine {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

/// Ranks, messages and the loop: what a PE is without any extension.
pub struct Core {
    /// Number of this PE in the job.
    pub id: u32,
    /// Its number in the arena: unique among all PEs that share it, never 0.
    pub uid: u32,
    /// The control memory, as this PE's node sees it.
    pub shared: Shared,
    /// The sending ends to all PEs.
    pub net: Outgoing,
    /// The ranks that live here, by rank number.
    pub ranks: Vec<Option<Box<RankState>>>,
    pub(crate) ready: ReadyQueue,
    /// The rank that runs, or ran last.
    pub current: u32,
    /// The slot whose heap keeps payloads of unexpected messages.
    pub pool: *mut SlotHeader,
    pool_marks: flow::Pool,
    /// Sends that are done when packets have been taken once more.
    pub(crate) stalled: Vec<(u32, u32)>,
    /// What went to other nodes since packets were last taken, in bytes and a part for each message; not
    /// 0 while sends are stalled.
    sent_away: usize,
    /// What its ranks have used, for people.
    pub used: report::Usage,
    /// What the job's configuration says to this PE.
    pub(crate) options: Options,
    /// What of it concerns standard sends.
    eager: Eager,
    pub(crate) timers: timers::Timers,
    pub(crate) injected: Arc<inject::Injector>,
    observer: Option<Box<dyn Observer>>,
    /// Until when it has been told what the PE has done.
    observed_until: u64,
    locks: &'static dyn Locks,
    /// How many ranks wait for these.
    pub at_locks: AtLocks,
    /// When the PE began, by the cycle counter and the clock.
    began: (u64, std::time::Instant),
    /// Cycle counter at the last switch.
    stamp: u64,
    /// Cycles between two turns of tokio.
    tokio_period: u64,
    /// Cycles after which a rank has run for long.
    long_run: u64,
    /// Cycles of [`run::SLICE`].
    slice: u64,
    /// The next look at the rings is due when ranks were resumed so often.
    next_look: u32,
    /// Calls of the running rank that could have suspended it, and how many there may be of ranks that others wait behind.
    calls_ahead: u32,
    most_calls_ahead: u32,
    patience: patience::Patience,
    look_time: patience::LookTime,
    /// Cycles spent in ranks, with the switches to them.
    pub busy: u64,
    /// Cycles asleep or looking for work.
    pub idle: u64,
    /// Times that a rank has stopped running; the watchdog looks at it.
    pub switches: AtomicU64,
    /// The PE sleeps or looks for work now, which is booked as idle; who counts shares looks at it.
    pub idles: AtomicBool,
    /// Ranks resumed so far, and when tokio last had a turn.
    pub(crate) resumes: u32,
    /// Calls in a row that could have let others run, and did not, as there was nothing to run.
    pub(crate) calls_without_turn: u32,
    /// Times it has slept since something happened, where other nodes cannot wake it.
    back_offs: u32,
    /// When it is looked again what threads of ranks do, in nanoseconds.
    next_look_at_threads: u64,
    tokio_turn: u64,
    /// Ranks whose stacks have their guards in this process.
    guarded: Vec<bool>,
    /// What has come for ranks that are on their way here.
    coming: location::Coming,
    /// Packets that are to be taken once more.
    again: VecDeque<location::StrayPacket>,
    /// When extensions want to be called, by the cycle counter.
    due: u64,
    /// An extension has something that it sends when there is more of it, or nothing is ready.
    pub(crate) has_gathered: bool,
    /// The PE whose packets are being taken.
    pub(crate) receiving_from: u32,
    /// What every rank runs.
    pub program: Program,
    /// Parcels of which some pieces have come.
    pub(crate) parcels: parcel::Incoming,
    /// What the nodes of the job agree on.
    termination: termination::Termination,
    /// The status with which the rank that just suspended has exited.
    exiting: Option<i32>,
}

/// What a PE needs to know of its job's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Longest message that is sent before its receive is known; `None`: as it is best.
    pub eager: Option<usize>,
    /// Bytes that unexpected messages of a rank may take before their senders have to wait.
    pub unexpected: usize,
    /// The PE lives in a thread of a process that goes on without it.
    pub local: bool,
    /// There are more PEs than cores: an idle PE gives its core away.
    pub oversubscribed: bool,
    /// Memory means the same on all PEs, so that ranks can move with it.
    pub memory_moves: bool,
    /// Report what ranks leave behind in their heaps.
    pub check_leaks: bool,
    /// Search all memory of a rank at each move, and say what it refers to.
    pub check_moves: bool,
    /// Look for pointers into the PE's heap on the stacks of suspended ranks.
    pub check_stacks: bool,
}

/// What a PE is made from.
pub struct Setup {
    /// Number of the PE in the job.
    pub id: u32,
    /// Its number in the arena: unique among all PEs that share it, never 0.
    pub uid: u32,
    /// The control memory, as the PE's node sees it.
    pub shared: Shared,
    /// The event descriptors of the PE and of those that it wakes.
    pub events: Events,
    /// The way to PEs that share no memory with this one.
    pub remote: Option<Box<dyn Remote>>,
    /// What the job's configuration says to the PE.
    pub options: Options,
    /// What works on the PE beside its core.
    pub extensions: Extensions,
    /// Who is told what happens on the PE.
    pub observer: Option<Box<dyn Observer>>,
    /// Who knows of ranks that wait for locks.
    pub locks: &'static dyn Locks,
    /// Slot of the payload pool.
    pub pool: SlotId,
    /// The ranks that begin here, with their slots.
    pub ranks: Vec<(u32, SlotId)>,
}

impl Pe {
    /// Builds a PE, prepares its slots and makes the calling thread its rank thread.
    ///
    /// # Safety
    /// The slots are this PE's alone, and the thread is no PE's.
    pub unsafe fn new(setup: Setup, program: Program, arena: &Arena) -> Box<Pe> {
        let Setup { observer, extensions, locks, pool, ranks, .. } = setup;
        let Setup { id, uid, shared, events, remote, options, .. } = setup;
        let mut states: Vec<Option<Box<RankState>>> = none_for_each(shared.ranks());
        let mut ready = ReadyQueue::with_room(ranks.len());
        for (rank, slot) in ranks {
            let header = arena.header(slot);
            // SAFETY: the slot is ours, says the caller.
            unsafe {
                SlotHeader::prepare(header, slot, rank, uid);
                rank::Body::start(header, slot, program);
            }
            states[rank as usize] = Some(Box::new(RankState::new(header)));
            debug_assert_eq!(shared.location(rank), id);
            ready.push_back(rank);
        }
        let pool_header = arena.header(pool);
        // SAFETY: as above.
        unsafe { SlotHeader::prepare(pool_header, pool, u32::MAX, uid) };
        rank::set_runtime(Runtime {
            wake: wake_from_outside,
            exit: exit_current,
            signalled: inject::signalled,
        });
        let rate = report::cycles_per_second();
        let injected = inject::Injector::register(id, uid, shared, events.wake.clone());
        // Never reallocated: `stall` reads it in a signal handler.
        let consumers = Vec::with_capacity(shared.pes());
        let core = Core {
            id,
            uid,
            shared,
            // SAFETY: this is the PE's only one.
            net: unsafe { Outgoing::new(shared, id as usize, events, remote) },
            ranks: states,
            ready,
            current: u32::MAX,
            pool: pool_header,
            pool_marks: flow::Pool::default(),
            stalled: Vec::new(),
            sent_away: 0,
            used: report::Usage::default(),
            eager: Eager::new(options.eager, shared),
            options,
            timers: timers::Timers::default(),
            injected,
            observer,
            observed_until: 0,
            locks,
            at_locks: AtLocks::default(),
            began: (cycles::now(), std::time::Instant::now()),
            stamp: 0,
            tokio_period: (run::TOKIO_PERIOD.as_secs_f64() * rate) as u64,
            long_run: (run::LONG_RUN.as_secs_f64() * rate) as u64,
            slice: (run::SLICE.as_secs_f64() * rate) as u64,
            next_look: 0,
            calls_ahead: 0,
            most_calls_ahead: run::LEAST_CALLS_AHEAD,
            patience: patience::Patience::new(rate),
            look_time: patience::LookTime::new(rate),
            busy: 0,
            idle: 0,
            switches: AtomicU64::new(0),
            idles: AtomicBool::new(false),
            resumes: 0,
            calls_without_turn: 0,
            back_offs: 0,
            next_look_at_threads: 0,
            termination: termination::Termination::default(),
            tokio_turn: 0,
            guarded: vec![false; shared.ranks()],
            coming: location::Coming::default(),
            again: VecDeque::new(),
            due: cycles::now(),
            has_gathered: false,
            receiving_from: id,
            program,
            parcels: parcel::Incoming::default(),
            exiting: None,
        };
        Box::new(Pe { consumers, engine: Engine { core, extensions } })
    }

    /// Makes this the PE of the calling thread until the guard is dropped, and the PE with it.
    ///
    /// # Panics
    /// When the thread has a PE.
    pub fn enter(self: Box<Pe>) -> Entered {
        assert!(ABOUT.get().is_none(), "this thread runs ranks already");
        let about = About { pool: self.engine.pool, id: self.engine.id };
        hooks::set_pe_of_thread(self.engine.uid);
        self.engine.locks.begin();
        ABOUT.set(Some(about));
        RAN_LAST.set(self.engine.current);
        let pe = Box::into_raw(self);
        PE.set(pe);
        Entered(pe)
    }
}

impl Drop for Pe {
    fn drop(&mut self) {
        inject::Injector::unregister(self.engine.uid);
        self.engine.locks.end(self.engine.uid);
    }
}

/// While it lives, [`with`] works on this thread.
pub struct Entered(*mut Pe);

impl Drop for Entered {
    fn drop(&mut self) {
        PE.set(std::ptr::null_mut());
        ABOUT.set(None);
        hooks::set_pe_of_thread(0);
        // SAFETY: `enter` made the pointer of a box, and nobody finds it any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Runs `f` on the PE of the running rank, on the process's heap. `f` cannot suspend.
///
/// # Panics
/// When no rank runs on this thread, or inside another `with`.
#[inline(always)]
pub fn with<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    let result = enter(f);
    vrt_slot::check::wipe_below();
    result
}

/// Never inlined: pointers into the PE stay in its frame, which is gone when the rank suspends,
/// instead of in a forgotten corner of a frame that goes with the rank.
#[inline(never)]
fn enter<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    struct Leave(*mut SlotHeader);
    impl Drop for Leave {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: it was in use before, and its rank still runs.
            unsafe { hooks::use_heap(self.0) };
        }
    }
    // SAFETY: the process's heap.
    let slot = unsafe { hooks::use_heap(std::ptr::null_mut()) };
    if slot.is_null() {
        refuse_to_enter();
    }
    let _leave = Leave(slot);
    // SAFETY: a rank's heap was in use, so a rank runs on this thread and `PE` is its PE; while
    // `f` runs the process's heap is in use, so nobody enters a second time.
    f(unsafe { &mut *PE.get() })
}

/// [`with`] for the loop of the PE, which runs on the process's heap and outside of any rank; not inside itself.
///
/// # Panics
/// When the thread is no PE's.
#[inline(always)]
pub(crate) fn with_in_loop<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    debug_assert!(hooks::heap_in_use().is_null());
    let pe = PE.get();
    if pe.is_null() {
        refuse_to_enter();
    }
    #[cfg(debug_assertions)]
    let _inside = Inside::begin();
    // SAFETY: the pointer was set by `enter` on this thread and is cleared before the PE goes. No
    // rank runs, and the loop, which is of this crate, does not call this inside itself.
    f(unsafe { &mut *pe })
}

/// The loop has the PE's state while it lives.
#[cfg(debug_assertions)]
struct Inside;

#[cfg(debug_assertions)]
impl Inside {
    fn begin() -> Inside {
        assert!(!INSIDE.replace(true), "the PE's state is in use");
        Inside
    }
}

#[cfg(debug_assertions)]
impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Runs `f` on the PE of this thread while its loop does not run: before it, or after it.
///
/// # Panics
/// When the thread is no PE's, a rank or the loop runs on it, or inside itself.
pub fn while_stopped<R>(f: impl FnOnce(&mut Pe) -> R) -> R {
    struct GiveBack(*mut Pe);
    impl Drop for GiveBack {
        fn drop(&mut self) {
            PE.set(self.0);
        }
    }
    assert!(hooks::heap_in_use().is_null() && !RUNS.get(), "the PE of this thread is running");
    let pe = PE.replace(std::ptr::null_mut());
    if pe.is_null() {
        refuse_to_enter();
    }
    let _back = GiveBack(pe);
    // SAFETY: the pointer was set by `enter` on this thread and is cleared before the PE goes. Neither the loop
    // nor a rank runs, and whoever else asks for the PE finds none meanwhile.
    f(unsafe { &mut *pe })
}

/// Notes that the PE's loop runs, until it is dropped.
pub(super) struct Runs;

impl Runs {
    pub(super) fn begin() -> Runs {
        RUNS.set(true);
        Runs
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

#[cold]
fn refuse_to_enter() -> ! {
    if PE.get().is_null() {
        panic!(
            "a vrt operation was called on a thread that runs no ranks: use it in the program \
             given to `#[vrt::main]`, `launch` or `run_local`, on the rank's own thread"
        );
    }
    panic!("a vrt operation was called while no rank runs on this thread");
}

/// Runs `f`, the loop's call of something that may wake ranks of this PE: tokio.
pub fn outside<R>(f: impl FnOnce() -> R) -> R {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            OUTSIDE.set(false);
        }
    }
    OUTSIDE.set(true);
    let _back = Back;
    outside::within(f)
}

/// Wakes a rank of this thread's PE, if the PE's state can be used now.
pub(crate) fn try_wake(rank: u32) -> bool {
    if in_rank() {
        with(|pe| pe.engine.notify(rank, None));
    } else if OUTSIDE.get() {
        with_in_loop(|pe| pe.engine.notify(rank, None));
    } else {
        return false;
    }
    true
}

/// The running rank calls `exit`: it ends, or with another status than 0 the job. It is to suspend.
fn exit_current(status: i32) {
    with(|pe| pe.engine.exiting = Some(status));
}

/// Whether a slot can be used again: its rank has ended and left nothing.
pub fn slot_is_clean(slot: SlotId) -> bool {
    Arena::current().is_some_and(|arena| {
        let header = arena.header(slot);
        // SAFETY: headers stay mapped; the PE that used the slot has ended its run.
        unsafe {
            (*(*header).heap.get()).blocks == 0
                && (*header).wakers.load(std::sync::atomic::Ordering::Relaxed) == 0
        }
    })
}

/// The slot of the payload pool of this thread's PE, or null; works in the middle of anything.
pub fn pool_of_thread() -> *mut SlotHeader {
    ABOUT.get().map_or(std::ptr::null_mut(), |about| about.pool)
}

/// The rank and PE of this thread, for messages; works in the middle of anything.
pub fn whereabouts() -> Option<(u32, u32)> {
    ABOUT.get().map(|about| (RAN_LAST.get(), about.id))
}
