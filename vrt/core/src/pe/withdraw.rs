//! Withdrawing a message that no receive has matched (MPI-4.1 section 3.8.4).
//!
//! Only a send that waits for its receive can be withdrawn; any other one is done when it has begun. To cancel it, the
//! sender sends a packet after it, in the order of the pair, so that the packet finds the message wherever the message
//! is then, however ranks have moved:
//!
//! ```text
//! sender                                    receiver's PE
//! message n (waits) ---------------------> matched: Finished, or ClearToSend, is on its way
//!                                          or unexpected
//! Withdraw, number n + k ----------------> unexpected still? dropped; Finished, withdrawn ---> done, cancelled
//!                                          matched? nothing: the send ends as any other
//! ```
//!
//! So the sender's request completes soon in both cases, whatever the receiver does, as the standard requires.

use crate::mailbox::Pattern;
use crate::net::{Data, Kind, Packet};
use crate::pe::Core;
use crate::pe::contexts::NO_CONTEXT;
use crate::pe::requests::Request;
use crate::pe::send::WITHDRAWN;
use crate::pe::unexpected::UnexpectedPayload;

impl Core {
    /// Requests the cancellation of an operation of the running rank: a receive is withdrawn at once, if no message has
    /// arrived for it, a send as soon as its receiver's PE has answered. Completed operations are unchanged.
    pub fn cancel_any(&mut self, request: u32) {
        if !self.cancel(request) {
            self.withdraw(request);
        }
    }

    /// Takes back a send of the running rank, if its receive is not there.
    fn withdraw(&mut self, request: u32) {
        let me = self.current;
        let state = self.running();
        let Request { pattern: Some(sent), to: Some(to), done: false, .. } =
            *state.request_mut(request)
        else {
            return;
        };
        let mut packet = Packet::new(Kind::Withdraw, me, to);
        packet.sequence = state.peers.number_control(to);
        // No receive asks for it.
        packet.context = NO_CONTEXT;
        packet.source = sent.source;
        packet.tag = sent.tag;
        packet.request = request;
        packet.data = Data::words([u64::from(sent.context), 0, 0]);
        self.post(&packet);
    }

    /// A sender takes back a message that has come before this packet.
    #[cold]
    pub(super) fn take_back(&mut self, packet: &Packet) {
        let Some(state) = self.rank(packet.to) else { return };
        let Packet { from, source, tag, request, .. } = *packet;
        let key = Pattern { context: packet.data.word(0) as u32, source, tag };
        let found = state.unexpected.take_if(&key, |(message, _)| {
            message.from == from && message.wants_finish && message.request == request
        });
        let Some((message, payload)) = found else { return };
        if let UnexpectedPayload::Pool(block) = payload {
            // SAFETY: the block was this message's alone, which nobody will receive.
            unsafe { self.free_pooled(&message, block) };
        }
        if self.rank(packet.to).is_some_and(|state| state.unexpected.is_low()) {
            self.mind_taken(packet.to);
        }
        let mut answer = Packet::new(Kind::Finished, packet.to, from);
        answer.request = request;
        answer.data = Data::words([WITHDRAWN, 0, 0]);
        self.post(&answer);
    }
}
