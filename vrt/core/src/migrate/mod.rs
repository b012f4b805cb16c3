//! Moves ranks from PE to PE.
//!
//! Inside a node a rank is *handed over*: its slot, which every PE of the node has mapped at the same address, gets
//! another owner, and what its PE keeps about it (`state`) is sent as a parcel. No byte of the rank's own memory is
//! copied. Any rank can move that is suspended and not pinned. Its open descriptors may move along ([`carried`]).
//!
//! ```text
//! PE A (has the rank)                     PE B                         anybody
//!   take the rank's state out
//!   slot.owner = nobody
//!   location[rank] = B  ------------------------------------------->   messages go to B now
//!   parcel(state) ----------------------> not there yet: hold what comes for it
//!                                         slot.owner = B
//!                                         state in; take what was held, in order
//!   passes on what still comes for it --> (A's ring: after the parcel)
//! ```
//!
//! Between nodes it is *shipped*, including its memory: see `ship`.
//!
//! Invariants: a rank's state is on exactly one PE or in exactly one parcel. `location[rank]` names the PE of the node
//! that has it or to which the parcel is in flight; only the rank's PE changes it. So anything that reaches a PE for a
//! rank that it does not have is either held there (the location is this PE) or passed on (it names another), and is
//! never lost; the sequence numbers of messages between two ranks keep their order whichever way each took.

mod at_sync;
mod obstacles;
mod options;
mod ship;
mod state;

use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::net::Kind;
use crate::net::parcel::{self, Parcel, Topic};
use crate::net::shared::HELD;
use crate::pe::{By, Core, Engine, Event, Extension, Handlers, Status, Told};
use at_sync::{AtSyncRanks, move_by_state};
pub use at_sync::{KeptState, end_at_sync};
pub use obstacles::Pin;
use obstacles::Reasons;
pub use options::MoveBy;
pub use options::Rules;
use ship::LeftBehind;
use state::MovingRank;
use vrt_slot::external::carried;
use vrt_slot::search::{self, Search};
use vrt_slot::{Arena, HUGE_PAGE, SlotHeader, live, report};

/// The part of a PE that moves ranks.
#[derive(Default)]
pub struct Migration {
    /// How and when ranks of this job move.
    pub rules: Rules,
    /// Which ranks of the PE want to be moved.
    pub at_sync: AtSyncRanks,
    /// The cost of moving ranks here since the PE began.
    pub costs: Costs,
    /// Ranks that a balancing step with a period has moved here and that have not been reported.
    pub came: u32,
    /// The search for references of the PE's ranks and statics.
    search: Search,
    reasons: Reasons,
    /// What ranks that were shipped away have left behind.
    left_behind: LeftBehind,
    /// The encoded states that are arriving from other nodes, each in its block of the pool, by rank.
    states: FxHashMap<u32, *mut u8>,
    /// Ranks that have been here before, and the size of their heaps then.
    warm: FxHashMap<u32, usize>,
}

/// The cost of moving ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// Ranks packed here, and seconds for that, whatever their size.
    pub ranks: u64,
    /// Seconds for packing those.
    pub packing: f64,
    /// Bytes that were copied or encoded here for moves.
    pub bytes: u64,
    /// Seconds for copying and encoding those.
    pub copying: f64,
}

impl Costs {
    /// Bytes were copied or encoded for a move.
    pub fn copied(&mut self, bytes: u64, seconds: f64) {
        self.bytes += bytes;
        self.copying += seconds;
    }
}

impl Extension for Migration {
    const INDEX: usize = 0;
    const HANDLERS: Handlers = Handlers {
        packets: &[(Kind::Memory, ship::memory_came)],
        parcels: &[(Topic::Rank, adopt)],
        memory_gone: Some(ship::memory_gone),
        due: Some(let_go),
        ..Handlers::NONE
    };
}

/// Why a rank stays on its PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It has ended, or is not on this PE any more.
    NotHere,
    /// It is running.
    Running,
    /// Another PE of the node is using its memory, or a message is being copied into or out of it.
    InUse,
    /// It holds something that cannot move.
    Pinned(&'static str),
}

/// Bytes that a rank has to own for its memory to be mapped at once when it comes.
const WORTH_WARMING: usize = 1 << 20;
/// A heap as large has few small pages where there are large ones.
const LARGE_HEAP: usize = 4 * HUGE_PAGE;
/// Ranges shorter than this are left to faults.
const PIECE: usize = 64 << 10;

/// Lets the ranks go that want to.
fn let_go(engine: &mut Engine) {
    for (rank, to) in std::mem::take(&mut engine.extension::<Migration>().at_sync.pending_moves) {
        let began = Instant::now();
        match go(engine, rank, to) {
            Ok(bytes) => {
                engine.extension::<Migration>().at_sync.went_by_itself(bytes, began.elapsed());
            }
            Err(why) => {
                if let (Stays::Pinned(why), Some(state)) = (why, engine.rank(rank)) {
                    state.refused = Some(why);
                }
                end_at_sync(engine, rank);
            }
        }
    }
}

/// Moves a rank to another PE according to the job's configuration; returns the bytes transferred.
pub fn go(engine: &mut Engine, rank: u32, to: u32) -> Result<u64, Stays> {
    let gone = try_to_go(engine, rank, to);
    if gone.is_ok() {
        engine.send_gathered();
    }
    if engine.has_observer() {
        let by_state = engine.extension::<Migration>().rules.by_state;
        let is_near = engine.shared.is_near(to);
        match gone {
            Ok(bytes) => {
                let by = if by_state { By::State } else { By::within(is_near) };
                engine.observe(Event::Leaves { rank, to, bytes, by });
            }
            Err(Stays::Pinned(why)) => engine.observe(Event::Stays { rank, why }),
            Err(_) => {}
        }
    }
    gone
}

fn try_to_go(engine: &mut Engine, rank: u32, to: u32) -> Result<u64, Stays> {
    let began = Instant::now();
    let (migration, core) = engine.part::<Migration>();
    let (by_state, memory_moves) = (migration.rules.by_state, core.options.memory_moves);
    if by_state || memory_moves {
        migration.may_go(core, rank, to)?;
    }
    let bytes = if by_state {
        move_by_state(engine, rank, to)?
    } else if !memory_moves {
        return Err(Stays::Pinned("ranks of this job can only move by their state"));
    } else {
        end_at_sync(core, rank);
        if core.shared.is_near(to) {
            hand_over(core, rank, to)?
        } else {
            migration.ship(core, rank, to)?
        }
    };
    let Migration { at_sync, costs, .. } = engine.extension::<Migration>();
    at_sync.one_less();
    costs.ranks += 1;
    costs.packing += began.elapsed().as_secs_f64();
    Ok(bytes)
}

/// Gives a suspended rank that [`may_go`](Migration::may_go) to another PE of the node; returns the
/// bytes that have to be copied.
fn hand_over(core: &mut Core, rank: u32, to: u32) -> Result<u64, Stays> {
    debug_assert_ne!(to, core.id);
    let Some(state) = core.ranks[rank as usize].as_deref() else { return Err(Stays::NotHere) };
    // SAFETY: the slot of a suspended rank of this PE.
    let descriptors = carried::send(unsafe { &*state.slot }, to).map_err(Stays::Pinned)?;
    let Some(state) = core.ranks[rank as usize].take() else { return Err(Stays::NotHere) };
    if core.shared.nodes() > 1 {
        // The rank may leave the node from there, and its memory with it.
        // SAFETY: the rank is this PE's and suspended, so what it sends stays until then.
        unsafe { core.net.keep_data_of(rank) };
    }
    let timers = core.timers.take_of(rank);
    let slot = state.slot;
    let mut moving = MovingRank::pack(rank, *state, timers);
    moving.has_descriptors = descriptors;
    // SAFETY: the slot is this PE's until here; nobody touches it until `adopt` takes it.
    unsafe { (*slot).owner.store(0, Ordering::Release) };
    tracing::trace!(rank, to, "handed over");
    dispatch(core, rank, to, &mut moving);
    Ok(0)
}

/// Sends what a PE has kept of a rank to another one, which has it from now on.
fn dispatch(core: &mut Core, rank: u32, to: u32, moving: &mut MovingRank) {
    if moving.held && !core.shared.is_near(to) {
        // From now on this is one of the nodes that were told.
        moving.told.push(Told { by: core.id, pe: core.id, since: 0 });
    }
    let held = if moving.held { HELD } else { 0 };
    core.shared.set_location(rank, to | held, moving.moves);
    parcel::send(&mut core.net, core.id, to, Topic::Rank, moving);
}

/// Takes a rank in that another PE has sent.
fn adopt(engine: &mut Engine, parcel: &Parcel) {
    let from = parcel.from;
    let mut moving: MovingRank = parcel.read();
    let (begins, has_descriptors) = (moving.begins, moving.has_descriptors);
    let (migration, core) = engine.part::<Migration>();
    if moving.in_step {
        migration.came += 1;
        core.call_soon();
    }
    let beside = migration.states.remove(&moving.rank());
    // SAFETY: the pool is this PE's.
    unsafe { moving.attach(core, beside) };
    let (rank, state, timers) = moving.unpack();
    // SAFETY: the parcel makes this PE the owner of the slot, which is empty if the rank's
    // program is to begin in it.
    unsafe {
        if begins && let Some(arena) = Arena::current() {
            let id = arena.slot_at(state.slot as usize);
            SlotHeader::prepare(state.slot, id, rank, core.uid);
            vrt_slot::rank::Body::start(state.slot, id, core.program);
        }
        (*state.slot).owner.store(core.uid, Ordering::Release);
        if has_descriptors && let Err(why) = carried::receive(&*state.slot) {
            report::say(format_args!(
                "rank {rank} has come to PE {} without its descriptors: {why}; ending the job",
                core.id
            ));
            report::end_job(report::STATUS_RUNTIME);
        }
        search::has_come(state.slot, core.id, core.shared.pes());
        if !begins {
            migration.warm_up(state.slot);
        }
    }
    if core.has_observer() {
        core.observe(Event::Comes { rank, from });
    }
    tracing::trace!(rank, from, begins, "has come");
    let near = core.shared.is_near(from);
    if near {
        core.timers.put(rank, &timers);
    } else {
        core.timers.put_relative(rank, &timers);
    }
    if state.status == Status::Ready {
        core.ready.push_back(rank);
    }
    core.ranks[rank as usize] = Some(Box::new(state));
    if !near {
        core.has_arrived(rank);
    }
    core.mind_unexpected(rank);
    core.take_what_came_for(rank);
    core.book_taking_in();
}

impl Migration {
    /// The part of a PE that has not moved a rank yet.
    pub fn new(rules: Rules) -> Migration {
        Migration { rules, ..Migration::default() }
    }

    /// Maps the memory of a rank that has come, at once: a fault for each page of 4 KiB that it
    /// touches would take three times as long. Large pages, which large heaps have, cause few faults,
    /// and a rank that was here before finds its memory mapped.
    ///
    /// # Safety
    /// The slot is this PE's and its rank suspended.
    unsafe fn warm_up(&mut self, slot: *mut SlotHeader) {
        // SAFETY: as the caller promises.
        let bytes = unsafe { (*(*slot).heap.get()).bytes };
        // SAFETY: as the caller promises.
        let (rank, end) = unsafe { ((*slot).rank.get(), (*(*slot).heap.get()).used()[1].end) };
        let has_small_pages = bytes < LARGE_HEAP || !vrt_slot::has_huge_pages();
        let is_worth_it = bytes >= WORTH_WARMING && has_small_pages;
        if !is_worth_it || self.warm.insert(rank, end) == Some(end) {
            return;
        }
        let began = Instant::now();
        // SAFETY: as the caller promises; the call maps what is there and changes nothing.
        unsafe {
            for (start, len) in live::ranges(slot).into_iter().filter(|(_, len)| *len > PIECE) {
                let first = start.next_multiple_of(PIECE);
                let len = (start + len) / PIECE * PIECE - first;
                libc::madvise(first as *mut libc::c_void, len, libc::MADV_POPULATE_READ);
            }
        }
        self.costs.copied(bytes as u64, began.elapsed().as_secs_f64());
    }
}

/// The address of a slot's header, for `state`.
pub fn slot_at(address: usize) -> *mut SlotHeader {
    address as *mut SlotHeader
}
