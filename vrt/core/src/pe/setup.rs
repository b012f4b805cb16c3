//! Making a PE.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::cycles;
use crate::net::local::{Events, Outgoing, none_for_each};
use crate::net::parcel;
use crate::net::receivers::Receivers;
use crate::net::remote::Remote;
use crate::net::shared::Shared;
use crate::pe::core::{Core, Engine, Extensions, Options};
use crate::pe::events::Observer;
use crate::pe::idle::{LookTime, Patience};
use crate::pe::inject::{self, Injector};
use crate::pe::locks::{AtLocks, Locks};
use crate::pe::outbound::Eager;
use crate::pe::rank_state::RankState;
use crate::pe::ready::ReadyQueue;
use crate::pe::run;
use crate::pe::stray::Coming;
use crate::pe::thread::{Pe, with};
use crate::pe::timers::Timers;
use crate::pe::unexpected::Pool;
use crate::pe::usage::Usage;
use crate::pe::wake::wake_from_outside;
use crate::pe::waves::Termination;
use vrt_slot::rank::{self, Program, Runtime};
use vrt_slot::{Arena, SlotHeader, SlotId};

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
            debug_assert_eq!(shared.location(rank).pe(), Some(id));
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
        let rate = cycles::cycles_per_second();
        let injected = Injector::register(id, uid, shared, events.wake.clone());
        let receivers = Receivers::new(&shared.pe(id as usize).doorbell, shared.pes());
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
            pool_marks: Pool::default(),
            stalled: Vec::new(),
            sent_away: 0,
            used: Usage::default(),
            eager: Eager::new(options.eager, shared),
            options,
            timers: Timers::default(),
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
            patience: Patience::new(rate),
            look_time: LookTime::new(rate),
            busy: 0,
            idle: 0,
            switches: AtomicU64::new(0),
            idles: AtomicBool::new(false),
            resumes: 0,
            calls_without_turn: 0,
            back_offs: 0,
            next_look_at_threads: 0,
            termination: Termination::default(),
            tokio_turn: 0,
            wait_for_outside: rank::wait_for_outside(uid),
            guarded: vec![false; shared.ranks()],
            coming: Coming::default(),
            again: VecDeque::new(),
            due: cycles::now(),
            has_gathered: false,
            receiving_from: id,
            received: 0,
            program,
            parcels: parcel::Incoming::default(),
            exiting: None,
        };
        Box::new(Pe { receivers, engine: Engine { core, extensions } })
    }
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
        unsafe { (*(*header).heap.get()).blocks == 0 && !rank::has_wakers(&*header) }
    })
}
