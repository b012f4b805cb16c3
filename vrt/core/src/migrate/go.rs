//! Has ranks leave a PE, and takes in those that come.

use std::time::Instant;

use crate::migrate::at_sync::end_at_sync;
use crate::migrate::by_state::move_by_state;
use crate::migrate::migration::{Migration, Stays};
use crate::migrate::ship;
use crate::migrate::state::{MovingRank, dispatch};
use crate::net::Kind;
use crate::net::parcel::{Parcel, Topic};
use crate::pe::{By, Core, Engine, Event, Extension, Handlers, Status};
use vrt_slot::external::carried;
use vrt_slot::{Arena, HUGE_PAGE, SlotHeader, hooks, live, report, search};

/// Bytes that a rank has to own for its memory to be mapped at once when it comes.
const WORTH_WARMING: usize = 1 << 20;
/// A heap as large has few small pages where there are large ones.
const LARGE_HEAP: usize = 4 * HUGE_PAGE;
/// Ranges shorter than this are left to faults.
const PIECE: usize = 64 << 10;

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
    // SAFETY: G1.
    let descriptors = carried::send(unsafe { &*state.slot }, to).map_err(Stays::Pinned)?;
    let Some(state) = core.ranks[rank as usize].take() else { return Err(Stays::NotHere) };
    if core.shared.nodes() > 1 {
        // The rank may leave the node from there, and its memory with it.
        // SAFETY: G2: what a suspended rank sends stays until it goes on.
        unsafe { core.net.keep_data_of(rank) };
    }
    let timers = core.timers.take_of(rank);
    let slot = state.slot;
    let mut moving = MovingRank::pack(rank, state, timers);
    moving.has_descriptors = descriptors;
    // SAFETY: G1: from here on nobody touches it until `adopt` takes it.
    unsafe { hooks::own(slot, 0) };
    tracing::trace!(rank, to, "handed over");
    dispatch(core, rank, to, &mut moving);
    Ok(0)
}

/// Takes a rank in that another PE has sent.
fn adopt(engine: &mut Engine, parcel: &Parcel) {
    let from = parcel.from;
    let mut moving: MovingRank = parcel.read();
    let (begins, has_descriptors) = (moving.begins, moving.has_descriptors);
    let (migration, core) = engine.part::<Migration>();
    if moving.state.arrive() {
        migration.came += 1;
        core.call_soon();
    }
    let beside = migration.states.remove(&moving.rank);
    // SAFETY: the pool of a PE is its own.
    unsafe { moving.attach(core, beside) };
    let MovingRank { rank, state, timers, .. } = moving;
    // SAFETY: G1: the parcel makes this PE the owner of the slot, which is empty if the rank's program is to begin in it.
    unsafe {
        if begins && let Some(arena) = Arena::current() {
            let id = arena.slot_at(state.slot as usize);
            SlotHeader::prepare(state.slot, id, rank, core.uid);
            vrt_slot::rank::Body::start(state.slot, id, core.program);
        }
        hooks::own(state.slot, core.uid);
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
    core.ranks[rank as usize] = Some(state);
    if !near {
        core.has_arrived(rank);
    }
    core.mind_unexpected(rank);
    core.take_what_came_for(rank);
    core.book_taking_in();
}

impl Migration {
    /// Maps the memory of a rank that has come, at once: a fault for each page of 4 KiB that it
    /// touches would take three times as long. Large pages, which large heaps have, cause few faults,
    /// and a rank that was here before finds its memory mapped.
    ///
    /// # Safety
    /// The slot is this PE's and its rank suspended.
    unsafe fn warm_up(&mut self, slot: *mut SlotHeader) {
        // SAFETY: this PE's slot, says the caller, whose heap nobody else uses.
        let (rank, heap) = unsafe { ((*slot).rank.get(), &*(*slot).heap.get()) };
        let (bytes, end) = (heap.bytes, heap.used()[1].end);
        let has_small_pages = bytes < LARGE_HEAP || !vrt_slot::has_huge_pages();
        let is_worth_it = bytes >= WORTH_WARMING && has_small_pages;
        if !is_worth_it || self.warm.insert(rank, end) == Some(end) {
            return;
        }
        let began = Instant::now();
        // SAFETY: the rank is suspended, says the caller; `MADV_POPULATE_READ` maps what is there and changes nothing.
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
