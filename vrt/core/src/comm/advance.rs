//! The steps of one small collective operation on a PE: who looks it up holds it until they are done.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use std::collections::VecDeque;
use std::rc::Rc;

use crate::comm::groups::{Groups, Taking};
use crate::comm::parts::Operation;
use crate::comm::relay::Relay;
use crate::comm::spec::{Disagreement, PART_HEADER, Spec, Waiting, What};
use crate::net::local::MAX_PAYLOAD;
use crate::net::{INLINE, Kind, Packet};
use crate::pe::{Completion, Core, copy_short};
use vrt_slot::Arena;

/// What the steps of an operation use of their PE.
pub(super) struct Around<'a> {
    pub(super) core: &'a mut Core,
    pub(super) groups: &'a mut Groups,
    /// A buffer for a packet's data.
    pub(super) outgoing: &'a mut Vec<u8>,
}

/// Where a step has left an operation.
#[must_use = "an operation that is over is closed"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    UnderWay,
    /// All ranks of this PE have come, and what they wait for is done.
    Over,
}

impl Operation {
    /// A rank comes to the operation, which begins if it is the first one. An error: it means another one than those
    /// before it, and all have been told.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        around: &mut Around<'_>,
        early: &mut VecDeque<Packet>,
        spec: &Spec,
        waiting: Option<Waiting>,
    ) -> Result<(), Disagreement> {
        match &self.spec {
            None => {
                let taking = around.groups.begin(around.core.shared, around.core.id, spec);
                self.begin(taking, spec);
                if !early.is_empty() {
                    self.take_early(around, early);
                }
            }
            Some(known) if known.agrees_with(spec) => {}
            Some(known) => {
                let (own, known) = (spec.disagreement(), known.disagreement());
                self.spread_conflict(around, spec, [own, known]);
                // Those that wait hear of this one, and this one hears of them.
                self.conflict = Some(own);
                self.report_conflict(around.core);
                self.conflict = Some(known);
                self.waiting.extend(waiting);
                self.report_conflict(around.core);
                return Err(known);
            }
        }
        if let Some(waiting) = waiting {
            self.waiting.push(waiting);
        }
        Ok(())
    }

    /// The first rank of this PE has come.
    fn begin(&mut self, Taking { here, first_here, relay }: Taking, spec: &Spec) {
        self.spec = Some(*spec);
        self.relay = relay.filter(|_| spec.is_relayed());
        self.here = here;
        if let Some(first) = first_here
            && !matches!(spec.what, What::Broadcast)
            && !spec.is_long()
        {
            self.make_room(first, spec.unit);
        }
        // Packets that differ may have come before any rank of this PE.
        let said = [self.others, self.conflict].into_iter().flatten();
        self.conflict = said.into_iter().find(|others| *others != spec.disagreement());
    }

    /// Takes what came before it was begun, which it is now.
    fn take_early(&mut self, around: &mut Around<'_>, early: &mut VecDeque<Packet>) {
        let size = self.spec.map_or(0, |spec| spec.size);
        let mut at = 0;
        while let Some(packet) = early.get(at) {
            if (packet.context, packet.sequence) != self.key {
                at += 1;
            } else if let Some(packet) = early.remove(at) {
                self.store_parts(around, &packet, std::ptr::null());
                if self.covered(size) + self.here >= size {
                    // Nothing more comes from elsewhere.
                    break;
                }
            }
        }
    }

    /// Keeps the parts in a packet; false if its sender means another operation.
    pub(super) fn store_parts(
        &mut self,
        around: &mut Around<'_>,
        packet: &Packet,
        payload: *const u8,
    ) -> bool {
        let len = packet.len as usize;
        let is_long = packet.source > 0;
        let data = if len <= INLINE && !is_long { packet.data.0.as_ptr() } else { payload };
        // SAFETY: the packet's data, in it or as its payload, has this length.
        let mut bytes = unsafe { std::slice::from_raw_parts(data, len) };
        let theirs = Disagreement::of(packet);
        if self.spec.is_some_and(|spec| spec.disagreement() != theirs)
            || self.others.is_some_and(|others| others != theirs)
        {
            self.conflict = Some(theirs);
            if let Some(known) = self.spec.filter(|_| self.relay.is_some())
                && len > 0
            {
                // Those that it does not come to hear of it from here; they do not say it again.
                self.spread_conflict(around, &known, [known.disagreement(), theirs]);
            }
            self.report_conflict(around.core);
            return false;
        }
        self.others = Some(theirs);
        if is_long {
            let [part, offset] = [0, 1].map(|i| packet.data.word(i));
            let part = (part as u32, (part >> 32) as u32);
            self.store_some(part, packet.source.unsigned_abs() as usize, offset as usize, bytes);
            return true;
        }
        let unit = packet.request as usize;
        while let Some((head, rest)) = bytes.split_first_chunk::<PART_HEADER>() {
            let word =
                |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
            let (part, rest) = rest.split_at(unit);
            let part = self.store(word(0), word(4), part);
            self.remote.push(part);
            bytes = rest;
        }
        true
    }

    /// Ranks disagree about what the operation is: other PEs of its group get both opinions.
    #[cold]
    fn spread_conflict(&self, around: &mut Around<'_>, spec: &Spec, opinions: [Disagreement; 2]) {
        for &target in around.groups.elsewhere(spec).iter() {
            for opinion in opinions {
                let packet = self.packet(opinion);
                // SAFETY: the packet has no payload.
                unsafe { around.core.net.send(target as usize, &packet, std::ptr::null()) };
            }
        }
    }

    /// Ranks disagree about what the operation is: those that wait are told, and say so.
    #[cold]
    pub(super) fn report_conflict(&mut self, core: &mut Core) {
        let Some(other) = self.conflict else { return };
        for Waiting { rank, request, .. } in std::mem::take(&mut self.waiting) {
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

    /// A packet of the operation, without data.
    fn packet(&self, means: Disagreement) -> Packet {
        let mut packet = Packet::new(Kind::Collective, 0, 0);
        means.write_to(&mut packet);
        (packet.context, packet.sequence) = self.key;
        packet
    }

    /// Sends what this PE has to those who need it.
    pub(super) fn send_parts(&mut self, around: &mut Around<'_>) -> Progress {
        let Some(spec) = self.spec else { return Progress::UnderWay };
        let rooted = spec.is_rooted();
        let targets: Rc<[u32]> = match spec.root {
            Some(root) if rooted => {
                [around.core.shared.home(around.groups.job_rank(&spec, root))].into()
            }
            _ => around.groups.elsewhere(&spec),
        };
        // Along a tree, parts go on when those below this PE are there, too.
        if rooted && *targets == [around.core.id] || self.relay.is_some() {
            return Progress::UnderWay;
        }
        self.fold();
        self.send_parts_to(around, &spec, &targets);
        // The root's PE has it all now; nobody waits here.
        if rooted { Progress::Over } else { Progress::UnderWay }
    }

    /// Sends the parts that this PE has.
    fn send_parts_to(&self, around: &mut Around<'_>, spec: &Spec, targets: &[u32]) {
        let net = &mut around.core.net;
        let mut packet = self.packet(spec.disagreement());
        if spec.is_long() {
            return self.send_long_parts(net, spec, targets, packet);
        }
        let bytes = &mut *around.outgoing;
        let mut parts = self.parts.iter().peekable();
        while parts.peek().is_some() {
            bytes.clear();
            while bytes.len() + PART_HEADER + spec.unit <= MAX_PAYLOAD
                && let Some(part) = parts.next()
            {
                bytes.extend_from_slice(&part.start.to_ne_bytes());
                bytes.extend_from_slice(&part.level.to_ne_bytes());
                bytes.extend_from_slice(&self.data[part.at..part.at + spec.unit]);
            }
            packet.len = bytes.len() as u32;
            if bytes.len() <= INLINE {
                packet.data.0[..bytes.len()].copy_from_slice(bytes);
            }
            for target in targets {
                // SAFETY: the packet's payload, if it has one, is `bytes`.
                unsafe { net.send(*target as usize, &packet, bytes.as_ptr()) };
            }
        }
    }

    /// Sends on what has come along the tree of PEs, if that is all that was awaited; whether the result is there.
    #[inline(never)]
    fn pass_on(&mut self, around: &mut Around<'_>, spec: &Spec, relay: &Relay) -> bool {
        let awaited = if self.has_passed_up { spec.size } else { relay.ranks };
        if self.arrived < self.here || self.covered(spec.size) < awaited {
            return false;
        }
        self.take_over();
        match relay.parent {
            Some(parent) if !self.has_passed_up => {
                self.send_parts_to(around, spec, &[parent]);
                self.pass_up();
                false
            }
            _ => {
                self.send_parts_to(around, spec, &relay.children);
                true
            }
        }
    }

    /// Hands out the result if everybody's contribution is there.
    ///
    /// # Safety
    /// B3 holds for those who wait.
    pub(super) unsafe fn finish_if_complete(&mut self, around: &mut Around<'_>) -> Progress {
        let Some(spec) = self.spec else { return Progress::UnderWay };
        if let Some(relay) = self.relay.clone() {
            if !self.pass_on(around, &spec, &relay) {
                return Progress::UnderWay;
            }
        } else if self.covered(spec.size) < spec.size {
            return Progress::UnderWay;
        }
        self.covered_here = spec.size;
        self.parts.append(&mut self.remote);
        self.fold();
        let result = self.result(&spec);
        let core = &mut *around.core;
        let mut away = Vec::new();
        for waiting in &self.waiting {
            let Some(state) = core.ranks[waiting.rank as usize].as_deref_mut() else {
                away.push(*waiting);
                continue;
            };
            // SAFETY: B3.
            unsafe { self.hand_out(&spec, &result, waiting) };
            if state.finish(waiting.request) {
                core.ready.push_back(waiting.rank);
            }
        }
        self.waiting.clear();
        for mut waiting in away {
            if waiting.out.is_null() {
                core.complete(waiting.rank, waiting.request);
                continue;
            }
            let mut bytes = vec![0u8; spec.result_len()];
            let out = std::mem::replace(&mut waiting.out, bytes.as_mut_ptr());
            // SAFETY: `bytes` has room for the result, and `out` by B3.
            unsafe {
                self.hand_out(&spec, &result, &waiting);
                finish_away(core, Waiting { out, ..waiting }, &bytes);
            }
        }
        if self.arrived == self.here { Progress::Over } else { Progress::UnderWay }
    }
}

/// Gives the result to a rank that lives elsewhere.
///
/// # Safety
/// B3 holds for it.
#[cold]
unsafe fn finish_away(core: &mut Core, waiting: Waiting, result: &[u8]) {
    let Waiting { rank, request, out, .. } = waiting;
    {
        // The rank's memory can be written here if it is its slot's and in this node.
        let leased = Arena::contains(out as usize).then(|| core.shared.lease_of(rank));
        if !result.is_empty() && !matches!(leased, Some(Some(_))) {
            return core.send_result(rank, request, result.to_vec());
        }
        // SAFETY: B3, says the caller; the rank's memory is in this node while it is leased.
        unsafe { copy_short(result.as_ptr(), out, result.len()) };
    }
    core.complete(rank, request);
}
