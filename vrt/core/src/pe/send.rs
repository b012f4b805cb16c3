//! Sending: chooses the protocol of a message.
//!
//! | message | to a rank of this PE | to another PE |
//! |---|---|---|
//! | short (`outbound`), standard | copied into the posted receive, or kept in the pool | `Eager` |
//! | short, synchronous | the same; done when matched | `Eager`, answered by `Finished` |
//! | long, in the arena | the receive copies from the sender's buffer | `Rendezvous`: the same |
//! | long, elsewhere | copied at once | `Staged`: in chunks, when matched |
//!
//! Buffered sends of any length are copied first and then sent as standard ones. To a rank that is *held* (`flow`)
//! standard sends are sent as synchronous ones if they fit into a packet, and as long ones otherwise. The engine does
//! not read the data of a *copied* send after it has begun: whatever has not been sent by then is copied, but the send
//! completes no earlier than another one.

use crate::layout::Signature;
use crate::mailbox::Pattern;
use crate::net::link::{RING_BYTES, RING_CELLS};
use crate::net::local::{MAX_PAYLOAD, SHORT_CHUNK};
use crate::net::remote::Transfer;
use crate::net::{Data, INLINE, Kind, Packet};
use crate::pe::core::Core;
use crate::pe::events::{Envelope, Event, is_observed};
use crate::pe::matching::Match;
use crate::pe::outbound::{Mode, Outbound};
use crate::pe::rank_state::Status;
use crate::pe::requests::{Request, RequestEnd, Started, copy_short};
use crate::pe::unexpected::{Body, UnexpectedPayload};
use vrt_shm::Place;
use vrt_slot::{Arena, hooks};

/// So many messages may wait for others that are on their way to this PE before sends have to.
const MANY: usize = 256;
/// So much may go to other nodes, one message after the other, before it is looked whether the
/// receiver wants no more: as much as a ring has room for.
const MUCH: usize = RING_BYTES;
/// What a message to another node counts beside its bytes.
const EACH: usize = MUCH / RING_CELLS;

/// In an answer: the request failed, because ranks disagree about a collective operation.
const CONFLICT: u64 = 1;
/// In an answer: the message was withdrawn, no receive has it.
pub(super) const WITHDRAWN: u64 = 2;

impl Core {
    /// Starts a message of the running rank.
    ///
    /// # Safety
    /// `data` is readable for `len` bytes until the request is done.
    #[inline]
    pub unsafe fn send(&mut self, message: &Outbound) -> Started {
        let from = self.current;
        let sequence = self.running().peers.number_outgoing(message.to, message.len as u64);
        let place = self.shared.location(message.to);
        let (pe, held) = match (place.plain(), place.pe()) {
            (Some(pe), _) => (pe, false),
            (None, Some(pe)) => (pe, message.mode.is_standard()),
            (None, None) => {
                if is_observed() {
                    self.observe_send(message, sequence);
                }
                // Not in a correct program (MPI leaves it undefined), but nobody shall hang.
                return Started::done();
            }
        };
        let here = pe == self.id;
        let (mut matched, mut jammed) = (None, false);
        if here && let Some(state) = self.ranks[message.to as usize].as_deref_mut() {
            let Outbound { context, source, tag, data, len, signature, .. } = *message;
            let key = Pattern { context, source, tag };
            let admitted = state.admit(from, sequence, &key);
            let others_early = state.peers.early() > 0;
            match admitted {
                // The receive was there: the data goes straight into it, whatever the mode.
                Match::Receive(receive) if !receive.reserves() => {
                    let number = receive.request();
                    // SAFETY: as the caller promises; posted buffers belong to their receives.
                    if unsafe { state.fill(number, &key, data, len as u64, signature) } {
                        self.ready.push_back(message.to);
                    }
                    if is_observed() {
                        self.observe_send_and_match(message, sequence);
                    }
                    return self.sent_here(message.to, others_early);
                }
                Match::Unexpected
                    if len <= size_of::<u64>()
                        && !message.mode.is_synchronous()
                        && !held
                        && !state.unexpected.is_indexed() =>
                {
                    // Written to its place in the list at once.
                    let mut packet = message.packet(from, sequence);
                    packet.len = len as u32;
                    let mut word = 0u64;
                    // SAFETY: the caller promises `len` bytes; there is room for as many.
                    unsafe { copy_short(data, (&raw mut word).cast(), len) };
                    packet.data = Data::words([word, 0, 0]);
                    state.unexpected.push_to_list(key, (packet, UnexpectedPayload::Inline));
                    let beyond = state.unexpected.is_beyond();
                    if state.probing {
                        self.notify(message.to, None);
                    }
                    if is_observed() {
                        self.observe_send(message, sequence);
                    }
                    if beyond {
                        self.mind_unexpected(message.to);
                    }
                    return self.sent_here(message.to, others_early);
                }
                Match::Early => jammed = state.peers.early() >= MANY,
                Match::Receive(_) | Match::Unexpected => {}
            }
            matched = Some(admitted);
        } else if here {
            jammed = self.items_for(message.to) >= MANY;
        }
        if is_observed() {
            self.observe_send(message, sequence);
        }
        let packet = message.packet(from, sequence);
        // SAFETY: as the caller promises.
        unsafe {
            if jammed {
                let started = self.send_here(packet, message, matched, held);
                self.stall(started)
            } else if here {
                self.send_here(packet, message, matched, held)
            } else {
                self.send_away(pe, packet, message, held)
            }
        }
    }

    /// The end of a send to a rank of this PE that is with its receiver. `others_early`: messages have come there before
    /// their turn.
    #[inline(always)]
    fn sent_here(&mut self, to: u32, others_early: bool) -> Started {
        if others_early {
            self.take_early(self.current, to);
        }
        Started::done()
    }

    /// A message of the running rank, for an observer.
    fn observed(&self, message: &Outbound, sequence: u32) -> Envelope {
        let Outbound { context, to, tag, len, .. } = *message;
        Envelope { from: self.current, to, sequence, context, tag, bytes: len as u64 }
    }

    #[cold]
    #[inline(never)]
    fn observe_send(&mut self, message: &Outbound, sequence: u32) {
        self.observe(Event::Sent(self.observed(message, sequence)));
    }

    #[cold]
    #[inline(never)]
    fn observe_send_and_match(&mut self, message: &Outbound, sequence: u32) {
        self.observe(Event::SentAndMatched(self.observed(message, sequence)));
    }

    /// Makes a send that is done wait until this PE has taken what has come. It goes to a rank that
    /// is coming here, or after messages that are, and a rank that sends and sends would keep the PE
    /// from ever taking those in. Or many have gone to another node, which may have said that it wants
    /// no more.
    #[cold]
    fn stall(&mut self, started: Started) -> Started {
        if let Started::Pending(..) = started {
            return started;
        }
        let rank = self.current;
        let request = self.running().new_request(Request::send());
        self.stalled.push((rank, request));
        self.sent_away = self.sent_away.max(1);
        Started::pending(request)
    }

    /// The running rank has sent something to many: it shall not flood those who come later.
    #[inline]
    pub(crate) fn when_sent(&mut self) -> Started {
        if !self.net.has_backlog() {
            return Started::done();
        }
        let me = self.current;
        let request = self.running().new_request(Request::send());
        if !self.net.finish_when_sent(me, request) {
            self.complete(me, request);
        }
        match self.running().take_if_done(request) {
            Some(outcome) => Started::Done(outcome),
            None => Started::pending(request),
        }
    }

    /// `matched`: what matching has said of it; `None`: its rank is not here. `held`: unless there is a receive, the data
    /// stays here.
    ///
    /// # Safety
    /// As [`send`](Self::send).
    #[inline]
    unsafe fn send_here(
        &mut self,
        mut packet: Packet,
        message: &Outbound,
        matched: Option<Match>,
        held: bool,
    ) -> Started {
        let in_arena = Arena::contains(message.data as usize);
        let by_copy = if held {
            message.len <= INLINE
        } else {
            message.len <= self.eager.here || message.mode.copies() || !in_arena
        };
        let waits = message.mode.is_synchronous() || !by_copy || held;
        let copies = !by_copy && message.mode.copies();
        if waits {
            packet.wants_finish = true;
            let outside = !by_copy && !in_arena && !copies;
            let request = Request { outside, ..Request::unmatched(&packet) };
            packet.request = self.running().new_request(request);
        }
        let body = if by_copy {
            if message.len <= u32::MAX as usize {
                packet.len = message.len as u32;
            } else {
                // Longer than a packet can say: the length travels as in a rendezvous.
                packet.data = Data::words([message.data as u64, message.len as u64, 0]);
                packet.kind = Kind::Rendezvous;
            }
            Body::Here(message.data)
        } else if copies {
            // SAFETY: as the caller promises.
            let data = unsafe { self.keep_copy(message, packet.request) };
            let staged = self.shared.nodes() > 1;
            packet.kind = if staged { Kind::Staged } else { Kind::Rendezvous };
            packet.data = Data::words([data as u64, message.len as u64, 0]);
            if staged { Body::Staged } else { Body::InArena(data.cast_mut()) }
        } else {
            packet.kind = if in_arena { Kind::Rendezvous } else { Kind::Staged };
            packet.data = Data::words([message.data as u64, message.len as u64, 0]);
            if in_arena { Body::InArena(message.data.cast_mut()) } else { Body::Staged }
        };
        // SAFETY: the data is readable for the message's length.
        unsafe {
            match matched {
                Some(matched) => self.place(&packet, body, matched),
                None => self.arrive_elsewhere(&packet, body),
            }
        }
        self.started(waits, packet.request)
    }

    /// # Safety
    /// As [`send`](Self::send).
    #[inline]
    unsafe fn send_away(
        &mut self,
        pe: u32,
        mut packet: Packet,
        message: &Outbound,
        held: bool,
    ) -> Started {
        let pe = pe as usize;
        // What fits into the packet comes along even if the receiver wants no data.
        let synchronous = message.mode.is_synchronous() || held;
        let longest =
            if held { INLINE } else { self.eager.to(message, self.shared.is_near(pe as u32)) };
        if message.len <= longest {
            packet.len = message.len as u32;
            if message.len <= INLINE {
                // SAFETY: both sides have `len <= INLINE` bytes.
                unsafe {
                    let to = packet.data.0.as_mut_ptr();
                    std::ptr::copy_nonoverlapping(message.data, to, message.len);
                }
            }
            if synchronous {
                packet.wants_finish = true;
                packet.request = self.running().new_request(Request::unmatched(&packet));
            }
            // SAFETY: as the caller promises.
            if unsafe { self.net.try_send(pe, &packet, message.data) } {
                if self.ready.is_empty() {
                    self.net.flush_lane(pe);
                }
                let started = self.started(synchronous, packet.request);
                if !self.shared.is_near(pe as u32) {
                    self.sent_away += EACH + message.len;
                    if self.sent_away >= MUCH {
                        return self.stall(started);
                    }
                }
                return started;
            }
            if message.mode == Mode::Buffered || synchronous {
                // SAFETY: as above; the data is copied.
                unsafe { self.net.send(pe, &packet, message.data) };
                return self.started(synchronous, packet.request);
            }
            if message.mode.copies() {
                // SAFETY: as above.
                unsafe { self.net.send(pe, &packet, message.data) };
                return self.when_sent();
            }
            let outside = message.len > 0 && !Arena::contains(message.data as usize);
            let request = Request { outside, to: Some(packet.to), ..Request::send() };
            let request = self.running().new_request(request);
            self.net.send_later(pe, &packet, message.data, request);
            return Started::pending(request);
        }
        let mut data = message.data;
        packet.request = self.running().new_request(Request::unmatched(&packet));
        if message.mode.copies() {
            // SAFETY: as the caller promises.
            data = unsafe { self.keep_copy(message, packet.request) };
        }
        let outside = !Arena::contains(data as usize);
        self.running().request_mut(packet.request).outside = outside;
        packet.wants_finish = true;
        packet.data = Data::words([data as u64, message.len as u64, 0]);
        // A copy stays where it was made, so a receiver may not look for it once ranks are shipped.
        let staged = outside
            || !self.shared.is_near(pe as u32)
            || (message.mode.copies() && self.shared.nodes() > 1);
        packet.kind = if staged { Kind::Staged } else { Kind::Rendezvous };
        // SAFETY: these kinds have nothing beside them.
        unsafe { self.net.send(pe, &packet, std::ptr::null()) };
        if self.ready.is_empty() {
            self.net.flush_lane(pe);
        }
        if message.mode == Mode::Buffered {
            self.detach(packet.request);
        }
        self.started(message.mode != Mode::Buffered, packet.request)
    }

    /// Copies the data of a message into the pool, where it stays until the request is done.
    ///
    /// # Safety
    /// The data is readable for the message's length.
    unsafe fn keep_copy(&mut self, message: &Outbound, request: u32) -> *const u8 {
        let copy = self.block_for(message.len, "the data of a message");
        // SAFETY: the copy is as long as the message.
        unsafe { std::ptr::copy_nonoverlapping(message.data, copy, message.len) };
        let request = self.running().request_mut(request);
        request.buffer = copy;
        request.copy = true;
        copy
    }

    /// How a send stands. Its receive may have been there already: then it is done, and nobody
    /// would wake a rank that waits for it.
    fn started(&mut self, waits: bool, request: u32) -> Started {
        if !waits {
            return Started::done();
        }
        match self.running().take_if_done(request) {
            Some(outcome) => Started::Done(outcome),
            None => Started::pending(request),
        }
    }

    /// The receiver of one of this PE's messages has it.
    pub fn finished(&mut self, packet: &Packet) {
        if self.rank(packet.to).is_none() {
            // SAFETY: nothing lies beside this kind.
            return unsafe { self.pass_on(packet, std::ptr::null()) };
        }
        let why = packet.data.word(0);
        if (why == CONFLICT || why == WITHDRAWN)
            && let Some(state) = self.rank(packet.to)
        {
            let outcome = &mut state.request_mut(packet.request).outcome;
            outcome.ended = RequestEnd::Cancelled;
            outcome.bytes = packet.data.word(1);
            outcome.tag = packet.data.word(2) as i32;
        }
        self.message_gone(packet.to, packet.request);
    }

    /// All of a message has come or gone.
    pub(crate) fn transfer_done(&mut self, Transfer { rank, request }: Transfer) {
        if let Some(state) = self.rank(rank) {
            state.request_mut(request).direct = false;
        }
        self.message_gone(rank, request);
    }

    /// All of a message has gone, or reached its receiver.
    pub(crate) fn message_gone(&mut self, rank: u32, request: u32) {
        let Some(state) = self.rank(rank) else { return self.complete_elsewhere(rank, request) };
        let has_ended = state.status == Status::Ended;
        let Request { copy, buffer, .. } = *state.request_mut(request);
        self.complete(rank, request);
        if copy {
            // SAFETY: the copy of what was sent, no longer needed.
            unsafe { hooks::free_in_arena(buffer) };
            if let Some(state) = self.rank(rank) {
                state.request_mut(request).copy = false;
            }
        }
        if has_ended {
            self.forget_rank_without_sends(rank);
        }
    }

    /// Sends the data of a staged message after its receive was matched.
    ///
    /// `data` is readable for `len` bytes until the sender's request is done.
    fn stream(&mut self, to: Place, chunk: &Packet, data: *const u8, len: u64, request: u32) {
        match to.pe() {
            None => self.message_gone(chunk.from, request),
            // The receiver has come here meanwhile.
            Some(pe) if pe == self.id => {
                // SAFETY: as the documentation says.
                self.stream_here(chunk, unsafe { std::slice::from_raw_parts(data, len as usize) });
                self.message_gone(chunk.from, request);
            }
            Some(pe) => self.net.stream(pe as usize, chunk, data, len, request),
        }
    }

    /// Hands the data of a staged message to a receiver on this PE, in the pieces that would
    /// otherwise go through a ring.
    fn stream_here(&mut self, chunk: &Packet, data: &[u8]) {
        let mut offset = 0;
        while offset < data.len() {
            let rest = &data[offset..];
            let len = if rest.len() > INLINE { rest.len().min(MAX_PAYLOAD) } else { SHORT_CHUNK };
            let part = &rest[..len.min(rest.len())];
            let mut packet = *chunk;
            packet.data = Data::words([offset as u64, 0, 0]);
            packet.len = part.len() as u32;
            if part.len() <= INLINE {
                packet.data.0[8..8 + part.len()].copy_from_slice(part);
            }
            // SAFETY: `part` is what lies beside the packet, if anything does.
            unsafe { self.chunk(&packet, part.as_ptr()) };
            offset += part.len();
        }
    }

    /// Tells a rank on another PE that others have another opinion of a collective operation: that
    /// it has `unit` bytes of a type, for one.
    pub(crate) fn send_conflict(
        &mut self,
        rank: u32,
        request: u32,
        unit: u32,
        signature: Signature,
    ) {
        let mut answer = Packet::new(Kind::Finished, rank, rank);
        answer.request = request;
        answer.data = Data::words([CONFLICT, u64::from(unit), u64::from(signature.number())]);
        self.post(&answer);
    }

    /// Sends the result of a collective operation to a rank on another PE whose buffer cannot be
    /// written from here.
    pub(crate) fn send_result(&mut self, rank: u32, request: u32, result: Vec<u8>) {
        let mut chunk = Packet::new(Kind::Chunk, rank, rank);
        chunk.request = request;
        match self.shared.location(rank).pe() {
            Some(pe) if pe != self.id => self.net.stream_owned(pe as usize, &chunk, result),
            // Not here yet: `stream` holds the pieces for it.
            _ => self.stream_here(&chunk, &result),
        }
    }

    /// The receive for a staged message is there: its data follows.
    pub(crate) fn clear_to_send(&mut self, packet: &Packet) {
        let Some(state) = self.rank(packet.to) else {
            // SAFETY: nothing lies beside this kind.
            return unsafe { self.pass_on(packet, std::ptr::null()) };
        };
        let Request { copy, buffer, .. } = *state.request_mut(packet.request);
        let mut chunk = Packet::new(Kind::Chunk, packet.to, packet.from);
        let [data, len, theirs] = [0, 1, 2].map(|i| packet.data.word(i));
        // A copy moves with its rank, to a place of its own.
        let data = if copy { buffer as u64 } else { data };
        let number = (theirs >> 32) as u32;
        if number != 0
            && let Some(remote) = self.net.remote()
        {
            let of = Transfer { rank: packet.to, request: packet.request };
            // SAFETY: the data is readable until the sender's request is done, and the rank stays
            // where it is while the request is direct.
            unsafe {
                remote.transfer(packet.source as usize, number, data as *const u8, len, of);
            }
            if let Some(state) = self.rank(packet.to) {
                state.request_mut(packet.request).direct = true;
            }
            return;
        }
        chunk.request = theirs as u32;
        let place = self.shared.location(packet.from);
        self.stream(place, &chunk, data as *const u8, len, packet.request);
    }
}
