//! Receiving: what happens when a message arrives, and when a receive is posted.

use crate::layout::Signature;
use crate::mailbox::{Pattern, PostedReceive};
use crate::net::parcel::Topic;
use crate::net::remote::Transfer;
use crate::net::{Data, Kind, Packet};
use crate::pe::core::{Core, Engine};
use crate::pe::events::{Envelope, Event, is_observed};
use crate::pe::matching::key;
use crate::pe::requests::{Completion, Request, RequestEnd, Room, Started, copy_short};
use crate::pe::sharing::SHARED;
use crate::pe::unexpected::{Body, UnexpectedPayload};
use vrt_slot::hooks;

/// Messages this long go to other nodes without a copy in between, where the transport can do that.
const DIRECT: u64 = 16 << 10;

/// The result of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Probed {
    /// The sender's rank in the communicator.
    pub source: i32,
    /// The message's tag.
    pub tag: i32,
    /// The message's length.
    pub bytes: u64,
    /// Its element type.
    pub signature: Signature,
}

impl Probed {
    fn of(packet: &Packet) -> Probed {
        Probed {
            source: packet.source,
            tag: packet.tag,
            bytes: packet.message_len(),
            signature: packet.signature,
        }
    }
}

impl Engine {
    /// Handles one packet from a ring.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes during the call.
    #[inline]
    pub unsafe fn handle(&mut self, packet: &Packet, payload: *const u8) {
        // SAFETY: as the caller promises.
        unsafe {
            if self.core.handle_own(packet, payload) {
            } else if packet.kind != Kind::Parcel {
                self.hand_on(packet, payload);
            } else if let Some(parcel) = self.parcels.take(packet, payload) {
                match parcel.topic {
                    Topic::Job => self.job_news(parcel.from, parcel.read()),
                    _ => self.hand_on_parcel(&parcel),
                }
            }
        }
    }
}

impl Core {
    /// Puts a message into a receive.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive), and the request's buffer is writable.
    #[inline]
    pub(super) unsafe fn fill(&mut self, packet: &Packet, body: Body, request: u32) {
        // SAFETY: as the caller promises. A sender who waits is asked where its data is, unless it is here, as its
        // memory leaves the node with it.
        unsafe {
            match body {
                Body::Inline => self.copy_into(packet, packet.data.0.as_ptr(), request),
                Body::Here(data) => self.copy_into(packet, data, request),
                Body::Pool(block) => {
                    self.copy_into(packet, block, request);
                    self.free_pooled(packet, block);
                }
                Body::InArena(data) if self.rank(packet.from).is_some() => {
                    self.copy_into(packet, data, request);
                }
                Body::InArena(data) => match self.shared.lease_of(packet.from) {
                    Some(_leased) => self.copy_into(packet, data, request),
                    None => self.ask_for_data(packet, request),
                },
                Body::Staged => self.ask_for_data(packet, request),
            }
        }
    }

    /// # Safety
    /// `data` is readable for the message's length; the request's buffer is writable.
    #[inline]
    unsafe fn copy_into(&mut self, packet: &Packet, data: *const u8, request: u32) {
        let len = packet.message_len();
        // SAFETY: as the caller promises.
        unsafe {
            if packet.kind == Kind::Rendezvous && len >= SHARED as u64 {
                self.copy_long(packet, data, request);
            } else if let Some(state) = self.ranks[packet.to as usize].as_deref_mut()
                && state.fill(request, &key(packet), data, len, packet.signature)
            {
                self.ready.push_back(packet.to);
            }
        }
        if is_observed() {
            self.observe_match(packet);
        }
        if packet.wants_finish {
            self.tell_finished(packet);
        }
    }

    /// [`copy_into`](Self::copy_into) of a message that another PE may help to copy.
    ///
    /// # Safety
    /// As there.
    unsafe fn copy_long(&mut self, packet: &Packet, data: *const u8, request: u32) {
        let Some((receive, room)) = self.describe(packet, request) else { return };
        let buffer = receive.buffer;
        if room > 0 {
            // SAFETY: as the caller promises.
            unsafe { self.copy_message(packet, data, buffer, room) };
        }
        self.complete(packet.to, request);
    }

    /// Writes what is known of a message to its receive; also gives how many bytes go into the buffer.
    fn describe(&mut self, packet: &Packet, request: u32) -> Option<(&mut Request, usize)> {
        let receive = self.rank(packet.to)?.request_mut(request);
        receive.outcome.source = packet.source;
        receive.outcome.tag = packet.tag;
        receive.outcome.bytes = packet.message_len();
        let room = receive.room_for(packet.message_len(), packet.signature);
        Some((receive, room))
    }

    #[cold]
    #[inline(never)]
    fn observe_match(&mut self, packet: &Packet) {
        self.observe(Event::Matched(Envelope::of(packet)));
    }

    pub(crate) fn tell_finished(&mut self, packet: &Packet) {
        let mut answer = Packet::new(Kind::Finished, packet.to, packet.from);
        answer.request = packet.request;
        self.post(&answer);
    }

    /// Sends a packet without further data to a rank, here or elsewhere.
    pub fn post(&mut self, packet: &Packet) {
        // SAFETY: nothing lies beside the packet, says the documentation.
        unsafe {
            if let Some(pe) = self.shared.location(packet.to).pe()
                && pe != self.id
            {
                self.net.send(pe as usize, packet, std::ptr::null());
            } else if !self.handle_own(packet, std::ptr::null()) {
                self.take_again(packet, std::ptr::null());
            }
        }
    }

    fn ask_for_data(&mut self, packet: &Packet, request: u32) {
        let Some((receive, _)) = self.describe(packet, request) else { return };
        let (buffer, room) = (receive.buffer, receive.outcome.capacity);
        let is_refused = receive.outcome.ended == RequestEnd::OtherType;
        if is_observed() {
            self.observe_match(packet);
        }
        if is_refused {
            self.complete(packet.to, request);
            return self.tell_finished(packet);
        }
        let mut answer = Packet::new(Kind::ClearToSend, packet.to, packet.from);
        answer.request = packet.request;
        let (address, len) = (packet.data.word(0), packet.data.word(1));
        let mut number = 0;
        if len >= DIRECT && len <= room && !self.shared.has_near(packet.from) {
            let of = Transfer { rank: packet.to, request };
            // SAFETY: the buffer belongs to the receive until it is done, and the rank stays where
            // it is while the request is direct.
            let expected = self.net.remote().and_then(|it| unsafe { it.expect(buffer, len, of) });
            if let (Some(expected), Some(state)) = (expected, self.rank(packet.to)) {
                number = expected;
                state.request_mut(request).direct = true;
            }
        }
        answer.source = self.id as i32;
        answer.data = Data::words([address, len, u64::from(number) << 32 | u64::from(request)]);
        self.post(&answer);
    }

    /// A part of a staged message has come.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    pub(crate) unsafe fn chunk(&mut self, packet: &Packet, payload: *const u8) {
        let Some(state) = self.rank(packet.to) else {
            // SAFETY: as the caller promises.
            return unsafe { self.pass_on(packet, payload) };
        };
        let receive = state.request_mut(packet.request);
        let (offset, len) = (packet.data.word(0), u64::from(packet.len));
        let data = if packet.payload() == 0 { packet.data.0[8..].as_ptr() } else { payload };
        let room = receive.outcome.capacity.saturating_sub(offset).min(len) as usize;
        // SAFETY: `room` bytes fit behind `offset`, and as many are readable.
        unsafe {
            if room > 0 {
                let to = receive.buffer.add(offset as usize);
                std::ptr::copy_nonoverlapping(data, to, room);
            }
        }
        receive.received += len;
        if receive.received == receive.outcome.bytes {
            self.complete(packet.to, packet.request);
        }
    }

    /// Handles a packet of a kind that is the core's; false if it is an extension's.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes during the call.
    #[inline(always)]
    unsafe fn handle_own(&mut self, packet: &Packet, payload: *const u8) -> bool {
        // SAFETY: as the caller promises; addresses in packets come from senders who wait.
        unsafe {
            match packet.kind {
                Kind::Eager if packet.payload() == 0 => self.arrive(packet, Body::Inline),
                Kind::Eager => self.arrive(packet, Body::Here(payload)),
                Kind::Rendezvous => {
                    self.arrive(packet, Body::InArena(packet.data.word(0) as *mut u8));
                }
                Kind::Staged => self.arrive(packet, Body::Staged),
                Kind::Withdraw => self.arrive(packet, Body::Inline),
                Kind::Chunk => self.chunk(packet, payload),
                Kind::ClearToSend => self.clear_to_send(packet),
                Kind::Finished => self.finished(packet),
                Kind::Coming => self.expect(packet),
                Kind::Moved => self.learn(packet),
                Kind::Hold => self.learn_hold(packet),
                Kind::Help => self.help(packet),
                Kind::Collective | Kind::Parcel | Kind::Memory | Kind::Access | Kind::CountUp => {
                    return false;
                }
            }
        }
        true
    }

    /// Starts a receive of the running rank.
    ///
    /// # Safety
    /// The room's buffer is writable for its capacity until the request is done.
    #[inline(always)]
    pub unsafe fn receive(&mut self, pattern: Pattern, room: Room) -> Started {
        let state = self.running();
        if state.unexpected.is_empty() {
            return state.post(pattern, room);
        }
        let Room { buffer, capacity, signature } = room;
        if let Some((packet, UnexpectedPayload::Inline)) = state.unexpected.first(&pattern)
            && !packet.wants_finish
            && packet.signature == signature
        {
            // Short and here: done without a request.
            let outcome = Completion {
                source: packet.source,
                tag: packet.tag,
                bytes: packet.message_len(),
                capacity: capacity as u64,
                ended: RequestEnd::Normally,
            };
            let len = outcome.bytes.min(outcome.capacity) as usize;
            // SAFETY: the packet holds the message; the caller promises `capacity` at `buffer`.
            unsafe { copy_short(packet.data.0.as_ptr(), buffer, len) };
            if is_observed() {
                let matched = Envelope::of(packet);
                return self.take_observed(matched, outcome);
            }
            state.unexpected.drop_first();
            if state.unexpected.is_low() {
                self.mind_taken(self.current);
            }
            return Started::Done(outcome);
        }
        // SAFETY: as the caller promises.
        unsafe { self.receive_kept(pattern, room) }
    }

    /// Starts a receive of the running rank that it will wait for later. If the rank has run ahead, the message that it
    /// got is kept until it waits, so that it lets others run then.
    ///
    /// # Safety
    /// As [`receive`](Self::receive).
    #[inline]
    pub unsafe fn begin_receive(&mut self, pattern: Pattern, room: Room) -> Started {
        // SAFETY: as the caller promises.
        match unsafe { self.receive(pattern, room) } {
            Started::Done(outcome) if self.has_run_ahead() => {
                let done = Request { outcome, done: true, ..Request::send() };
                Started::pending(self.running().new_request(done))
            }
            started => started,
        }
    }

    /// The end of a receive that got the first unexpected message, where somebody is told. A function of its own, so
    /// that others keep nothing for it.
    #[cold]
    #[inline(never)]
    fn take_observed(&mut self, matched: Envelope, outcome: Completion) -> Started {
        let state = self.running();
        state.unexpected.drop_first();
        if state.unexpected.is_low() {
            self.mind_taken(self.current);
        }
        self.observe(Event::Matched(matched));
        Started::Done(outcome)
    }

    /// [`receive`](Self::receive), when messages have come of which the first is another one, or
    /// not a short one.
    ///
    /// # Safety
    /// As there.
    unsafe fn receive_kept(&mut self, pattern: Pattern, room: Room) -> Started {
        let state = self.running();
        let Some((_, (packet, payload))) = state.unexpected.take(&pattern) else {
            return state.post(pattern, room);
        };
        let request = state.new_request(Request::receive(room, Some(pattern)));
        // SAFETY: the data of a kept message stays where it is until it is received; the caller promises the buffer.
        unsafe { self.fill(&packet, payload.into(), request) };
        self.has_taken();
        self.outcome(request)
    }

    /// The running rank has taken a message that was unexpected.
    #[inline]
    pub(super) fn has_taken(&mut self) {
        let state = self.running();
        if state.unexpected.is_low() {
            self.mind_taken(self.current);
        }
    }

    /// Gives back what a kept message had in a pool.
    ///
    /// # Safety
    /// The block was this message's, and nobody uses it any more.
    pub(super) unsafe fn free_pooled(&mut self, packet: &Packet, block: *mut u8) {
        // SAFETY: as the caller promises.
        unsafe { hooks::free_in_arena(block) };
        if let Some(state) = self.rank(packet.to) {
            state.flow.pooled = state.flow.pooled.saturating_sub(packet.message_len() as usize);
        }
        self.pool_shrank();
    }

    /// The state of a request.
    pub fn outcome(&mut self, request: u32) -> Started {
        match self.running().take_if_done(request) {
            Some(outcome) => Started::Done(outcome),
            None => Started::pending(request),
        }
    }

    /// Searches for a message without receiving it.
    pub fn probe(&mut self, pattern: Pattern) -> Option<Probed> {
        let state = self.running();
        if state.unexpected.is_empty() {
            return None;
        }
        state.unexpected.find(&pattern).map(|(_, (packet, _))| Probed::of(packet))
    }

    /// Takes a message out of matching; it is received by its number.
    pub fn matched_probe(&mut self, pattern: Pattern) -> Option<(u32, Probed)> {
        let state = self.running();
        let (_, (packet, payload)) = state.unexpected.take(&pattern)?;
        let number = state.keep_matched((packet, payload));
        self.has_taken();
        Some((number, Probed::of(&packet)))
    }

    /// Receives a message that a matched probe took.
    ///
    /// # Safety
    /// As [`receive`](Self::receive).
    pub unsafe fn receive_matched(&mut self, number: u32, room: Room) -> Started {
        let state = self.running();
        let taken = state.matched.get_mut(number as usize).and_then(Option::take);
        let Some((packet, payload)) = taken else { return Started::done() };
        let request = state.new_request(Request::receive(room, Some(key(&packet))));
        // SAFETY: the data of a kept message stays where it is until it is received; the caller promises the buffer.
        unsafe { self.fill(&packet, payload.into(), request) };
        self.has_taken();
        self.outcome(request)
    }

    /// Withdraws a posted receive. Its request is then done, cancelled, unless a message was there first.
    pub fn cancel(&mut self, request: u32) -> bool {
        let state = self.running();
        let Request { pattern: Some(pattern), to: None, reserves, .. } =
            *state.request_mut(request)
        else {
            return false;
        };
        let receive = if reserves {
            PostedReceive::reserving(request)
        } else {
            PostedReceive::into_buffer(request)
        };
        if !state.posted.cancel(&pattern, receive) {
            return false;
        }
        state.request_mut(request).outcome.ended = RequestEnd::Cancelled;
        let rank = self.current;
        self.complete(rank, request);
        true
    }

    /// Gives up a receive of the running rank that a message has come for: the message goes to the
    /// next receive that asks for it, or is the first of the unexpected ones again. False if the
    /// message has not come, or not as it was sent.
    pub(crate) fn put_back(&mut self, request: u32) -> bool {
        let me = self.current;
        let state = self.running();
        let Request { done, pattern, outcome, buffer, signature, .. } = *state.request_mut(request);
        let whole = done && outcome.ended == RequestEnd::Normally && !outcome.is_truncated();
        let Some(pattern) = pattern.filter(|_| whole) else { return false };
        state.take_if_done(request);
        if self.has_observer() {
            self.observe(Event::PutBack { rank: me });
        }
        let mut packet = Packet::new(Kind::Eager, me, me);
        packet.context = pattern.context;
        packet.source = outcome.source;
        packet.tag = outcome.tag;
        packet.signature = signature;
        match u32::try_from(outcome.bytes) {
            Ok(len) => packet.len = len,
            Err(_) => {
                packet.kind = Kind::Rendezvous;
                packet.data = Data::words([0, outcome.bytes, 0]);
            }
        }
        // SAFETY: the receive has got the message, which is the beginning of its buffer.
        let message = unsafe { self.keep_payload(&packet, Body::Here(buffer)) };
        self.offer_again(message);
        true
    }

    /// Drops a message that nobody will receive.
    pub(crate) fn forget(&mut self, packet: &Packet, payload: UnexpectedPayload) {
        if let UnexpectedPayload::Pool(block) = payload {
            // SAFETY: the block was this message's alone.
            unsafe { self.free_pooled(packet, block) };
        }
        if packet.wants_finish {
            self.tell_finished(packet);
        }
    }

    /// A message for a rank that has ended: nobody will receive it, but its sender may wait.
    #[cold]
    pub(crate) fn drop_for_ended(&mut self, packet: &Packet) {
        // Not in a correct program (MPI leaves it undefined), but its sender shall not hang.
        if packet.wants_finish {
            self.tell_finished(packet);
        }
    }
}
