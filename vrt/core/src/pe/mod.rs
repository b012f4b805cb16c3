//! A PE: one thread that runs ranks.
//!
//! All state of a PE is plain single-threaded Rust, reached through [`with`], whose closure cannot
//! suspend: while it runs, the thread's heap is the process's, so a suspend or a second `with`
//! inside is caught. A closure returns numbers and `Copy` values; nothing of the PE's heap ever
//! lies on a rank's stack while the rank is suspended.
//!
//! | file | subject |
//! |---|---|
//! | `run` | the loop: ready ranks, progress, tokio's turns |
//! | `idle` | going to sleep, and detecting that all PEs do (deadlock) |
//! | `patience` | how long it polls before that |
//! | `contexts` | a rank's operations on its communicators |
//! | `ranks` | a rank's state in the PE, waking it |
//! | `requests` | incomplete operations, their memory, and their outcomes |
//! | `ready` | the queue of ready ranks |
//! | `send`, `receive` | messages: the engine's half of point-to-point |
//! | `sharing` | long copies between PEs, in which both take part |
//! | `withdraw` | withdrawing a send that waits for its receive |
//! | `reserve` | receives that get their memory late, requests that are no longer awaited |
//! | `termination` | how many ranks are left, and deadlock, if nodes share no memory |
//! | `flow` | limits the memory of unexpected messages |
//! | `extension` | extensions of a PE: migration, collective operations, windows, balancing |
//! | `location` | packets for ranks that are not here |
//! | `abandon` | ranks that have not ended when a local run does |
//! | `stall` | which rank keeps the thread, and which wait for it |
//! | `timers` | `vrt`'s own timers |
//! | `locks` | ranks that wait for locks of their process |
//! | `inject` | waking a rank from another thread |
//! | `observe` | reports events to an observer: the basis of traces |
//! | `report` | reports what ranks wait for, and what the PE has done |
//! | `shares` | the runtime's share of its time |
//! | `answer` | the same for an observer of the running job |

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
    /// Everything except the receiving ends, so that handlers can use it while a ring is read.
    pub engine: Engine,
    /// By sending PE; only those that have sent something.
    consumers: Vec<Receiver>,
}

/// Everything of a PE except its receiving ends: its core, and its extensions.
pub struct Engine {
    /// Ranks, messages and the loop; the engine derefs to it.
    pub core: Core,
    extensions: Extensions,
}

/// Whatever does not concern an extension belongs to the core.
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

/// Ranks, messages and the loop: a PE without extensions.
pub struct Core {
    /// Number of this PE in the job.
    pub id: u32,
    /// Its number in the arena: unique among all PEs that share it, never 0.
    pub uid: u32,
    /// The control memory, for this PE's node.
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
    /// What was sent to other nodes since packets were last processed, in bytes plus a constant per message; not 0
    /// while sends are stalled.
    sent_away: usize,
    /// What its ranks have used, for reports.
    pub used: report::Usage,
    /// What the job's configuration says to this PE.
    pub(crate) options: Options,
    /// The part that concerns standard sends.
    eager: Eager,
    pub(crate) timers: timers::Timers,
    pub(crate) injected: Arc<inject::Injector>,
    observer: Option<Box<dyn Observer>>,
    /// Until when the observer has been told what the PE has done.
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
    /// Cycles after which a rank counts as running for long.
    long_run: u64,
    /// Cycles of [`run::SLICE`].
    slice: u64,
    /// The number of resumed ranks after which the rings are polled next.
    next_look: u32,
    /// Calls of the running rank that could have suspended it, and the limit if other ranks wait.
    calls_ahead: u32,
    most_calls_ahead: u32,
    patience: patience::Patience,
    look_time: patience::LookTime,
    /// Cycles spent in ranks, including the switches to them.
    pub busy: u64,
    /// Cycles asleep or polling.
    pub idle: u64,
    /// How often a rank has stopped running; read by the watchdog.
    pub switches: AtomicU64,
    /// The PE sleeps or polls now, which counts as idle; read by the thread that samples shares.
    pub idles: AtomicBool,
    /// Ranks resumed so far, and when tokio last had a turn.
    pub(crate) resumes: u32,
    /// Calls in a row that could have let others run, and did not, as there was nothing to run.
    pub(crate) calls_without_turn: u32,
    /// How often it has slept since something happened, if other nodes cannot wake it.
    back_offs: u32,
    /// When the state of ranks' threads is checked next, in nanoseconds.
    next_look_at_threads: u64,
    tokio_turn: u64,
    /// Ranks whose stacks have their guards in this process.
    guarded: Vec<bool>,
    /// Packets for ranks that are moving here.
    coming: location::Coming,
    /// Packets that must be processed again.
    again: VecDeque<location::StrayPacket>,
    /// When extensions want to be called, by the cycle counter.
    due: u64,
    /// An extension has something that it sends when there is more of it, or nothing is ready.
    pub(crate) has_gathered: bool,
    /// The PE whose packets are being taken.
    pub(crate) receiving_from: u32,
    /// The program of every rank.
    pub program: Program,
    /// Parcels of which some pieces have come.
    pub(crate) parcels: parcel::Incoming,
    /// What the nodes of the job agree on.
    termination: termination::Termination,
    /// The exit status of the rank that just suspended.
    exiting: Option<i32>,
}

/// The part of the job's configuration that a PE needs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The longest message that is sent before its receive is known; `None`: chosen automatically.
    pub eager: Option<usize>,
    /// Bytes that unexpected messages of a rank may take before their senders have to wait.
    pub unexpected: usize,
    /// The PE lives in a thread of a process that continues without it.
    pub local: bool,
    /// There are more PEs than cores: an idle PE yields its core.
    pub oversubscribed: bool,
    /// Memory means the same on all PEs, so that ranks can move with it.
    pub memory_moves: bool,
    /// Report what ranks leave behind in their heaps.
    pub check_leaks: bool,
    /// Search all memory of a rank at each move, and report what it refers to.
    pub check_moves: bool,
    /// Search the stacks of suspended ranks for pointers into the PE's heap.
    pub check_stacks: bool,
}

/// The arguments for creating a PE.
pub struct Setup {
    /// Number of the PE in the job.
    pub id: u32,
    /// Its number in the arena: unique among all PEs that share it, never 0.
    pub uid: u32,
    /// The control memory, for the PE's node.
    pub shared: Shared,
    /// The event descriptors of the PE and of those that it wakes.
    pub events: Events,
    /// The transport to PEs that share no memory with this one.
    pub remote: Option<Box<dyn Remote>>,
    /// The part of the job's configuration that concerns the PE.
    pub options: Options,
    /// The PE's extensions.
    pub extensions: Extensions,
    /// The observer of events on the PE.
    pub observer: Option<Box<dyn Observer>>,
    /// The registry of ranks that wait for locks.
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
    /// The slots belong to this PE alone, and the thread belongs to no PE.
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
    /// If the thread has a PE.
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
/// If no rank runs on this thread, or inside another `with`.
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
/// If the thread has no PE, a rank or the loop runs on it, or inside itself.
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

/// Whether a slot can be reused: its rank has ended and left nothing.
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

/// The slot of the payload pool of this thread's PE, or null; may be called at any point.
pub fn pool_of_thread() -> *mut SlotHeader {
    ABOUT.get().map_or(std::ptr::null_mut(), |about| about.pool)
}

/// The rank and PE of this thread, for messages; may be called at any point.
pub fn whereabouts() -> Option<(u32, u32)> {
    ABOUT.get().map(|about| (RAN_LAST.get(), about.id))
}
