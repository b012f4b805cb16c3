//! Ranks that move from PE to PE.
//!
//! Inside a node a rank is *handed over*: its slot, which every PE of the node has mapped at the
//! same address, gets another owner, and what its PE keeps of it ([`state`]) travels as a parcel.
//! No byte of the rank's own memory is copied. Any rank can go that is suspended and not pinned.
//!
//! ```text
//! PE A (has the rank)                     PE B                         anybody
//!   take the rank's state out
//!   slot.owner = nobody
//!   place[rank] = B     ------------------------------------------->   messages go to B now
//!   parcel(state) ----------------------> not there yet: hold what comes for it
//!                                         slot.owner = B
//!                                         state in; take what was held, in order
//!   passes on what still comes for it --> (A's ring: after the parcel)
//! ```
//!
//! Between nodes it is *shipped*, memory and all: see [`ship`].
//!
//! Invariants: a rank's state is on exactly one PE or in exactly one parcel. `place[rank]`
//! names the PE of the node that has it or that the parcel is under way to; only the PE that has
//! the rank changes it. So what reaches a PE for a rank that it does not have is either held there
//! (the place names this PE) or passed on (it names another), and is never lost; the numbers of
//! messages between two ranks keep their order whatever way each came.

pub(crate) mod address;
pub(crate) mod offer;
mod options;
pub(crate) mod ship;
mod state;

use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;

use crate::net::parcel::{self, Parcel, Topic};
use crate::net::shared::HELD;
use crate::net::{Kind, Packet};
use crate::pe::{
    Awaiting, Body, Completion, Encoded, Engine, Offer, Parked, RankState, Request, Started,
    Status, Told, Wait,
};
pub use options::MoveBy;
pub(crate) use ship::{LeftBehind, SHIPPED};
use state::MovingRank;
use vrt_slot::external::{counted, spans};
use vrt_slot::search::{self, Journey, Reference};
use vrt_slot::{Arena, HUGE_PAGE, SlotHeader, SlotId, allocator, hooks, live};

/// Why a rank stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stays {
    /// It has ended, or is not on this PE any more.
    NotHere,
    /// It runs now.
    Running,
    /// Another PE of the node uses its memory at this moment, or a message comes into it or goes
    /// out of it.
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

/// What a PE knows of ranks that are coming: what has come for them before they did, and which of
/// them have been here.
#[derive(Debug, Default)]
pub(crate) struct Held {
    items: FxHashMap<u32, Vec<Item>>,
    /// Ranks that have been here before, and how far their heaps went then.
    warm: FxHashMap<u32, usize>,
}

#[derive(Debug)]
enum Item {
    Message(Packet, Parked),
    /// An answer or a part of a message, with the bytes beside it.
    Other(Packet, Vec<u8>),
}

/// Where a rank that is not here is.
enum Whereabouts {
    Ended,
    ComingHere,
    On(usize),
}

impl Engine {
    /// Gives a suspended rank that [`may_go`](Self::may_go) to another PE of the node; returns the
    /// bytes that have to be copied.
    pub(crate) fn hand_over(&mut self, rank: u32, to: u32) -> Result<u64, Stays> {
        debug_assert_ne!(to, self.id);
        let Some(state) = self.ranks[rank as usize].take() else { return Err(Stays::NotHere) };
        if self.shared.nodes() > 1 {
            // The rank may leave the node from there, and its memory with it.
            // SAFETY: the rank is this PE's and suspended, so what it sends stays until then.
            unsafe { self.net.keep_data_of(rank) };
        }
        let timers = self.timers.take_of(rank);
        let slot = state.slot;
        let mut moving = MovingRank::pack(rank, *state, timers);
        // SAFETY: the slot is this PE's until here; nobody touches it until `adopt` takes it.
        unsafe { (*slot).owner.store(0, Ordering::Release) };
        tracing::trace!(rank, to, "handed over");
        self.dispatch(rank, to, &mut moving);
        Ok(0)
    }

    fn dispatch(&mut self, rank: u32, to: u32, moving: &mut MovingRank) {
        if moving.held && !self.shared.is_near(to) {
            // From now on this is one of the nodes that were told.
            moving.told.push(Told { by: self.id, pe: self.id, since: 0 });
        }
        let bytes = match crate::encoding::encode(moving) {
            Ok(bytes) => bytes,
            Err(error) => unreachable!("plain numbers and bytes can be encoded: {error}"),
        };
        let held = if moving.held { HELD } else { 0 };
        self.shared.settle(rank, to | held, moving.moves);
        parcel::send(&mut self.net, self.id, to, Topic::Rank, &bytes);
    }

    /// Moves a rank that waits in `migrate` by its encoded state: drops its stack and heap whole,
    /// and has its program begin again on another PE. Returns the bytes of the state.
    pub(crate) fn move_by_state(&mut self, rank: u32, to: u32) -> Result<u64, Stays> {
        debug_assert_ne!(to, self.id);
        let Some(state) = self.rank(rank) else { return Err(Stays::NotHere) };
        let Some(offer) = state.offer else { return Err(Stays::NotHere) };
        let open = state.requests.iter().filter(|request| request.in_use).count();
        if open > 1 || state.matched.iter().any(Option::is_some) {
            return Err(Stays::Pinned("it has open requests besides `migrate`"));
        }
        let far = !self.shared.is_near(to);
        // In this node the state waits in a pool; to another one it goes from where it is.
        let at = if far { offer.at as *mut u8 } else { self.keep_in_pool(offer)? };
        if far && !self.shared.send_away(rank) {
            return Err(Stays::InUse);
        }
        let Some(mut state) = self.ranks[rank as usize].take() else { return Err(Stays::NotHere) };
        // Its handles go with its heap, without being dropped one by one.
        self.leave_groups(rank, &mut state);
        state.drop_restored();
        state.restored = Some(Encoded { at, len: offer.len });
        state.state_len = offer.len;
        state.status = Status::Ready;
        state.awaiting = Awaiting::Nothing;
        state.awaited = std::ptr::null();
        state.wait = Wait::default();
        state.requests = Vec::new();
        state.free_requests = Vec::new();
        state.detached = Vec::new();
        let slot = state.slot;
        // SAFETY: the slot is this PE's, its rank is suspended and will not be resumed, and
        // `may_move` saw that nobody outside waits to wake it. What it has sent is still there.
        // The pages stay: in this node they serve the rank's next life.
        unsafe {
            self.net.keep_data_of(rank);
            vrt_slot::rank::Body::abandon(slot);
            hooks::own(slot, 0);
        }
        let timers = if far { self.timers.take_relative(rank) } else { self.timers.take_of(rank) };
        let mut moving = MovingRank::pack(rank, *state, timers);
        moving.begins = true;
        if far {
            self.announce(rank, to, moving.moves);
            let state = Encoded { at, len: offer.len };
            // SAFETY: the rank was this PE's.
            unsafe { moving.detach_with(state) };
            self.send_memory(rank, to, &ship::lines(at as usize, offer.len));
        }
        tracing::trace!(rank, to, bytes = offer.len, "moves by its state");
        self.dispatch(rank, to, &mut moving);
        Ok(offer.len as u64)
    }

    /// Copies the encoded state of a rank into the pool.
    fn keep_in_pool(&mut self, offer: Offer) -> Result<*mut u8, Stays> {
        // SAFETY: the pool is this PE's. The encoded state lies in the slot of the rank, which
        // waits; the copy is as long.
        unsafe {
            let at = hooks::allocate_in(self.pool, offer.len);
            if at.is_null() {
                return Err(Stays::Pinned("there is no room for its encoded state"));
            }
            std::ptr::copy_nonoverlapping(offer.at as *const u8, at, offer.len);
            Ok(at)
        }
    }

    /// How the running rank would move if it offered itself now; `None`: not at all.
    pub(crate) fn would_move(&mut self) -> Option<MoveBy> {
        let move_by = self.balancer.move_by()?;
        let called = !self.balancer.is_periodic() || self.running().ordered.is_some();
        (called || move_by == MoveBy::InPlace).then_some(move_by)
    }

    /// The running rank wants to go to another PE. Its encoded state, if it moves that way, lies at
    /// an address in its slot.
    pub(crate) fn leave_for(&mut self, to: u32, at: usize, len: usize) -> Started {
        let state = self.running();
        let request = state.new_request(Request::send());
        state.offer = Some(Offer { request, at, len });
        self.balancer.goes(self.current, to);
        Started::pending(request)
    }

    /// The running rank offers itself to be moved. By its state it moves in a second step: it is
    /// told where to go ([`order`](Self::order)), encodes its state, and leaves.
    pub(crate) fn offer(&mut self) -> Started {
        if self.balancer.is_periodic() {
            return Started::Done(Completion::default());
        }
        let state = self.running();
        let request = state.new_request(Request::send());
        state.offer = Some(Offer { request, at: 0, len: 0 });
        state.offers = state.offers.wrapping_add(1);
        let round = state.offers;
        self.balancer.offered(self.current, round);
        Started::pending(request)
    }

    /// Tells a rank to go to another PE by its state when it is in `migrate`.
    pub(crate) fn order(&mut self, rank: u32, to: u32) -> Result<(), Stays> {
        self.may_go(rank, to)?;
        self.rank(rank).ok_or(Stays::NotHere)?.ordered = Some(to);
        Ok(())
    }

    /// A rank that offered itself stays, or goes as it is: it goes on.
    pub(crate) fn end_offer(&mut self, rank: u32) {
        let offer = self.rank(rank).and_then(|state| state.offer.take());
        if let Some(offer) = offer {
            self.complete(rank, offer.request);
        }
    }

    /// Whether a rank can be moved now, so far as can be told without a search of its memory.
    pub(crate) fn may_move(&self, rank: u32) -> Result<(), Stays> {
        match self.ranks.get(rank as usize).and_then(Option::as_deref) {
            None => Err(Stays::NotHere),
            Some(state) if matches!(state.status, Status::Running | Status::Ended) => {
                Err(Stays::Running)
            }
            Some(state) if state.requests.iter().any(|request| request.direct) => Err(Stays::InUse),
            Some(state) => held_outside(state).map_or(Ok(()), |why| Err(Stays::Pinned(why))),
        }
    }

    /// Whether a suspended rank can go to a PE: it is not pinned, and its memory means the same
    /// there. What is found is kept for [`known_pin`](Self::known_pin).
    pub(crate) fn may_go(&mut self, rank: u32, to: u32) -> Result<(), Stays> {
        self.may_move(rank)?;
        // Nobody outside can wake it any more, but somebody may just have: it must hear that here.
        self.take_injected();
        let journey = match (self.balancer.goes_by_state(), self.shared.is_near(to)) {
            (true, _) => Journey::ByState,
            (false, true) => Journey::InNode,
            (false, false) => Journey::Away,
        };
        let obstacle = self.obstacle(rank, journey, None);
        let pe = self.id;
        if let Some(state) = self.ranks[rank as usize].as_deref_mut() {
            state.obstacle = obstacle;
            if obstacle.is_none() && journey == Journey::InNode {
                // SAFETY: the slot of a suspended rank of this PE, which was just searched.
                unsafe { self.search.note_leaving(state.slot, pe) };
            }
        }
        obstacle.map_or(Ok(()), |why| Err(Stays::Pinned(why)))
    }

    /// Why the running rank could not be moved if it were suspended in the call at whose frame its
    /// own stack ends.
    pub(crate) fn pinned(&mut self, frame: usize) -> Option<&'static str> {
        let rank = self.current;
        let held = self.rank(rank).and_then(|state| held_outside(state));
        held.or_else(|| self.obstacle(rank, self.farthest_journey(), Some(frame)))
    }

    /// Why a rank was found to be unable to move, as far as is known: its memory is searched again
    /// only if something was found in it the last time.
    pub(crate) fn known_pin(&mut self, rank: u32) -> Option<&'static str> {
        let state = self.rank(rank)?;
        let (held, was_obstructed) = (held_outside(state), state.obstacle.is_some());
        if held.is_some() || !was_obstructed {
            return held;
        }
        let obstacle = self.obstacle(rank, self.farthest_journey(), None);
        self.rank(rank)?.obstacle = obstacle;
        obstacle
    }

    /// How far ranks of this job may go.
    fn farthest_journey(&self) -> Journey {
        match (self.balancer.goes_by_state(), self.shared.nodes() > 1) {
            (true, _) => Journey::ByState,
            (false, true) => Journey::Away,
            (false, false) => Journey::InNode,
        }
    }

    /// Searches for what keeps a rank from a journey; `frame`: it runs, and its own stack ends there.
    fn obstacle(
        &mut self,
        rank: u32,
        journey: Journey,
        frame: Option<usize>,
    ) -> Option<&'static str> {
        let (thorough, farthest) = (self.options.check_moves, self.farthest_journey());
        let ranks = &self.ranks;
        let state = ranks.get(rank as usize)?.as_deref()?;
        // A job's slots have the numbers of their ranks.
        let slot_of = |rank: u32| Some(ranks.get(rank as usize)?.as_deref()?.slot);
        let others = Others { of: state.slot, ranks };
        let requests = state.requests.iter().filter(|request| request.in_use);
        let own_roots: Vec<usize> = requests
            .map(|request| request.buffer as usize)
            .chain(state.offer.map(|offer| offer.at))
            .collect();
        let runs = |state: &RankState| matches!(state.status, Status::Running | Status::Ended);
        let mut may_leave = ranks
            .iter()
            .flatten()
            .filter(|state| farthest != Journey::InNode && !runs(state))
            .map(|state| state.slot);
        // SAFETY: this is the PE's rank thread, these are its slots, and only the rank that calls,
        // if any, is running.
        let found = unsafe {
            let header_of = |slot: SlotId| slot_of(slot.0);
            self.search.look(self.resumes, frame.is_some(), &header_of, &mut may_leave);
            self.search.obstacle(state.slot, journey, thorough, frame, &own_roots, &others)
        }?;
        if thorough && frame.is_none() {
            vrt_slot::report::say(format_args!("check: rank {rank} on PE {}: {found}", self.id));
        }
        Some(self.reasons.text(found))
    }

    /// Takes a rank in that another PE has handed over.
    fn adopt(&mut self, from: u32, bytes: &[u8]) {
        let mut moving: MovingRank = match crate::encoding::decode_own(bytes) {
            Ok(moving) => moving,
            Err(error) => unreachable!("a PE of this job has encoded it: {error}"),
        };
        let begins = moving.begins;
        if moving.in_step {
            self.balancer.rank_came();
        }
        // SAFETY: the pool is this PE's.
        unsafe { moving.attach(self.pool) };
        let (rank, state, timers) = moving.unpack();
        // SAFETY: the parcel makes this PE the owner of the slot, which is empty if the rank's
        // program is to begin in it.
        unsafe {
            if begins && let Some(arena) = Arena::current() {
                let id = arena.slot_at(state.slot as usize);
                SlotHeader::prepare(state.slot, id, rank, self.uid);
                vrt_slot::rank::Body::start(state.slot, id, self.program);
            }
            (*state.slot).owner.store(self.uid, Ordering::Release);
            search::has_come(state.slot, self.id, self.shared.pes());
            if !begins {
                self.warm_up(state.slot);
            }
        }
        tracing::trace!(rank, from, begins, "has come");
        if self.shared.is_near(from) {
            self.timers.put(rank, &timers);
        } else {
            self.timers.put_relative(rank, &timers);
        }
        if state.status == Status::Ready {
            self.ready.push_back(rank);
        }
        self.ranks[rank as usize] = Some(Box::new(state));
        if !self.shared.is_near(from) {
            self.has_arrived(rank);
        }
        self.mind_unexpected(rank);
        for item in self.held.items.remove(&rank).unwrap_or_default() {
            match item {
                Item::Message(packet, parked) => self.arrive_parked(packet, parked),
                // SAFETY: the bytes beside the packet were kept with it.
                Item::Other(packet, beside) => unsafe { self.handle(&packet, beside.as_ptr()) },
            }
        }
    }

    /// How many messages and answers have come for a rank that is coming.
    pub(crate) fn items_for(&self, rank: u32) -> usize {
        self.held.items.get(&rank).map_or(0, Vec::len)
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
        if !is_worth_it || self.held.warm.insert(rank, end) == Some(end) {
            return;
        }
        let began = std::time::Instant::now();
        // SAFETY: as the caller promises; the call maps what is there and changes nothing.
        unsafe {
            for (start, len) in live::ranges(slot).into_iter().filter(|(_, len)| *len > PIECE) {
                let first = start.next_multiple_of(PIECE);
                let len = (start + len) / PIECE * PIECE - first;
                libc::madvise(first as *mut libc::c_void, len, libc::MADV_POPULATE_READ);
            }
        }
        self.balancer.copied(bytes as u64, began.elapsed().as_secs_f64());
    }

    /// A complete parcel has come.
    pub(crate) fn open_parcel(&mut self, parcel: Parcel) {
        match parcel.topic {
            Topic::Rank => self.adopt(parcel.from, &parcel.bytes),
            Topic::Contribution => self.contribution_came(&parcel.bytes),
            Topic::Job => self.job_news(parcel.from, &parcel.bytes),
            Topic::Group => self.group_parcel(&parcel.bytes),
            Topic::Balance => self.balance_message(parcel.from, &parcel.bytes),
        }
    }

    /// A message has come for a rank that is not here.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive).
    #[cold]
    pub(crate) unsafe fn arrive_elsewhere(&mut self, packet: &Packet, body: Body) {
        match self.find(packet.to) {
            Whereabouts::Ended => self.drop_for_ended(packet),
            Whereabouts::ComingHere => {
                // SAFETY: as the caller promises.
                let (packet, parked) = unsafe { self.park(packet, body) };
                self.held.items.entry(packet.to).or_default().push(Item::Message(packet, parked));
            }
            Whereabouts::On(pe) => {
                let beside = match body {
                    Body::Here(data) => data,
                    Body::Inline | Body::InArena(_) | Body::Staged => std::ptr::null(),
                };
                // SAFETY: only messages from a ring are for ranks of other PEs, and what lies
                // beside those is readable during this call.
                unsafe { self.forward(packet, pe, beside) };
            }
        }
    }

    /// An answer, or a part of a message, has come for a rank that is not here.
    ///
    /// # Safety
    /// `beside` is readable for `packet.beside()` bytes.
    #[cold]
    pub(crate) unsafe fn pass_on(&mut self, packet: &Packet, beside: *const u8) {
        match self.find(packet.to) {
            Whereabouts::Ended => {}
            Whereabouts::ComingHere => {
                let beside = match packet.beside() {
                    0 => Vec::new(),
                    // SAFETY: as the caller promises.
                    len => unsafe { std::slice::from_raw_parts(beside, len) }.to_vec(),
                };
                self.held.items.entry(packet.to).or_default().push(Item::Other(*packet, beside));
            }
            // SAFETY: as the caller promises.
            Whereabouts::On(pe) => unsafe { self.forward(packet, pe, beside) },
        }
    }

    /// A request of a rank that has moved meanwhile is done.
    #[cold]
    pub(crate) fn complete_elsewhere(&mut self, rank: u32, request: u32) {
        let mut packet = Packet::new(Kind::Finished, rank, rank);
        packet.request = request;
        self.post(&packet);
    }
}

/// The texts of what was found to keep ranks from moving. A program has few of them; what comes
/// after very many is told without its place.
#[derive(Debug, Default)]
pub(crate) struct Reasons(FxHashMap<String, &'static str>);

impl Reasons {
    const MOST: usize = 1000;

    fn text(&mut self, found: Reference) -> &'static str {
        let text = found.to_string();
        match self.0.get(&text) {
            Some(known) => known,
            None if self.0.len() < Self::MOST => {
                let lasting: &'static str = Box::leak(text.clone().into_boxed_str());
                self.0.insert(text, lasting);
                lasting
            }
            None => "it refers to memory that is not its own, or something refers to its memory",
        }
    }
}

/// Who may refer to the memory of the rank in a slot, among a PE's ranks and threads.
struct Others<'a> {
    of: *mut SlotHeader,
    ranks: &'a [Option<Box<RankState>>],
}

impl search::Others for Others<'_> {
    fn slots(&self) -> Vec<*mut SlotHeader> {
        let others = self.ranks.iter().flatten().filter(|other| other.slot != self.of);
        others.filter(|other| other.status != Status::Ended).map(|other| other.slot).collect()
    }

    fn have_threads(&self) -> bool {
        crate::blocking::has_foreign_threads()
    }
}

/// What a rank has outside its slot and cannot take along, if anything.
fn held_outside(state: &RankState) -> Option<&'static str> {
    if allocator::is_another() {
        return Some("the program's global allocator does not take its memory from malloc");
    }
    if state.waits_for_outside() {
        return Some("it waits for something outside vrt: a tokio timer, socket, file or thread");
    }
    if state.blocked.lock.is_some() {
        return Some("it waits for a lock or condition of its process");
    }
    // SAFETY: the slot of a rank of this PE.
    let held = unsafe { (*state.slot).external.pin((*state.slot).id()) };
    if held.is_some() {
        return held;
    }
    // SAFETY: the slot of a rank of this PE, whose thread this is.
    let counted = unsafe { counted::pin(state.slot) };
    if counted.is_some() {
        return counted;
    }
    // SAFETY: as above.
    let span = unsafe { spans::pin(state.slot) };
    if span.is_some() {
        return span;
    }
    let outside = state.requests.iter().any(|request| request.in_use && request.outside);
    outside.then_some("a message is under way from or to memory outside its slot")
}

/// The address of a slot's header, for [`state`].
pub(crate) fn slot_at(address: usize) -> *mut SlotHeader {
    address as *mut SlotHeader
}
