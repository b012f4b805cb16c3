//! Matching: what becomes of a message that has arrived for a rank of this PE. There is one entrance for decisions,
//! [`RankState::admit`], whichever way a message came, and one way on, [`Core::place`].
//!
//! ```text
//!             admit                                place
//! arrives ----------> Early       not its turn     kept beside its partner; admitted again when its turn comes
//!                     Receive     one asks for it  its data goes into the buffer
//!                       reserves  one without a    kept under a number (`reserve`)
//!                                 buffer so far
//!                     Unexpected  none asks        kept in order of arrival, until a receive takes it
//! ```
//!
//! Every message that is admitted and not early counts as received from its partner, so the next one is admitted after
//! it. What was early is looked at again after each message that was not.

use crate::mailbox::{Pattern, PostedReceive};
use crate::net::{INLINE, Kind, Packet};
use crate::pe::core::Core;
use crate::pe::rank_state::RankState;
use crate::pe::unexpected::{Body, UnexpectedPayload, pooled};

/// What matching says of a message.
#[must_use = "the message counts as received"]
#[derive(Clone, Copy, Debug)]
pub(super) enum Match {
    /// Others of its pair come first. Nothing has changed.
    Early,
    /// It is the next of its pair, and this receive was the first that asked for it.
    Receive(PostedReceive),
    /// It is the next of its pair, and no receive asks for it.
    Unexpected,
}

/// The key of a message.
pub(super) fn key(packet: &Packet) -> Pattern {
    Pattern { context: packet.context, source: packet.source, tag: packet.tag }
}

impl RankState {
    /// Decides what becomes of a message, in the order of its pair (MPI-4.1 section 3.5).
    #[inline(always)]
    pub(super) fn admit(&mut self, from: u32, sequence: u32, key: &Pattern) -> Match {
        if !self.peers.is_next(from, sequence) {
            return Match::Early;
        }
        self.posted.take(key).map_or(Match::Unexpected, Match::Receive)
    }
}

impl Core {
    /// The first packet of a message has arrived.
    ///
    /// # Safety
    /// The body's address is readable for the length given in the packet.
    #[inline]
    pub unsafe fn arrive(&mut self, packet: &Packet, body: Body) {
        let Some(state) = self.ranks[packet.to as usize].as_deref_mut() else {
            // SAFETY: as the caller promises.
            return unsafe { self.arrive_elsewhere(packet, body) };
        };
        let matched = state.admit(packet.from, packet.sequence, &key(packet));
        // SAFETY: as the caller promises.
        unsafe { self.place(packet, body, matched) };
    }

    /// [`arrive`](Self::arrive) of a message that was kept until its rank came.
    pub(crate) fn arrive_kept(&mut self, packet: &Packet, payload: UnexpectedPayload) {
        if let Some(state) = self.rank(packet.to) {
            state.flow.pooled += pooled(packet, payload);
            // SAFETY: the data of a kept message stays where it is until it is received.
            unsafe { self.arrive(packet, payload.into()) };
        }
    }

    /// Puts a message for a rank of this PE where it belongs, then those that came before their turn and are next now.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive).
    #[inline]
    pub(super) unsafe fn place(&mut self, packet: &Packet, body: Body, matched: Match) {
        // SAFETY: as the caller promises.
        unsafe { self.put(packet, body, matched) };
        if self.rank(packet.to).is_some_and(|state| state.peers.early() > 0) {
            self.take_early(packet.from, packet.to);
        }
    }

    /// [`place`](Self::place) of one message alone.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive).
    #[inline]
    unsafe fn put(&mut self, packet: &Packet, body: Body, matched: Match) {
        // SAFETY: as the caller promises.
        unsafe {
            match matched {
                Match::Receive(receive) => self.give(packet, body, receive),
                Match::Unexpected => self.keep(packet, body),
                Match::Early => {
                    let message = self.keep_payload(packet, body);
                    if let Some(state) = self.rank(packet.to) {
                        state.peers.keep_early(packet.from, packet.sequence, message);
                    }
                }
            }
        }
    }

    /// A message was the next of its pair: so may be now what has come before its turn.
    #[cold]
    pub(super) fn take_early(&mut self, from: u32, to: u32) {
        while let Some(state) = self.rank(to)
            && let Some((packet, payload)) = state.peers.take_early(from)
        {
            let matched = state.admit(from, packet.sequence, &key(&packet));
            // SAFETY: the data of a kept message stays where it is until it is received.
            unsafe { self.put(&packet, payload.into(), matched) };
        }
    }

    /// Gives a message to the receive that has matched it.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive).
    #[inline]
    pub(super) unsafe fn give(&mut self, packet: &Packet, body: Body, receive: PostedReceive) {
        // SAFETY: as the caller promises; a request's buffer belongs to its receive until that is done.
        unsafe {
            if receive.reserves() {
                let message = self.keep_payload(packet, body);
                self.reserve(message, receive.request());
            } else {
                self.fill(packet, body, receive.request());
            }
        }
    }

    /// Keeps a message for which there is no receive.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive).
    #[inline]
    unsafe fn keep(&mut self, packet: &Packet, body: Body) {
        if packet.kind == Kind::Withdraw {
            return self.take_back(packet);
        }
        // SAFETY: as the caller promises.
        let message = unsafe { self.keep_payload(packet, body) };
        if let Some(state) = self.rank(packet.to) {
            state.unexpected.push(key(packet), message);
            let beyond = state.is_beyond();
            // A rank in a probe waits for no request of its own.
            if state.probing {
                self.notify(packet.to, None);
            }
            if beyond {
                self.mind_unexpected(packet.to);
            }
        }
    }

    /// A message of the running rank that had been matched goes to the next receive that asks for it, or is the first
    /// of the unexpected ones again.
    pub(super) fn offer_again(&mut self, (packet, payload): (Packet, UnexpectedPayload)) {
        let me = self.current;
        let state = self.running();
        match state.posted.take(&key(&packet)) {
            // SAFETY: the data of a kept message stays where it is until it is received.
            Some(next) => unsafe { self.give(&packet, payload.into(), next) },
            None => {
                state.unexpected.push_front(key(&packet), (packet, payload));
                self.notify(me, None);
            }
        }
    }

    /// Keeps the data of a message until it is received.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive).
    #[inline]
    pub(crate) unsafe fn keep_payload(
        &mut self,
        packet: &Packet,
        body: Body,
    ) -> (Packet, UnexpectedPayload) {
        let len = packet.message_len() as usize;
        let mut kept = *packet;
        let payload = match body {
            Body::Inline => UnexpectedPayload::Inline,
            // SAFETY: `len` bytes are readable at `data`; the block is as long.
            Body::Here(data) => unsafe {
                if len <= INLINE {
                    std::ptr::copy_nonoverlapping(data, kept.data.0.as_mut_ptr(), len);
                    return (kept, UnexpectedPayload::Inline);
                }
                let block = self.block_for(len, "unexpected messages");
                std::ptr::copy_nonoverlapping(data, block, len);
                self.pool_grew();
                if let Some(state) = self.rank(packet.to) {
                    state.flow.pooled += len;
                }
                UnexpectedPayload::Pool(block)
            },
            Body::Pool(block) => UnexpectedPayload::Pool(block),
            Body::InArena(data) => UnexpectedPayload::InArena(data),
            Body::Staged => UnexpectedPayload::Staged,
        };
        (kept, payload)
    }
}
