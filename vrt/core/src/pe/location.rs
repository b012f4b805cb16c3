//! The locations of ranks that are not here, and the handling of packets for them.
//!
//! `location[rank]`, in the memory of the node, names the PE that has a rank or to which it is moving; only the rank's
//! PE changes it. A packet for a rank that is not here is
//!
//! | the location is | |
//! |---|---|
//! | this PE | kept until the rank has arrived, and processed then in order of arrival |
//! | another PE | passed on; a PE of another node that sent it is told where the rank is |
//! | none: it has ended | dropped; a waiting sender is told that the send is done |
//!
//! Other nodes learn of locations late. A packet can overtake the news that a rank is coming (`Coming`) on another way,
//! and is sent back and forth until that has arrived; it is never lost, and sequence numbers keep the order.

use std::collections::VecDeque;

use crate::net::{Data, Kind, Packet};
use crate::pe::core::{Core, Engine};
use crate::pe::stray::{Stray, StrayPacket};
use crate::pe::unexpected::Body;
use vrt_shm::Place;

/// Where a rank that is not here is.
enum Whereabouts {
    Ended,
    ComingHere,
    On(usize),
}

impl Core {
    /// Where a rank is that is not on this PE.
    fn find(&self, rank: u32) -> Whereabouts {
        match self.shared.location(rank).pe() {
            None => Whereabouts::Ended,
            Some(pe) if pe == self.id => Whereabouts::ComingHere,
            Some(pe) => Whereabouts::On(pe as usize),
        }
    }

    /// A message has come for a rank that is not here.
    ///
    /// # Safety
    /// As [`arrive`](Self::arrive).
    #[cold]
    pub(super) unsafe fn arrive_elsewhere(&mut self, packet: &Packet, body: Body) {
        match self.find(packet.to) {
            Whereabouts::Ended => self.drop_for_ended(packet),
            Whereabouts::ComingHere => {
                // SAFETY: as the caller promises.
                let (packet, payload) = unsafe { self.keep_payload(packet, body) };
                self.coming.entry(packet.to).or_default().push(Stray::Message(packet, payload));
            }
            Whereabouts::On(pe) => {
                let payload = match body {
                    Body::Here(data) => data,
                    _ => std::ptr::null(),
                };
                // SAFETY: only messages from a ring are for ranks of other PEs, and what lies
                // beside those is readable during this call.
                unsafe { self.forward(packet, pe, payload) };
            }
        }
    }

    /// Handles a packet, other than a message, for a rank that is not here.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    #[cold]
    pub unsafe fn pass_on(&mut self, packet: &Packet, payload: *const u8) {
        match self.find(packet.to) {
            Whereabouts::Ended => {}
            Whereabouts::ComingHere => {
                // SAFETY: as the caller promises.
                let kept = unsafe { StrayPacket::of(packet, payload) };
                self.coming.entry(packet.to).or_default().push(Stray::Other(kept));
            }
            // SAFETY: as the caller promises.
            Whereabouts::On(pe) => unsafe { self.forward(packet, pe, payload) },
        }
    }

    /// A request of a rank that has moved meanwhile is done.
    #[cold]
    pub(super) fn complete_elsewhere(&mut self, rank: u32, request: u32) {
        let mut packet = Packet::new(Kind::Finished, rank, rank);
        packet.request = request;
        self.post(&packet);
    }

    /// How many messages and answers have come for a rank that is coming.
    pub(super) fn items_for(&self, rank: u32) -> usize {
        self.coming.get(&rank).map_or(0, Vec::len)
    }

    /// A rank is here now: takes the messages that have come for it. What else has come, which may
    /// be an extension's, is taken after them, when this PE has taken the packets at hand.
    pub(crate) fn take_what_came_for(&mut self, rank: u32) {
        for item in self.coming.remove(&rank).unwrap_or_default() {
            match item {
                Stray::Message(packet, payload) => self.arrive_kept(&packet, payload),
                Stray::Other(kept) => self.again.push_back(kept),
            }
        }
    }

    /// Has a packet taken as if it had come from elsewhere.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    #[cold]
    pub(super) unsafe fn take_again(&mut self, packet: &Packet, payload: *const u8) {
        // SAFETY: as the caller promises.
        self.again.push_back(unsafe { StrayPacket::of(packet, payload) });
    }

    /// Whether packets are to be taken once more.
    pub(super) fn has_kept(&self) -> bool {
        !self.again.is_empty()
    }

    /// Passes a packet on to another PE.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    unsafe fn forward(&mut self, packet: &Packet, pe: usize, payload: *const u8) {
        let mut packet = *packet;
        if !self.shared.is_near(pe as u32) {
            if packet.kind == Kind::Rendezvous {
                // The sender's memory cannot be read there.
                packet.kind = Kind::Staged;
            }
            self.tell_sender(packet.to);
        }
        // SAFETY: as the caller promises.
        unsafe { self.net.send(pe, &packet, payload) };
    }

    /// Tells the PE that sent what could not be delivered here where the rank is now.
    fn tell_sender(&mut self, rank: u32) {
        let from = self.receiving_from;
        if from != self.id && !self.shared.is_near(from) {
            self.tell_location(rank, from);
        }
    }

    /// Tells a PE of another node where a rank is.
    fn tell_location(&mut self, rank: u32, to: u32) {
        let (place, version) = self.shared.location_entry(rank).get_with_version();
        let mut control = Packet::new(Kind::Moved, rank, to);
        control.data = Data::words([u64::from(place.to_bits()), u64::from(version), 0]);
        // SAFETY: nothing lies beside this kind.
        unsafe { self.net.send(to as usize, &control, std::ptr::null()) };
    }

    /// News of where a rank is.
    pub(super) fn learn(&mut self, packet: &Packet) {
        let (place, version) = (packet.data.word(0) as u32, packet.data.word(1) as u32);
        // Old news changes nothing.
        let _ = self.shared.location_entry(packet.from).learn(Place::from_bits(place), version);
    }

    /// Tells a PE of another node that a rank will come.
    pub(crate) fn announce(&mut self, rank: u32, to: u32, version: u32) {
        let mut coming = Packet::new(Kind::Coming, rank, to);
        coming.data = Data::words([u64::from(version), 0, 0]);
        // SAFETY: nothing lies beside this kind.
        unsafe { self.net.send(to as usize, &coming, std::ptr::null()) };
    }

    /// A rank is about to come.
    pub(super) fn expect(&mut self, packet: &Packet) {
        if self.shared.will_come(packet.from) {
            let version = packet.data.word(0) as u32;
            self.shared.location_entry(packet.from).set(Place::on(self.id), version);
        }
    }

    /// A rank has come from another node: its first PE, where everybody asks who has never heard
    /// of it, shall know.
    pub(crate) fn has_arrived(&mut self, rank: u32) {
        self.shared.lease(rank).has_come();
        let home = self.shared.home(rank);
        if !self.shared.is_near(home) {
            self.tell_location(rank, home);
        }
    }
}

impl Engine {
    /// Takes packets that are to be taken once more; whether there were any.
    #[inline(always)]
    pub(super) fn take_kept(&mut self) -> bool {
        self.has_kept() && self.take_kept_packets()
    }

    #[cold]
    fn take_kept_packets(&mut self) -> bool {
        let kept: VecDeque<StrayPacket> = std::mem::take(&mut self.core.again);
        for StrayPacket { packet, payload } in kept {
            // SAFETY: the bytes beside the packet were kept with it.
            unsafe { self.handle(&packet, payload.as_ptr()) };
        }
        true
    }
}
