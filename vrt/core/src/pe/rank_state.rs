//! What a PE keeps about each of its ranks. It is sent along when the rank moves; what the rank itself
//! allocated lies in its slot.
//!
//! All of it is numbers, bytes, and addresses that mean the same in all PEs: in a rank's slot, in the program, and,
//! unless the rank leaves its node, in the pools of the node's PEs. What is skipped is what its PE knows of a rank
//! that stays there.

use std::cell::Cell;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::error::Site;
use crate::layout::Signature;
use crate::mailbox::{Pattern, Peers, Posted, PostedReceive};
use crate::net::Packet;
use crate::pe::contexts::Begun;
use crate::pe::requests::{Completion, Request, Room, Started, copy_short};
use crate::pe::unexpected::{Flow, UnexpectedPayload, UnexpectedQueue};
use vrt_slot::{SlotHeader, hooks, rank};

/// The state of a rank in its life cycle; see the diagram in `rank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It can run, and is in the queue of ready ranks.
    Ready,
    /// It runs on the PE's thread.
    Running,
    /// It is suspended until an event that it awaits.
    Waiting,
    /// Its program has ended; some of its messages may still be in flight.
    Ended,
}

/// What a search has found to keep a rank where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Obstacle {
    pub why: &'static str,
    /// How many consecutive steps have found one.
    pub steps: u32,
}

/// A rank, from the point of view of its PE. The fields used by a switch and a message come first, up to `matched`:
/// with very many ranks every cache line must come from memory.
#[derive(Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct RankState {
    /// The header of its slot, which this PE owns; never null.
    #[serde(with = "crate::net::address")]
    pub slot: *mut SlotHeader,
    /// On the rank's stack: where it reads the outcome of the request it awaits, or null.
    #[serde(with = "crate::net::address")]
    pub awaited: *const Awaited,
    /// What has to happen before it is resumed.
    pub(crate) awaiting: Awaiting,
    /// Its state in its life cycle.
    pub status: Status,
    /// Something happened while it ran that it has to look at again.
    pub(crate) notified: bool,
    /// It waits for a message to come, not for a request.
    pub(crate) probing: bool,
    /// Its measurements; it takes them along when it moves.
    pub counters: Counters,
    /// Its requests by number, with those that are not in use.
    pub(crate) requests: Vec<Request>,
    pub(crate) free_requests: Vec<u32>,
    /// What it waits for, for people; out of date while `awaited` is not null.
    pub(crate) wait: Wait,
    pub(crate) posted: Posted,
    /// Its data about each partner, and messages that arrived early.
    pub peers: Peers<(Packet, UnexpectedPayload)>,
    /// Messages that have arrived without a posted receive.
    pub unexpected: UnexpectedQueue,
    pub(crate) flow: Flow,
    /// Its operations on the contexts of its communicators.
    pub collectives: Begun,
    /// It offers itself to be moved, and waits.
    #[serde(skip)]
    pub at_sync: Option<AtSync>,
    /// Messages taken by matched probes and not received yet.
    pub matched: Vec<Option<(Packet, UnexpectedPayload)>>,
    /// Requests that are no longer awaited and were not done when they were given up.
    pub detached: Vec<u32>,
    /// What it waits for inside a call that is not `vrt`'s.
    #[serde(skip)]
    pub(crate) blocked: Blocked,
    /// The position of its work in space, if given.
    pub coordinates: Option<[f64; 3]>,
    /// How often it has moved.
    pub moves: u32,
    /// A balancing step with a period has moved it: PE 0 waits for the news of its arrival.
    pub moved_in_step: bool,
    /// How often it had been resumed when it arrived by such a step, or began: until it has run, no such step moves it.
    #[serde(skip)]
    pub came_at: Option<u64>,
    /// How often it has offered itself to be moved.
    pub at_sync_calls: u32,
    /// What was found to keep it here when it last was to move.
    #[serde(skip)]
    pub(crate) obstacle: Option<Obstacle>,
    /// Why it could not go where it wanted to.
    #[serde(skip)]
    pub refused: Option<&'static str>,
    /// Its destination when it next offers itself.
    pub destination: Option<u32>,
    /// The state from which it restarted here, until it requests it.
    pub restored: Option<Encoded>,
    /// Communicators and windows that it has made and not dropped.
    pub owned: Owned,
    /// Its parts of the windows that it has made and not freed, by context.
    pub windows: FxHashMap<u32, WindowPart>,
    /// Counters that others increment, by context and number of their exchange.
    pub counters_of_exchanges: FxHashMap<(u32, u32), u64>,
}

/// A rank's part of a window: addresses in its heap, which are stable until all ranks have freed the window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WindowPart {
    /// The address of its values.
    pub address: usize,
    /// Length of its values.
    pub bytes: usize,
    /// The address of its locks.
    pub control: usize,
}

/// The number of a rank's objects for which its PE or others keep data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// Communicators, except predefined ones. A window has one, too.
    pub communicators: u32,
    /// Windows that it has not freed.
    pub windows: u32,
}

/// The encoded state of a rank, in some pool of the node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Encoded {
    /// Its address.
    #[serde(with = "crate::net::address")]
    pub at: *mut u8,
    /// Its length in bytes.
    pub len: usize,
}

/// A rank in `migrate`: its request, and its encoded state in the pool of its PE.
#[derive(Clone, Copy, Debug)]
pub struct AtSync {
    /// The request that is done when the rank may continue.
    pub request: u32,
    /// Address of the encoded state; 0 if it does not move by one.
    pub(crate) at: usize,
    /// Length of that state in bytes.
    pub(crate) len: usize,
}

/// A rank inside a call that would block its thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocked {
    /// The word of the lock or condition that it waits for; it stays on its PE meanwhile.
    pub lock: Option<usize>,
    /// How often it has polled by itself, parked, since it was last woken.
    pub spins: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Awaiting {
    Nothing,
    Request(u32),
    Anything,
}

/// The measurements of a rank. Times are cycles of the time stamp counter.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Cycles for which it has run.
    pub run: u64,
    /// How often it has stopped running.
    pub switches: u64,
    /// The part of `run` that has been reported to the balancer.
    pub reported: u64,
    /// The rest has been reported to the balancer, too, which has not decided yet.
    pub is_reported: bool,
}

/// What a rank waits for, for the deadlock table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Wait {
    /// The call in which it waits.
    #[serde(with = "site")]
    pub(crate) site: Site,
    /// Context, partner and tag, if it has them.
    pub pattern: Option<Pattern>,
}

impl Site {
    /// What a rank that called here waits for.
    #[inline]
    pub fn wait(self, pattern: Option<Pattern>) -> Wait {
        Wait { site: self, pattern }
    }
}

/// Serde for a [`Site`]: text and place lie in the program's read-only data.
mod site {
    use std::panic::Location;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Site;

    pub(super) fn serialize<S: Serializer>(site: &Site, serializer: S) -> Result<S::Ok, S::Error> {
        let Site { call, location } = site;
        let location = location.map_or(0, |location| std::ptr::from_ref(location).addr() as u64);
        (call.as_ptr().addr() as u64, call.len() as u64, location).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Site, D::Error> {
        let (call, len, location) = <(u64, u64, u64)>::deserialize(deserializer)?;
        // SAFETY: `serialize` made these from a `&'static str` and a `&'static Location` of this very
        // program. A rank that moves by memory finds them at the same addresses: the PEs of a supervisor were
        // forked from one process, and processes of a launcher move ranks so only where their programs lie at
        // the same addresses (`why_no_moves` in `vrt-launch`). One that moves by its state waits for nothing: its
        // call is empty, and its location null.
        Ok(unsafe {
            let call = std::slice::from_raw_parts(call as usize as *const u8, len as usize);
            Site {
                call: std::str::from_utf8_unchecked(call),
                location: (location as usize as *const Location<'static>).as_ref(),
            }
        })
    }
}

/// What a blocked rank keeps on its stack for its PE.
#[derive(Debug)]
pub struct Awaited {
    /// The outcome of its request, once available.
    pub outcome: Cell<Option<Completion>>,
    /// For people.
    pub(crate) wait: Wait,
}

impl RankState {
    /// A rank that is to begin in a prepared slot.
    pub(crate) fn new(slot: *mut SlotHeader) -> RankState {
        RankState {
            slot,
            status: Status::Ready,
            awaiting: Awaiting::Nothing,
            awaited: std::ptr::null(),
            blocked: Blocked::default(),
            notified: false,
            posted: Posted::default(),
            unexpected: UnexpectedQueue::default(),
            flow: Flow::default(),
            peers: Peers::default(),
            probing: false,
            matched: Vec::new(),
            requests: Vec::new(),
            free_requests: Vec::new(),
            detached: Vec::new(),
            wait: Wait::default(),
            counters: Counters::default(),
            at_sync: None,
            coordinates: None,
            moves: 0,
            moved_in_step: false,
            came_at: Some(0),
            at_sync_calls: 0,
            obstacle: None,
            refused: None,
            destination: None,
            restored: None,
            collectives: Begun::default(),
            owned: Owned::default(),
            windows: FxHashMap::default(),
            counters_of_exchanges: FxHashMap::default(),
        }
    }

    /// It leaves its PE: what is kept of its messages is put in order, to be sent.
    pub(crate) fn leave(&mut self) {
        debug_assert!(!matches!(self.status, Status::Running | Status::Ended));
        self.posted.gather();
        drop(self.unexpected.gather());
        self.moves = self.moves.wrapping_add(1);
    }

    /// It has come to its PE. Whether a balancing step waits for the news of that.
    pub(crate) fn arrive(&mut self) -> bool {
        let in_step = std::mem::take(&mut self.moved_in_step);
        self.came_at = in_step.then_some(self.counters.switches);
        in_step
    }

    /// All messages that it has not received yet, always in the same order.
    pub(crate) fn messages_mut(
        &mut self,
    ) -> impl Iterator<Item = &mut (Packet, UnexpectedPayload)> {
        let kept = self.unexpected.gather().chain(self.peers.early_mut());
        kept.chain(self.matched.iter_mut().flatten())
    }

    /// The rank has ended or begins again: its communicators, windows and counters are gone.
    pub(super) fn forget_what_it_made(&mut self) {
        self.owned = Owned::default();
        self.windows.clear();
        self.counters_of_exchanges.clear();
    }

    /// Frees the state from which the rank restarted.
    pub fn drop_restored(&mut self) {
        if let Some(Encoded { at, .. }) = self.restored.take() {
            // SAFETY: a block that belongs to this rank alone.
            unsafe { hooks::free_in_arena(at) };
        }
    }

    #[inline]
    pub(crate) fn new_request(&mut self, request: Request) -> u32 {
        match self.free_requests.pop() {
            Some(number) => {
                self.requests[number as usize] = request;
                number
            }
            None => {
                self.requests.push(request);
                (self.requests.len() - 1) as u32
            }
        }
    }

    /// Posts a receive.
    #[inline(always)]
    pub(super) fn post(&mut self, pattern: Pattern, room: Room) -> Started {
        let request = self.new_request(Request::receive(room, Some(pattern)));
        self.posted.push(pattern, PostedReceive::into_buffer(request));
        Started::pending(request)
    }

    #[inline(always)]
    pub(crate) fn request_mut(&mut self, number: u32) -> &mut Request {
        &mut self.requests[number as usize]
    }

    /// The outcome of a request that is done; this ends the request.
    #[inline]
    pub fn take_if_done(&mut self, number: u32) -> Option<Completion> {
        let request = &mut self.requests[number as usize];
        debug_assert!(request.in_use, "request {number} was taken before");
        if !request.done {
            return None;
        }
        request.in_use = false;
        let outcome = request.outcome;
        self.free_requests.push(number);
        Some(outcome)
    }

    /// Marks a request as done. Returns whether the rank must be put in the queue of ready ranks.
    #[inline(always)]
    pub fn finish(&mut self, number: u32) -> bool {
        self.requests[number as usize].done = true;
        self.note(Some(number))
    }

    /// Puts a message into a receive that has matched it. Returns whether the rank must be put in the queue of ready
    /// ranks.
    ///
    /// # Safety
    /// `data` is readable for `len` bytes, and the buffers of posted receives are writable.
    #[inline(always)]
    pub(super) unsafe fn fill(
        &mut self,
        number: u32,
        key: &Pattern,
        data: *const u8,
        len: u64,
        signature: Signature,
    ) -> bool {
        let receive = &mut self.requests[number as usize];
        let room = receive.room_for(len, signature);
        // SAFETY: as the caller promises.
        unsafe { copy_short(data, receive.buffer, room) };
        receive.outcome.source = key.source;
        receive.outcome.tag = key.tag;
        receive.outcome.bytes = len;
        self.finish(number)
    }

    /// Something has happened that concerns the rank, the end of a request or (`None`) anything.
    /// Returns whether it is to be put in the queue of ready ranks.
    #[inline(always)]
    pub(super) fn note(&mut self, request: Option<u32>) -> bool {
        let concerned = match (self.awaiting, request) {
            (_, None) | (Awaiting::Anything, _) => true,
            (Awaiting::Request(awaited), Some(done)) => awaited == done,
            (Awaiting::Nothing, Some(_)) => false,
        };
        match self.status {
            Status::Waiting if concerned => {
                self.status = Status::Ready;
                true
            }
            Status::Running if concerned => {
                self.notified = true;
                false
            }
            _ => false,
        }
    }

    /// Whether a request is done; the request is kept.
    pub fn is_done(&self, number: u32) -> bool {
        self.requests[number as usize].done
    }

    /// The running rank has changed something that it may await itself.
    pub fn look_again(&mut self) {
        self.notified = true;
    }

    /// The outcome of a request that is done; the request is kept.
    pub fn outcome_of(&self, number: u32) -> Completion {
        self.requests[number as usize].outcome
    }

    /// Records that the running rank waits for a request (`None`: for anything that may arrive).
    pub fn await_request(&mut self, number: Option<u32>, wait: Wait) {
        self.awaiting = match (self.awaiting, number) {
            (Awaiting::Nothing, Some(number)) => Awaiting::Request(number),
            (Awaiting::Request(known), Some(number)) if known == number => self.awaiting,
            _ => Awaiting::Anything,
        };
        self.wait = wait;
    }

    /// Notes that the running rank waits for this request alone. The request is over when its
    /// outcome is there.
    ///
    /// # Safety
    /// `awaited` lives until the rank goes on after it was resumed.
    #[inline(always)]
    pub(crate) unsafe fn await_outcome(&mut self, request: u32, awaited: &Awaited) {
        self.awaiting = Awaiting::Request(request);
        self.awaited = awaited;
    }

    /// What it waits for. To be asked of a suspended rank.
    pub(crate) fn waits_for(&self) -> Wait {
        if self.awaited.is_null() {
            return self.wait;
        }
        // SAFETY: `await_outcome` was promised that it lives until the rank goes on.
        unsafe { (*self.awaited).wait }
    }

    /// Whether something from outside `vrt` can wake it.
    pub(crate) fn waits_for_outside(&self) -> bool {
        // SAFETY: the slot of a rank of this PE.
        rank::has_wakers(unsafe { &*self.slot })
    }
}

impl RankState {
    /// Bytes of its unexpected messages.
    pub fn unexpected_bytes(&self) -> usize {
        self.unexpected.list_bytes() + self.flow.pooled
    }

    /// A message was kept; whether the marks have to be looked at.
    #[inline(always)]
    pub(super) fn is_beyond(&self) -> bool {
        self.unexpected.is_beyond() || self.flow.pooled > self.flow.alarm
    }
}
