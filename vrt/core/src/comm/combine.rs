//! Collective operations on small data: the ranks of a PE combine first, then the PEs.
//!
//! A rank deposits its contribution with its PE and waits (or continues, where MPI allows it). The last rank of the PE
//! makes the PE send its data to the PEs that need it, in one packet if it fits. So 64 ranks on 2 PEs exchange two
//! packets, not 63 messages.
//!
//! The data of a PE are *parts* of a fixed tree over rank numbers; see `parts`. If there are many PEs, they do not send
//! to each other directly but along a tree of PEs; see `relay`.
//!
//! ```text
//! rank arrives: part added ---- last one here? -yes-> fold; send to others -+
//! packet comes: parts added ------------------------------------------------+-> all covered?
//!                                                     results to those who wait <-yes-+
//! ```
//!
//! An operation is identified by its context and its number in it, which grows in the same way on every rank. A packet
//! may arrive before any rank of the PE has begun the operation.
//!
//! "The ranks of a PE" are those that *began* there: the contribution of a rank that has moved is sent to its first PE,
//! its home (see `guests`). So the PE that collects a contribution never changes, however ranks move in the middle of
//! an operation. The result is where the rank waits for it: on its current PE, if that gets the result anyway,
//! otherwise at home; and it follows the rank if it moves in between.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use std::rc::Rc;

use crate::comm::groups::{Groups, Taking};
use crate::comm::guests::{self, Contributions, Guests};
use crate::comm::parts::{EVERYBODY, Subtree};
use crate::comm::relay::Relay;
use crate::comm::spec::{Disagreement, PART_HEADER, PHASE_BITS, Spec, Waiting, What};
use crate::comm::under_way::{Key, UnderWay};
use crate::net::local::MAX_PAYLOAD;
use crate::net::parcel::Parcel;
use crate::net::shared::Shared;
use crate::net::{INLINE, Kind, Packet};
use crate::pe::{self, Completion, Core, Engine, Request, Room, Started, copy_short};
use vrt_slot::Arena;

/// The small collective operations of a PE.
#[derive(Debug, Default)]
pub struct Combining {
    under_way: UnderWay,
    /// A buffer for a packet's data, reused between packets.
    outgoing: Vec<u8>,
    /// Which ranks take part in the operations of each context.
    pub groups: Groups,
    /// Contributions in flight from ranks that began elsewhere.
    guests: Guests,
}

/// Starts a small collective operation of the running rank.
///
/// # Safety
/// `input` is readable for `unit` bytes now (if the rank contributes), and `out` is writable
/// for the result (if the rank gets it) until the request is done.
#[inline]
pub(crate) unsafe fn combine(
    engine: &mut Engine,
    spec: &Spec,
    number: Option<u32>,
    input: *const u8,
    out: *mut u8,
) -> Started {
    let (combining, core) = engine.part::<Combining>();
    // SAFETY: as the caller promises.
    unsafe { combining.combine(core, spec, number, input, out) }
}

/// A rank begins an operation that has no [`Collective`](super::algorithms::Collective).
#[cold]
#[inline(never)]
fn observe_begin(core: &mut Core, spec: &Spec) {
    let what = match (&spec.what, spec.root) {
        _ if spec.unit == 0 => "barrier",
        (What::Reduce(_), None) => "all_reduce",
        (What::Reduce(_), Some(_)) => "reduce",
        (What::Concatenate, None) => "all_gather",
        (What::Concatenate, Some(_)) => "gather",
        (What::Broadcast, _) => "broadcast",
        (What::Exchange, _) => "all_to_all",
    };
    core.observe_collective(spec.context, what);
}

/// Ranks that began here, but live elsewhere, take part in an operation.
pub(super) fn contributions_came(engine: &mut Engine, parcel: &Parcel) {
    let Contributions { spec, number, places, mut waiting, bytes } = parcel.read();
    let (combining, core) = engine.part::<Combining>();
    let each = bytes.len() / places.len().max(1);
    for (i, rank) in places.into_iter().enumerate() {
        let bytes = &bytes[i * each..(i + 1) * each];
        combining.contribute(core, &Spec { rank, ..spec }, number, waiting.take(), bytes);
    }
}

/// What guests contribute must not wait any longer.
pub(super) fn send_gathered(engine: &mut Engine) {
    let (combining, core) = engine.part::<Combining>();
    combining.guests.send_all(core);
}

/// Parts have come from another PE.
///
/// # Safety
/// `payload` is readable for `packet.payload()` bytes.
pub(super) unsafe fn parts_came(engine: &mut Engine, packet: &Packet, payload: *const u8) {
    let (combining, core) = engine.part::<Combining>();
    // SAFETY: as the caller promises.
    unsafe { combining.take_packet(core, packet, payload) };
}

impl Combining {
    /// Starts a small collective operation of the running rank.
    ///
    /// # Safety
    /// `input` is readable for `unit` bytes now (if the rank contributes), and `out` is writable
    /// for the result (if the rank gets it) until the request is done.
    unsafe fn combine(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        number: Option<u32>,
        input: *const u8,
        out: *mut u8,
    ) -> Started {
        let Spec { root, rank, unit, context, .. } = *spec;
        let is_root = root == Some(rank);
        let broadcast = matches!(spec.what, What::Broadcast);
        let contributes = !broadcast || is_root;
        let waits = if broadcast { !is_root } else { is_root || !spec.is_rooted() };
        let begun = &mut core.running().collectives;
        let number = match number {
            Some(number) => {
                begun.contribute(context, spec.first);
                number
            }
            None => {
                let number = begun.next_with_contribution(context, spec.first) << PHASE_BITS;
                if pe::is_observed() {
                    observe_begin(core, spec);
                }
                number
            }
        };
        if broadcast && unit <= INLINE - PART_HEADER {
            // SAFETY: as the caller promises.
            if let Some(done) = unsafe { self.broadcast_alone(core, spec, number, input, out) } {
                return done;
            }
        }
        let request = waits.then(|| {
            let len = if out.is_null() { 0 } else { spec.result_len() };
            let mut request = Request::receive(Room::untyped(out, len), None);
            request.outcome.bytes = len as u64;
            core.running().new_request(request)
        });
        let me = core.current;
        let bytes: &[u8] = match unit {
            _ if !contributes => &[],
            0 => &[],
            // SAFETY: as the caller promises.
            _ => unsafe { std::slice::from_raw_parts(input, unit) },
        };
        let waiting = request.map(|request| Waiting { rank: me, place: rank, request, out });
        let may_be_done = match core.shared.home(me) == core.id {
            true => self.contribute(core, spec, number, waiting, bytes),
            false => self.contribute_as_guest(core, spec, number, waiting, bytes),
        };
        let Some(request) = request else {
            return match self.under_way.conflict((context, number)) {
                Some(other) => Started::Done(other.outcome()),
                None if broadcast => core.when_sent(),
                None => Started::done(),
            };
        };
        if may_be_done { core.outcome(request) } else { Started::pending(request) }
    }

    /// A short broadcast of a rank that no other one of this PE takes part in with: what it says
    /// goes out, or what it waits for has come, and nothing has to be kept. `None` if that is not
    /// so, or if something is known of the operation already that has to be heeded.
    ///
    /// # Safety
    /// As [`combine`](Self::combine).
    #[inline(never)]
    unsafe fn broadcast_alone(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        number: u32,
        input: *const u8,
        out: *mut u8,
    ) -> Option<Started> {
        let Spec { unit, context, .. } = *spec;
        let may_be_known = self.under_way.may_have((context, number));
        if may_be_known || core.shared.home(core.current) != core.id {
            return None;
        }
        let is_root = spec.root == Some(spec.rank);
        let meant = spec.disagreement();
        let mut outcome = Completion::default();
        if is_root {
            if !self.under_way.early.is_empty() {
                return None;
            }
            let targets = self.groups.alone(core.shared, core.id, spec)?;
            let mut packet = Packet::new(Kind::Collective, 0, 0);
            meant.write_to(&mut packet);
            packet.context = context;
            packet.sequence = number;
            packet.len = (PART_HEADER + unit) as u32;
            let (head, rest) = packet.data.0.split_at_mut(PART_HEADER);
            head[4..].copy_from_slice(&EVERYBODY.to_ne_bytes());
            // SAFETY: the caller's `unit` bytes, for which there is room.
            unsafe { copy_short(input, rest.as_mut_ptr(), unit) };
            for target in targets.iter() {
                // SAFETY: nothing lies beside the packet.
                unsafe { core.net.send(*target as usize, &packet, std::ptr::null()) };
            }
        } else {
            let front = self.under_way.early.front()?;
            let means_it = (front.context, front.sequence) == (context, number)
                && Disagreement::of(front) == meant;
            if !means_it || front.len as usize != PART_HEADER + unit {
                return None;
            }
            self.groups.alone(core.shared, core.id, spec)?;
            let packet = self.under_way.early.pop_front()?;
            // SAFETY: the packet has `unit` bytes behind the header, and `out` has room for them.
            unsafe { copy_short(packet.data.0.as_ptr().add(PART_HEADER), out, unit) };
            outcome.bytes = unit as u64;
        }
        self.groups.contributed(spec, 1);
        if is_root { Some(core.when_sent()) } else { Some(Started::Done(outcome)) }
    }

    /// A rank that began here takes part in an operation. `bytes` is what it contributes, if it
    /// does; `waiting` says where it wants the result, if it does. False: nobody has got a result now.
    fn contribute(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        number: u32,
        waiting: Option<Waiting>,
        bytes: &[u8],
    ) -> bool {
        let Spec { root, rank, context, .. } = *spec;
        let broadcast = matches!(spec.what, What::Broadcast);
        let is_root = root == Some(rank);
        if !self.enter(core, spec, number, waiting) {
            return true;
        }
        let operation = self.under_way.current();
        operation.arrived += 1;
        if !broadcast {
            operation.add(rank, bytes);
        } else if is_root {
            let part = operation.store(0, EVERYBODY, bytes);
            operation.parts.push(part);
            operation.covered_here = spec.size;
        }
        if operation.conflict.is_some() {
            self.report_conflict(core, context, number);
            return true;
        }
        let last = operation.arrived == operation.here;
        if if broadcast { is_root } else { last } {
            self.send_parts(core, spec, number);
        }
        if broadcast || last {
            // SAFETY: the outputs of all who wait are writable, as each promised.
            unsafe { self.finish_if_complete(core, context, number) };
        }
        broadcast || last
    }

    /// The running rank, which began elsewhere, takes part in an operation. False: it has got no result now.
    #[inline(never)]
    fn contribute_as_guest(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        number: u32,
        mut waiting: Option<Waiting>,
        bytes: &[u8],
    ) -> bool {
        let broadcast = matches!(spec.what, What::Broadcast);
        if broadcast || !self.groups.has_members_of(core.shared, core.id, spec) {
            guests::send_alone(core, spec, number, waiting, bytes);
            return false;
        }
        // All PEs with members get all parts, but not before this rank's home has sent what it
        // contributes: the operation is still under way here.
        if !spec.is_rooted() {
            if !self.enter(core, spec, number, waiting.take()) {
                return true;
            }
            if self.under_way.get((spec.context, number)).conflict.is_some() {
                self.report_conflict(core, spec.context, number);
                return true;
            }
        }
        self.guests.add(core, &self.groups, spec, number, waiting, bytes);
        false
    }

    /// A rank comes to an operation, which begins if it is the first one. False: it means another one than
    /// those before it, and all have been told.
    #[inline(always)]
    fn enter(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        number: u32,
        waiting: Option<Waiting>,
    ) -> bool {
        let context = spec.context;
        if self.under_way.get((context, number)).spec.is_none() {
            self.begin(core.shared, core.id, spec, number);
            if !self.under_way.early.is_empty() {
                self.take_early(core, (context, number));
            }
        }
        let operation = self.under_way.current();
        if let Some(known) = &operation.spec
            && !known.agrees_with(spec)
        {
            let known = *known;
            let both = [spec.disagreement(), known.disagreement()];
            self.spread_conflict(core, spec, both, number);
            // Those that wait hear of this one, and this one hears of them.
            self.under_way.get((context, number)).conflict = Some(spec.disagreement());
            self.report_conflict(core, context, number);
            let operation = self.under_way.get((context, number));
            operation.conflict = Some(known.disagreement());
            operation.waiting.extend(waiting);
            self.report_conflict(core, context, number);
            return false;
        }
        if let Some(waiting) = waiting {
            operation.waiting.push(waiting);
        }
        true
    }

    /// Parts have come from another PE.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    unsafe fn take_packet(&mut self, core: &mut Core, packet: &Packet, payload: *const u8) {
        let len = packet.len as usize;
        if len <= INLINE && self.under_way.is_early((packet.context, packet.sequence)) {
            return self.under_way.early.push_back(*packet);
        }
        if self.store_parts(core, packet, payload) {
            // SAFETY: as in `combine`.
            unsafe { self.finish_if_complete(core, packet.context, packet.sequence) };
        }
    }

    /// Keeps the parts in a packet; false if its sender means another operation.
    fn store_parts(&mut self, core: &mut Core, packet: &Packet, payload: *const u8) -> bool {
        let len = packet.len as usize;
        let is_long = packet.source > 0;
        let data = if len <= INLINE && !is_long { packet.data.0.as_ptr() } else { payload };
        // SAFETY: the packet's data, here or beside it, has this length.
        let mut bytes = unsafe { std::slice::from_raw_parts(data, len) };
        let unit = packet.request as usize;
        let operation = self.under_way.get((packet.context, packet.sequence));
        let theirs = Disagreement::of(packet);
        if operation.spec.is_some_and(|spec| spec.disagreement() != theirs)
            || operation.others.is_some_and(|others| others != theirs)
        {
            operation.conflict = Some(theirs);
            let known = operation.spec.filter(|_| operation.relay.is_some());
            if let Some(known) = known
                && len > 0
            {
                // Those that it does not come to hear of it from here; they do not say it again.
                self.spread_conflict(core, &known, [known.disagreement(), theirs], packet.sequence);
            }
            self.report_conflict(core, packet.context, packet.sequence);
            return false;
        }
        operation.others = Some(theirs);
        if is_long {
            let [part, offset] = [0, 1].map(|i| packet.data.word(i));
            let part = (part as u32, (part >> 32) as u32);
            operation.store_some(part, packet.source as usize, offset as usize, bytes);
            return true;
        }
        while let Some((head, rest)) = bytes.split_first_chunk::<PART_HEADER>() {
            let word =
                |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
            let (part, rest) = rest.split_at(unit);
            let part = operation.store(word(0), word(4), part);
            operation.remote.push(part);
            bytes = rest;
        }
        true
    }

    /// Takes what came of an operation before it was begun, which it is now.
    fn take_early(&mut self, core: &mut Core, key: Key) {
        let mut at = 0;
        while let Some(packet) = self.under_way.early.get(at) {
            if (packet.context, packet.sequence) != key {
                at += 1;
            } else if let Some(packet) = self.under_way.early.remove(at) {
                self.store_parts(core, &packet, std::ptr::null());
                let operation = self.under_way.get(key);
                let size = operation.spec.map_or(0, |spec| spec.size);
                if operation.covered(size) + operation.here >= size {
                    // Nothing more comes from elsewhere.
                    break;
                }
            }
        }
    }

    /// Ranks disagree about what an operation is: other PEs of its group get both opinions.
    #[cold]
    fn spread_conflict(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        opinions: [Disagreement; 2],
        number: u32,
    ) {
        for &target in self.groups.elsewhere(spec).iter() {
            for opinion in opinions {
                let mut packet = Packet::new(Kind::Collective, 0, 0);
                opinion.write_to(&mut packet);
                packet.context = spec.context;
                packet.sequence = number;
                // SAFETY: nothing lies beside a packet without data.
                unsafe { core.net.send(target as usize, &packet, std::ptr::null()) };
            }
        }
    }

    /// Ranks disagree about what an operation is: those that wait are told, and say so.
    #[cold]
    fn report_conflict(&mut self, core: &mut Core, context: u32, number: u32) {
        let operation = self.under_way.get((context, number));
        let Some(other) = operation.conflict else { return };
        for Waiting { rank, request, .. } in std::mem::take(&mut operation.waiting) {
            match core.rank(rank) {
                Some(state) => {
                    let capacity = state.request_mut(request).outcome.capacity;
                    state.request_mut(request).outcome = Completion { capacity, ..other.outcome() };
                    core.complete(rank, request);
                }
                None => core.send_conflict(rank, request, other.unit, other.signature),
            }
        }
    }

    /// Sends what this PE has to those who need it.
    fn send_parts(&mut self, core: &mut Core, spec: &Spec, number: u32) {
        let rooted = spec.is_rooted();
        let targets: Rc<[u32]> = match spec.root {
            Some(root) if rooted => [core.shared.home(self.groups.job_rank(spec, root))].into(),
            _ => self.groups.elsewhere(spec),
        };
        if rooted && *targets == [core.id] {
            return;
        }
        let operation = self.under_way.get((spec.context, number));
        if operation.relay.is_some() {
            // Parts go on when those below this PE are there, too.
            return;
        }
        operation.fold();
        self.send_parts_to(core, spec, number, &targets);
        if rooted {
            // The root's PE has it all now; nobody waits here.
            self.close(spec.context, number);
        }
    }

    /// Sends the parts that this PE has.
    fn send_parts_to(&mut self, core: &mut Core, spec: &Spec, number: u32, targets: &[u32]) {
        let mut bytes = std::mem::take(&mut self.outgoing);
        let operation = self.under_way.get((spec.context, number));
        let mut packet = Packet::new(Kind::Collective, 0, 0);
        spec.disagreement().write_to(&mut packet);
        packet.context = spec.context;
        packet.sequence = number;
        if spec.is_long() {
            operation.send_long_parts(&mut core.net, spec, targets, packet);
        }
        let short: &[Subtree] = if spec.is_long() { &[] } else { &operation.parts };
        let mut parts = short.iter().peekable();
        while parts.peek().is_some() {
            bytes.clear();
            while bytes.len() + PART_HEADER + spec.unit <= MAX_PAYLOAD
                && let Some(part) = parts.next()
            {
                bytes.extend_from_slice(&part.start.to_ne_bytes());
                bytes.extend_from_slice(&part.level.to_ne_bytes());
                bytes.extend_from_slice(&operation.data[part.at..part.at + spec.unit]);
            }
            packet.len = bytes.len() as u32;
            if bytes.len() <= INLINE {
                packet.data.0[..bytes.len()].copy_from_slice(&bytes);
            }
            for target in targets {
                // SAFETY: `bytes` is what lies beside the packet, if anything does.
                unsafe { core.net.send(*target as usize, &packet, bytes.as_ptr()) };
            }
        }
        self.outgoing = bytes;
    }

    /// Sends on what has come along the tree of PEs, if that is all that was awaited; whether the result is there.
    #[inline(never)]
    fn pass_on(&mut self, core: &mut Core, spec: &Spec, number: u32, relay: &Relay) -> bool {
        let operation = self.under_way.get((spec.context, number));
        let awaited = if operation.has_passed_up { spec.size } else { relay.ranks };
        if operation.arrived < operation.here || operation.covered(spec.size) < awaited {
            return false;
        }
        operation.take_over();
        match relay.parent {
            Some(parent) if !operation.has_passed_up => {
                self.send_parts_to(core, spec, number, &[parent]);
                self.under_way.get((spec.context, number)).pass_up();
                false
            }
            _ => {
                self.send_parts_to(core, spec, number, &relay.children);
                true
            }
        }
    }

    /// Hands out the result if everybody's contribution is there.
    ///
    /// # Safety
    /// The outputs of those who wait are writable for the result.
    unsafe fn finish_if_complete(&mut self, core: &mut Core, context: u32, number: u32) {
        let operation = self.under_way.get((context, number));
        let Some(spec) = operation.spec else { return };
        if let Some(relay) = operation.relay.clone() {
            if !self.pass_on(core, &spec, number, &relay) {
                return;
            }
        } else if operation.covered(spec.size) < spec.size {
            return;
        }
        let operation = self.under_way.get((context, number));
        operation.covered_here = spec.size;
        operation.parts.append(&mut operation.remote);
        operation.fold();
        let result = operation.result(&spec);
        let mut away = Vec::new();
        for waiting in &operation.waiting {
            let Some(state) = core.ranks[waiting.rank as usize].as_deref_mut() else {
                away.push(*waiting);
                continue;
            };
            // SAFETY: as the caller promises: `out` has room for the result.
            unsafe { operation.hand_out(&spec, &result, waiting) };
            if state.finish(waiting.request) {
                core.ready.push_back(waiting.rank);
            }
        }
        operation.waiting.clear();
        for mut waiting in away {
            if waiting.out.is_null() {
                core.complete(waiting.rank, waiting.request);
                continue;
            }
            let operation = self.under_way.get((context, number));
            let mut bytes = vec![0u8; spec.result_len()];
            let out = std::mem::replace(&mut waiting.out, bytes.as_mut_ptr());
            // SAFETY: the bytes have room for the result; `out` has, says the caller.
            unsafe {
                operation.hand_out(&spec, &result, &waiting);
                self.finish_away(core, Waiting { out, ..waiting }, &bytes);
            }
        }
        let operation = self.under_way.get((context, number));
        if operation.arrived == operation.here {
            self.close(context, number);
        }
    }

    /// Gives the result to a rank that lives elsewhere.
    ///
    /// # Safety
    /// Its output is writable for the result.
    #[cold]
    unsafe fn finish_away(&mut self, core: &mut Core, waiting: Waiting, result: &[u8]) {
        let Waiting { rank, request, out, .. } = waiting;
        {
            // The rank's memory can be written here if it is its slot's and in this node.
            let leased = Arena::contains(out as usize).then(|| core.shared.lease_of(rank));
            if !result.is_empty() && !matches!(leased, Some(Some(_))) {
                return core.send_result(rank, request, result.to_vec());
            }
            // SAFETY: as the caller promises.
            unsafe { copy_short(result.as_ptr(), out, result.len()) };
        }
        core.complete(rank, request);
    }
}

impl Combining {
    /// The first rank of this PE has come to an operation.
    fn begin(&mut self, shared: Shared, id: u32, spec: &Spec, number: u32) {
        let Taking { here, first_here, relay } = self.groups.begin(shared, id, spec);
        let operation = self.under_way.get((spec.context, number));
        operation.spec = Some(*spec);
        operation.relay = relay.filter(|_| spec.is_relayed());
        operation.here = here;
        if let Some(first) = first_here
            && !matches!(spec.what, What::Broadcast)
            && !spec.is_long()
        {
            operation.make_room(first, spec.unit);
        }
        // Packets that differ may have come before any rank of this PE.
        let said = [operation.others, operation.conflict].into_iter().flatten();
        operation.conflict = said.into_iter().find(|others| *others != spec.disagreement());
    }

    /// All ranks of this PE have come, and what they wait for is done.
    fn close(&mut self, context: u32, number: u32) {
        let operation = self.under_way.get((context, number));
        if let Some(spec) = operation.spec.take() {
            let arrived = operation.arrived;
            operation.clear();
            self.groups.contributed(&spec, arrived);
        }
        self.under_way.forget((context, number));
    }
}
