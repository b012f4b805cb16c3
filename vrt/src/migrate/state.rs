//! What a PE keeps of a rank, in the form in which it travels.
//!
//! Everything is numbers, bytes, and addresses that mean the same in all PEs of a node.

use std::cell::Cell;
use std::panic::Location;

use serde::{Deserialize, Serialize};

use crate::mailbox::{Pattern, Peer, Peers, Posted, Unexpected};
use crate::net::Packet;
use crate::pe::{Awaiting, Completion, Counters, Parked, RankState, Request, Status, Wait};

type Message = (Packet, Parked);

/// A rank between two PEs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MovingRank {
    rank: u32,
    slot: u64,
    ready: bool,
    awaiting: Awaiting,
    answer: u64,
    notified: bool,
    posted: Vec<(Pattern, u32)>,
    unexpected: Vec<(Pattern, Message)>,
    peers: Vec<(u32, Peer)>,
    early: Vec<((u32, u32), Message)>,
    probing: bool,
    matched: Vec<Option<Message>>,
    requests: Vec<Request>,
    free_requests: Vec<u32>,
    wait: MovingWait,
    counters: Counters,
    collectives: Vec<(u32, u32)>,
    offers: u32,
    ordered: Option<u32>,
    /// Its program begins (again), from this state if there is one.
    pub(super) begins: bool,
    restored: Option<Vec<u8>>,
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
            answer,
            notified,
            posted,
            unexpected,
            peers,
            probing,
            matched,
            requests,
            free_requests,
            wait,
            counters,
            offer: _,
            offers,
            ordered,
            restored,
            collectives,
        } = state;
        let (peers, early) = peers.into_lists();
        MovingRank {
            rank,
            slot: slot as usize as u64,
            ready: status == Status::Ready,
            awaiting,
            answer: answer as usize as u64,
            notified,
            posted: posted.into_list(),
            unexpected: unexpected.into_list(),
            peers,
            early,
            probing,
            matched,
            requests,
            free_requests,
            wait: MovingWait::pack(wait),
            counters,
            collectives: collectives.into_iter().collect(),
            offers,
            ordered,
            begins: false,
            restored,
            timers,
        }
    }

    pub(super) fn unpack(self) -> (u32, RankState, Vec<(u64, u32)>) {
        let mut posted = Posted::default();
        for (pattern, request) in self.posted {
            posted.push(pattern, request);
        }
        let mut unexpected = Unexpected::default();
        for (key, message) in self.unexpected {
            unexpected.push(key, message);
        }
        let state = RankState {
            slot: super::slot_at(self.slot as usize),
            status: if self.ready { Status::Ready } else { Status::Waiting },
            awaiting: self.awaiting,
            answer: self.answer as usize as *const Cell<Option<Completion>>,
            notified: self.notified,
            posted,
            unexpected,
            peers: Peers::from_lists(self.peers, self.early),
            probing: self.probing,
            matched: self.matched,
            requests: self.requests,
            free_requests: self.free_requests,
            wait: self.wait.unpack(),
            counters: self.counters,
            offer: None,
            offers: self.offers,
            ordered: self.ordered,
            restored: self.restored,
            collectives: self.collectives.into_iter().collect(),
        };
        (self.rank, state, self.timers)
    }
}

impl MovingWait {
    fn pack(wait: Wait) -> MovingWait {
        let location = wait.location.map_or(0, |location| std::ptr::from_ref(location) as usize);
        MovingWait {
            call: (wait.call.as_ptr() as usize as u64, wait.call.len() as u64),
            pattern: wait.pattern,
            location: location as u64,
        }
    }

    fn unpack(self) -> Wait {
        let (at, len) = self.call;
        // SAFETY: `pack` made these from a `&'static str` and a `&'static Location` of this very
        // program, which lie at the same addresses in all PEs: they were forked from one process.
        unsafe {
            let call = std::slice::from_raw_parts(at as usize as *const u8, len as usize);
            Wait {
                call: std::str::from_utf8_unchecked(call),
                pattern: self.pattern,
                location: (self.location as usize as *const Location<'static>).as_ref(),
            }
        }
    }
}
