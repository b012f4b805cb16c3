//! Receives that get their memory late, and requests that are no longer awaited.
//!
//! A receive whose buffer is borrowed only for moments (a future borrows it while it is polled, and can be forgotten at
//! any time) is posted without one. The message that matches it is *reserved*: it is kept like an unexpected one, under
//! a number, and is copied into the buffer when the rank provides it. Data in this node is copied at once; for data
//! that must come from elsewhere the rank provides memory that lives as long as the transfer.
//!
//! A request is *detached* when its rank does not wait for it any more. Memory that it uses must be
//! the runtime's. It is removed when the next one is detached: code that ends requests need not
//! check whether one is awaited.

use crate::mailbox::{Pattern, PostedReceive};
use crate::net::Packet;
use crate::pe::unexpected::UnexpectedPayload;
use crate::pe::{Completion, Core, RankState, Request, Room, Started};

/// How a receive stands whose memory is there now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Landed {
    /// The message is in the buffer.
    Done(Completion),
    /// No message has arrived yet: the request will be done when one is reserved for it.
    Waiting(u32),
    /// The message, of this many bytes, must come from elsewhere, into memory that is stable.
    Far { number: u32, bytes: u64 },
}

impl RankState {
    /// Takes a message out of matching; gives its number.
    pub(super) fn keep_matched(&mut self, message: (Packet, UnexpectedPayload)) -> u32 {
        let number = self.matched.iter().position(Option::is_none).unwrap_or_else(|| {
            self.matched.push(None);
            self.matched.len() - 1
        });
        self.matched[number] = Some(message);
        number as u32
    }
}

impl Core {
    /// Receives into a buffer what has come; otherwise posts a receive without one.
    ///
    /// # Safety
    /// The room's buffer is writable for its capacity during the call.
    pub(crate) unsafe fn land_or_wait(&mut self, pattern: Pattern, room: Room) -> Landed {
        if let Some((number, _)) = self.matched_probe(pattern) {
            // SAFETY: as the caller promises.
            return unsafe { self.land(number, room) };
        }
        let state = self.running();
        let empty = Room { buffer: std::ptr::null_mut(), capacity: 0, ..room };
        let request = Request { reserves: true, ..Request::receive(empty, Some(pattern)) };
        let request = state.new_request(request);
        state.posted.push(pattern, PostedReceive::reserving(request));
        Landed::Waiting(request)
    }

    /// Receives a message that has a number into a buffer, if it is in this node.
    ///
    /// # Safety
    /// As [`land_or_wait`](Self::land_or_wait).
    pub(crate) unsafe fn land(&mut self, number: u32, room: Room) -> Landed {
        let message = self.running().matched.get(number as usize).copied().flatten();
        let Some((packet, payload)) = message else { return Landed::Done(Completion::default()) };
        let (is_here, _leased) = match payload {
            UnexpectedPayload::Inline | UnexpectedPayload::Pool(_) => (true, None),
            UnexpectedPayload::InArena(_) => {
                let leased = self.shared.lease_of(packet.from);
                (leased.is_some(), leased)
            }
            UnexpectedPayload::Staged => (false, None),
        };
        let bytes = packet.message_len();
        if !is_here {
            return Landed::Far { number, bytes };
        }
        // SAFETY: as the caller promises; what is here is copied during the call.
        match unsafe { self.receive_matched(number, room) } {
            Started::Done(outcome) => Landed::Done(outcome),
            Started::Pending(..) => unreachable!("a message in this node is received at once"),
        }
    }

    /// A message has come for a receive without a buffer, which is done with it: the outcome's
    /// capacity is the message's number.
    #[cold]
    pub(super) fn reserve(&mut self, message: (Packet, UnexpectedPayload), request: u32) {
        let packet = message.0;
        let Some(state) = self.rank(packet.to) else { return };
        let number = state.keep_matched(message);
        let outcome = &mut state.request_mut(request).outcome;
        outcome.source = packet.source;
        outcome.tag = packet.tag;
        outcome.bytes = packet.message_len();
        outcome.capacity = u64::from(number);
        self.complete(packet.to, request);
    }

    /// Gives up a message of the running rank that has a number: see
    /// [`offer_again`](Self::offer_again).
    pub(crate) fn put_back_matched(&mut self, number: u32) {
        let matched = &mut self.running().matched;
        if let Some(message) = matched.get_mut(number as usize).and_then(Option::take) {
            self.offer_again(message);
        }
    }

    /// The running rank's program is over: nobody receives what is reserved, but its senders may wait.
    pub(crate) fn forget_reserved(&mut self) {
        for (packet, payload) in std::mem::take(&mut self.running().matched).into_iter().flatten() {
            self.forget(&packet, payload);
        }
    }

    /// Nobody waits for a request of the running rank any more. What it uses is the runtime's.
    pub(crate) fn detach(&mut self, request: u32) {
        let state = self.running();
        let mut detached = std::mem::take(&mut state.detached);
        detached.push(request);
        detached.retain(|request| state.take_if_done(*request).is_none());
        state.detached = detached;
    }
}
