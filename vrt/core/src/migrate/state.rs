//! What a PE keeps about a rank, in the form in which it is sent.
//!
//! Everything is numbers, bytes, and addresses that mean the same in all PEs: in a rank's slot, in
//! the program, and, unless the rank leaves its node, in the pools of the node's PEs.

use std::panic::Location;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::error::Site;
use crate::mailbox::{Pattern, Peer, Peers, Posted, PostedReceive, Unexpected};
use crate::net::parcel::{self, Topic};
use crate::net::{Kind, Packet};
use crate::pe::{
    Awaited, Awaiting, Begun, Blocked, ContextUse, Core, Counters, Encoded, Flow, Owned, RankState,
    Request, Status, Told, UnexpectedPayload, Wait, WindowPart,
};
use vrt_shm::Place;
use vrt_slot::{SlotHeader, hooks};

type Message = (Packet, UnexpectedPayload);

/// A rank between two PEs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MovingRank {
    rank: u32,
    slot: u64,
    ready: bool,
    awaiting: Awaiting,
    awaited: u64,
    notified: bool,
    posted: Vec<(Pattern, PostedReceive)>,
    unexpected: Vec<(Pattern, Message)>,
    /// They are too many; and the nodes that were told.
    pub(super) held: bool,
    pub(super) told: Vec<Told>,
    peers: Vec<(u32, Peer)>,
    early: Vec<((u32, u32), Message)>,
    probing: bool,
    matched: Vec<Option<Message>>,
    /// The data of messages that were in the sending PE's pool, if the rank leaves its node.
    payloads: Vec<ByteBuf>,
    requests: Vec<Request>,
    free_requests: Vec<u32>,
    detached: Vec<u32>,
    wait: MovingWait,
    counters: Counters,
    collectives: Vec<(u32, ContextUse)>,
    owned: Owned,
    windows: Vec<(u32, WindowPart)>,
    counters_of_exchanges: Vec<((u32, u32), u64)>,
    coordinates: Option<[f64; 3]>,
    pub(super) moves: u32,
    /// A balancing step waits to hear that it has come.
    pub(super) in_step: bool,
    at_sync_calls: u32,
    destination: Option<u32>,
    /// What it has open is under way beside it.
    pub(super) has_descriptors: bool,
    /// Its program begins (again), from this state if there is one.
    pub(super) begins: bool,
    restored: Option<Encoded>,
    /// Whether that arrives separately, before this.
    restored_beside: bool,
    /// Deadlines and requests.
    timers: Vec<(u64, u32)>,
}

/// A [`Wait`]: text and place lie in the program's read-only data.
#[derive(Debug, Serialize, Deserialize)]
struct MovingWait {
    call: (u64, u64),
    pattern: Option<Pattern>,
    location: u64,
}

impl MovingRank {
    pub(super) fn pack(rank: u32, state: RankState, timers: Vec<(u64, u32)>) -> MovingRank {
        let RankState {
            slot,
            status,
            awaiting,
            awaited,
            blocked: _,
            notified,
            posted,
            unexpected,
            flow,
            peers,
            probing,
            matched,
            requests,
            free_requests,
            detached,
            wait,
            counters,
            at_sync: _,
            coordinates,
            moves,
            moved_in_step,
            came_at: _,
            at_sync_calls,
            obstacle: _,
            refused: _,
            destination,
            restored,
            collectives,
            owned,
            windows,
            counters_of_exchanges,
        } = state;
        let (peers, early) = peers.into_lists();
        MovingRank {
            rank,
            slot: slot as usize as u64,
            ready: status == Status::Ready,
            awaiting,
            awaited: awaited as usize as u64,
            notified,
            posted: posted.into_list(),
            unexpected: unexpected.into_list(),
            held: flow.held,
            told: flow.told,
            peers,
            early,
            probing,
            matched,
            payloads: Vec::new(),
            requests,
            free_requests,
            detached,
            wait: MovingWait::pack(wait),
            counters,
            collectives: collectives.into_list(),
            owned,
            windows: windows.into_iter().collect(),
            counters_of_exchanges: counters_of_exchanges.into_iter().collect(),
            coordinates,
            moves: moves.wrapping_add(1),
            in_step: moved_in_step,
            at_sync_calls,
            destination,
            has_descriptors: false,
            begins: false,
            restored,
            restored_beside: false,
            timers,
        }
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    pub(super) fn unpack(self) -> (u32, RankState, Vec<(u64, u32)>) {
        let mut posted = Posted::default();
        for (pattern, receive) in self.posted {
            posted.push(pattern, receive);
        }
        let early = self.early.iter().map(|(_, message)| message);
        let unexpected = self.unexpected.iter().map(|(_, message)| message);
        let kept = unexpected.chain(early).chain(self.matched.iter().flatten());
        let flow = Flow::of(kept, self.held, self.told);
        let mut unexpected = Unexpected::default();
        for (key, message) in self.unexpected {
            unexpected.push(key, message);
        }
        let state = RankState {
            slot: self.slot as usize as *mut SlotHeader,
            status: if self.ready { Status::Ready } else { Status::Waiting },
            awaiting: self.awaiting,
            awaited: self.awaited as usize as *const Awaited,
            blocked: Blocked::default(),
            notified: self.notified,
            posted,
            unexpected,
            flow,
            peers: Peers::from_lists(self.peers, self.early),
            probing: self.probing,
            matched: self.matched,
            requests: self.requests,
            free_requests: self.free_requests,
            detached: self.detached,
            wait: self.wait.unpack(),
            counters: self.counters,
            at_sync: None,
            coordinates: self.coordinates,
            moves: self.moves,
            moved_in_step: false,
            came_at: self.in_step.then_some(self.counters.switches),
            at_sync_calls: self.at_sync_calls,
            obstacle: None,
            refused: None,
            destination: self.destination,
            restored: self.restored,
            collectives: Begun::from_list(self.collectives),
            owned: self.owned,
            windows: self.windows.into_iter().collect(),
            counters_of_exchanges: self.counters_of_exchanges.into_iter().collect(),
        };
        (self.rank, state, self.timers)
    }
}

impl MovingRank {
    /// Takes along what lies outside the rank's slot in the memory of the node that it leaves.
    ///
    /// # Safety
    /// The rank was this PE's, and its messages' data is where they say.
    pub(super) unsafe fn detach(&mut self) {
        let mut payloads = Vec::new();
        // SAFETY: a block of the pool is as long as is asked for, and nobody else's.
        let mut take = |block: *mut u8, len: usize| unsafe {
            payloads.push(ByteBuf::from(std::slice::from_raw_parts(block, len)));
            hooks::free_in_arena(block);
        };
        for (packet, payload) in self.messages() {
            match payload {
                UnexpectedPayload::Pool(block) => take(*block, packet.message_len() as usize),
                UnexpectedPayload::InArena(_) => {
                    *payload = UnexpectedPayload::Staged;
                    packet.kind = Kind::Staged;
                }
                UnexpectedPayload::Inline | UnexpectedPayload::Staged => {}
            }
        }
        if let Some(restored) = self.restored.filter(|_| !self.restored_beside) {
            take(restored.at, restored.len);
        }
        for request in self.requests.iter_mut().filter(|request| request.in_use && request.copy) {
            // SAFETY: the live copy of a buffered send.
            take(request.buffer, unsafe { vrt_slot::heap::usable_size(request.buffer) });
        }
        self.payloads = payloads;
    }

    /// [`detach`](Self::detach) of a rank whose encoded state is sent beside it.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn detach_beside_state(&mut self) {
        self.restored_beside = true;
        // SAFETY: as the caller promises.
        unsafe { self.detach() };
    }

    /// The opposite of [`detach`](Self::detach): puts what was taken along into the PE's pool. `beside`: where the
    /// state lies that was sent beside this.
    ///
    /// # Safety
    /// `beside` is a block of that PE's pool, if there is one.
    pub(super) unsafe fn attach(&mut self, core: &mut Core, beside: Option<*mut u8>) {
        let mut copy = |bytes: &[u8]| {
            let block = core.block_for(bytes.len(), "what comes with a rank");
            // SAFETY: the block is as long as the bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), block, bytes.len()) };
            block
        };
        if self.payloads.is_empty() && !self.restored_beside {
            return;
        }
        let payloads = std::mem::take(&mut self.payloads);
        let mut payloads = payloads.iter();
        let mut put = |block: &mut *mut u8| {
            if let Some(payload) = payloads.next() {
                *block = copy(payload);
            }
        };
        for (_, payload) in self.messages() {
            if let UnexpectedPayload::Pool(block) = payload {
                put(block);
            }
        }
        if let Some(Encoded { at, .. }) = &mut self.restored {
            match beside {
                Some(block) => *at = block,
                None => put(at),
            }
        }
        for request in self.requests.iter_mut().filter(|request| request.in_use && request.copy) {
            put(&mut request.buffer);
        }
    }

    /// All messages that the rank has not received yet, always in the same order.
    fn messages(&mut self) -> impl Iterator<Item = &mut Message> {
        let unexpected = self.unexpected.iter_mut().map(|(_, message)| message);
        let early = self.early.iter_mut().map(|(_, message)| message);
        unexpected.chain(early).chain(self.matched.iter_mut().flatten())
    }
}

impl MovingWait {
    fn pack(wait: Wait) -> MovingWait {
        let Site { call, location } = wait.site;
        let location = location.map_or(0, |location| std::ptr::from_ref(location) as usize);
        MovingWait {
            call: (call.as_ptr() as usize as u64, call.len() as u64),
            pattern: wait.pattern,
            location: location as u64,
        }
    }

    fn unpack(self) -> Wait {
        let (at, len) = self.call;
        // SAFETY: `pack` made these from a `&'static str` and a `&'static Location` of this very
        // program. A rank that moves by memory finds them at the same addresses: the PEs of a supervisor were
        // forked from one process, and processes of a launcher move ranks so only where their programs lie at
        // the same addresses (`why_no_moves` in `vrt-launch`). One that moves by its state waits for nothing: its
        // call is empty, and its location null.
        unsafe {
            let call = std::slice::from_raw_parts(at as usize as *const u8, len as usize);
            let site = Site {
                call: std::str::from_utf8_unchecked(call),
                location: (self.location as usize as *const Location<'static>).as_ref(),
            };
            site.wait(self.pattern)
        }
    }
}

/// Sends what a PE has kept of a rank to another one, which has it from now on.
pub(super) fn dispatch(core: &mut Core, rank: u32, to: u32, moving: &mut MovingRank) {
    if moving.held && !core.shared.is_near(to) {
        // From now on this is one of the nodes that were told.
        moving.told.push(Told { by: core.id, pe: core.id, since: 0 });
    }
    core.shared.location_entry(rank).set(Place::on(to).held(moving.held), moving.moves);
    parcel::send(&mut core.net, core.id, to, Topic::Rank, moving);
}
