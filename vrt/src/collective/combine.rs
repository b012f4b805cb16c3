//! Collective operations on small data: the ranks of a PE combine first, then the PEs.
//!
//! A rank deposits its contribution with its PE and waits (or goes on, where MPI lets it). The
//! last one of the PE sends what the PE has to the PEs that need it, in one packet if it fits. So
//! 64 ranks on 2 PEs exchange two packets, not 63 messages.
//!
//! What a PE has are *parts*. A part covers the ranks of an aligned block of a fixed binary tree
//! over rank numbers: `(start, level)` covers `start .. start + 2^level`. Two blocks are folded
//! only with each other into the block above, the lower one on the left. The result is therefore
//! the same to the last bit however ranks are spread over PEs and in whatever order they come, and
//! rank order is kept. A PE that holds scattered ranks has more parts to send, that is all.
//!
//! ```text
//! rank arrives: part added ---- last one here? -yes-> fold; send to others -+
//! packet comes: parts added ------------------------------------------------+-> all covered?
//!                                                     results to those who wait <-yes-+
//! ```
//!
//! An operation is known by its context and its number on it, which grows at every rank alike. A
//! packet may come before any rank of the PE has begun the operation.
//!
//! "The ranks of a PE" are those that *began* there: a rank that has moved sends its contribution
//! to its first PE, which answers it wherever it is then. So who has to contribute where never
//! changes, however ranks move in the middle of an operation.

use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::arena::Arena;
use crate::collective::groups::Groups;
use crate::collective::operator::{Operator, Pair};
use crate::net::local::MAX_BESIDE;
use crate::net::parcel::{self, Topic};
use crate::net::shared::Shared;
use crate::net::{INLINE, Kind, Packet};
use crate::pe::{Completion, Ended, Engine, Request, Started, copy_short};

/// What an operation makes of the contributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    /// Fold them.
    Fold(Operator),
    /// Lay them side by side in rank order.
    Concatenate,
    /// Only the root contributes; everybody gets it.
    Broadcast,
    /// Each contribution has a part for every rank; a rank gets its parts, in rank order.
    Exchange,
}

/// A small collective operation of one rank.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) what: What,
    /// Who gets the result (of a broadcast: who contributes); `None`: everybody.
    pub(crate) root: Option<u32>,
    pub(crate) context: u32,
    /// The rank in the communicator, the communicator's size and its first rank in the job, which
    /// the others follow; or [`REGISTERED`](super::groups::REGISTERED).
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) first: u32,
    /// Bytes of a contribution.
    pub(crate) unit: usize,
}

/// Low bits of an operation's number: steps of one operation that are combined one after the other.
pub(crate) const PHASE_BITS: u32 = 2;
/// Level of a part that covers everybody.
const EVERYBODY: u32 = 31;
/// Bytes in front of each part in a packet: start and level.
const PART_HEADER: usize = 8;

/// Longest contribution that is combined this way.
pub(crate) const MAX_UNIT: usize = 4 << 10;
const _: () = assert!(MAX_UNIT + PART_HEADER <= MAX_BESIDE);

/// An operation's context and number.
type Key = (u32, u32);

/// The operations under way on a PE.
///
/// Ranks come to the same operation one after the other, so the one that somebody came to last is
/// at hand, and no search is needed for it.
#[derive(Debug, Default)]
pub(crate) struct Combining {
    /// The operation at hand. Without a key it is an empty one, to be used next.
    at_hand: Box<Operation>,
    key: Option<Key>,
    others: FxHashMap<Key, Box<Operation>>,
    #[expect(
        clippy::vec_box,
        reason = "an operation goes from here to `open` and back, which would copy it"
    )]
    spare: Vec<Box<Operation>>,
    /// Room for a packet's data, between packets.
    outgoing: Vec<u8>,
    pub(super) groups: Groups,
}

/// Closed operations are used again, with the memory of their lists.
#[derive(Debug, Default)]
struct Operation {
    spec: Option<Spec>,
    /// Of this PE's own ranks, and only they are sent on.
    parts: Vec<Part>,
    /// Of other PEs.
    remote: Vec<Part>,
    data: Vec<u8>,
    /// Between two folds: nothing of interest.
    pairs: Vec<Pair>,
    /// Ranks that the PE's own parts cover.
    covered_here: u32,
    /// Ranks of this PE that have begun it, and that will.
    arrived: u32,
    here: u32,
    /// What PEs disagree about, if they do.
    conflict: Option<Disagreement>,
    /// What the other PEs say that it is.
    others: Option<Disagreement>,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    start: u32,
    level: u32,
    /// Its bytes in `data`.
    at: usize,
}

/// A rank that wants the result.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    rank: u32,
    /// Its rank in the communicator.
    place: u32,
    request: u32,
    #[serde(with = "crate::migrate::address")]
    out: *mut u8,
}

/// What somebody else says about an operation that this rank takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Disagreement {
    fingerprint: u32,
    unit: u32,
}

/// What a rank that has moved sends to its first PE.
#[derive(Debug, Serialize, Deserialize)]
struct Contribution<'a> {
    spec: Spec,
    number: u32,
    waiting: Option<Waiting>,
    #[serde(borrow)]
    bytes: &'a [u8],
}

impl Engine {
    /// The number of the running rank's next operation on a context.
    #[inline]
    pub(crate) fn next_collective(&mut self, context: u32) -> u32 {
        self.running().collectives.next(context)
    }

    /// Starts a small collective operation of the running rank.
    ///
    /// # Safety
    /// `input` is readable for `unit` bytes now (if the rank contributes), and `out` is writable
    /// for the result (if the rank gets it) until the request is done.
    pub(crate) unsafe fn combine(
        &mut self,
        spec: &Spec,
        number: Option<u32>,
        input: *const u8,
        out: *mut u8,
    ) -> Started {
        let Spec { root, rank, unit, context, .. } = *spec;
        let is_root = root == Some(rank);
        let broadcast = spec.what == What::Broadcast;
        let contributes = !broadcast || is_root;
        let waits = if broadcast { !is_root } else { root.is_none() || is_root };
        let number = number.unwrap_or_else(|| self.next_collective(context) << PHASE_BITS);
        let request = waits.then(|| {
            let len = spec.result_len();
            let mut request = Request::receive(out, len, None);
            request.outcome.bytes = len as u64;
            self.running().new_request(request)
        });
        let me = self.current;
        let bytes: &[u8] = match unit {
            _ if !contributes => &[],
            0 => &[],
            // SAFETY: as the caller promises.
            _ => unsafe { std::slice::from_raw_parts(input, unit) },
        };
        let waiting = request.map(|request| Waiting { rank: me, place: rank, request, out });
        if self.begin_here.contains(&me) {
            self.contribute(spec, number, waiting, bytes);
        } else {
            let home = self.shared.home(me);
            let contribution = Contribution { spec: *spec, number, waiting, bytes };
            match crate::encoding::encode(&contribution) {
                Ok(all) => {
                    parcel::send(&mut self.net, self.id, home, Topic::Contribution, &all);
                }
                Err(error) => unreachable!("plain numbers and bytes can be encoded: {error}"),
            }
        }
        let request = match request {
            Some(request) => request,
            None if broadcast && self.net.has_backlog() => {
                // The root shall not flood those who come later.
                let request = self.running().new_request(Request::send());
                if !self.net.finish_when_sent(me, request) {
                    self.complete(me, request);
                }
                request
            }
            None => return Started::Done(Completion::default()),
        };
        match self.running().take_if_done(request) {
            Some(outcome) => Started::Done(outcome),
            None => Started::pending(request),
        }
    }

    /// A rank that began here, but lives elsewhere, takes part in an operation.
    pub(crate) fn contribution_came(&mut self, bytes: &[u8]) {
        match crate::encoding::decode_borrowed::<Contribution<'_>>(bytes) {
            Ok(it) => self.contribute(&it.spec, it.number, it.waiting, it.bytes),
            Err(error) => unreachable!("a PE of this job has encoded it: {error}"),
        }
    }

    /// A rank that began here takes part in an operation. `bytes` is what it contributes, if it
    /// does; `waiting` says where it wants the result, if it does.
    fn contribute(&mut self, spec: &Spec, number: u32, waiting: Option<Waiting>, bytes: &[u8]) {
        let Spec { root, rank, context, .. } = *spec;
        let broadcast = spec.what == What::Broadcast;
        let is_root = root == Some(rank);
        let operation = self.combining.operation(context, number);
        match &operation.spec {
            Some(known) if known.agrees_with(spec) => {}
            Some(known) => {
                let known = *known;
                operation.conflict = Some(known.disagreement());
                operation.waiting.extend(waiting);
                self.spread_conflict(spec, &known, number);
                return self.report_conflict(context, number);
            }
            None => self.combining.begin(self.shared, self.id, spec, number),
        }
        let operation = self.combining.operation(context, number);
        operation.arrived += 1;
        if !broadcast || is_root {
            let level = if broadcast { EVERYBODY } else { 0 };
            let part = operation.store(if broadcast { 0 } else { rank }, level, bytes);
            operation.parts.push(part);
            operation.covered_here += if broadcast { spec.size } else { 1 };
        }
        operation.waiting.extend(waiting);
        if operation.conflict.is_some() {
            return self.report_conflict(context, number);
        }
        let last = operation.arrived == operation.here;
        if if broadcast { is_root } else { last } {
            self.send_parts(spec, number);
        }
        if broadcast || last {
            // SAFETY: the outputs of all who wait are writable, as each promised.
            unsafe { self.finish_if_complete(context, number) };
        }
    }

    /// Parts have come from another PE.
    pub(crate) fn collective_packet(&mut self, packet: &Packet, beside: *const u8) {
        let len = packet.len as usize;
        let data = if len <= INLINE { packet.data.0.as_ptr() } else { beside };
        // SAFETY: the packet's data, here or beside it, has this length.
        let mut bytes = unsafe { std::slice::from_raw_parts(data, len) };
        let unit = packet.request as usize;
        let operation = self.combining.operation(packet.context, packet.order);
        let theirs = Disagreement { fingerprint: packet.tag as u32, unit: packet.request };
        if operation.spec.is_some_and(|spec| spec.disagreement() != theirs)
            || operation.others.is_some_and(|others| others != theirs)
        {
            operation.conflict = Some(theirs);
            return self.report_conflict(packet.context, packet.order);
        }
        operation.others = Some(theirs);
        while let Some((head, rest)) = bytes.split_first_chunk::<PART_HEADER>() {
            let word =
                |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
            let (part, rest) = rest.split_at(unit);
            let part = operation.store(word(0), word(4), part);
            operation.remote.push(part);
            bytes = rest;
        }
        // SAFETY: as in `combine`.
        unsafe { self.finish_if_complete(packet.context, packet.order) };
    }

    /// Ranks of this PE disagree about what an operation is: other PEs get both opinions.
    #[cold]
    fn spread_conflict(&mut self, one: &Spec, other: &Spec, number: u32) {
        for &target in self.combining.groups.elsewhere(one).iter() {
            for spec in [one, other] {
                let mut packet = Packet::new(Kind::Collective, 0, 0);
                packet.tag = spec.disagreement().fingerprint as i32;
                packet.context = spec.context;
                packet.order = number;
                packet.request = spec.unit as u32;
                // SAFETY: nothing lies beside a packet without data.
                unsafe { self.net.send(target as usize, &packet, std::ptr::null()) };
            }
        }
    }

    /// Ranks disagree about what an operation is: those that wait are told, and say so.
    #[cold]
    fn report_conflict(&mut self, context: u32, number: u32) {
        let operation = self.combining.operation(context, number);
        let (waiting, conflict) = (std::mem::take(&mut operation.waiting), operation.conflict);
        let other = conflict.map_or(0, |conflict| conflict.unit);
        for Waiting { rank, request, .. } in waiting {
            match self.rank(rank) {
                Some(state) => {
                    let outcome = &mut state.request_mut(request).outcome;
                    outcome.ended = Ended::Cancelled;
                    outcome.bytes = u64::from(other);
                    self.complete(rank, request);
                }
                None => self.send_conflict(rank, request, other),
            }
        }
    }

    /// Sends what this PE has to those who need it.
    fn send_parts(&mut self, spec: &Spec, number: u32) {
        let rooted = spec.root.is_some() && spec.what != What::Broadcast;
        let targets = match spec.root {
            Some(root) if rooted => {
                [self.shared.home(self.combining.groups.job_rank(spec, root))].into()
            }
            _ => self.combining.groups.elsewhere(spec),
        };
        let mut bytes = std::mem::take(&mut self.combining.outgoing);
        let operation = self.combining.operation(spec.context, number);
        operation.fold();
        let mut packet = Packet::new(Kind::Collective, 0, 0);
        packet.tag = spec.disagreement().fingerprint as i32;
        packet.context = spec.context;
        packet.order = number;
        packet.request = spec.unit as u32;
        let mut parts = operation.parts.iter().peekable();
        while parts.peek().is_some() {
            bytes.clear();
            while bytes.len() + PART_HEADER + spec.unit <= MAX_BESIDE
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
            for target in targets.iter().filter(|target| **target != self.id) {
                // SAFETY: `bytes` is what lies beside the packet, if anything does.
                unsafe { self.net.send(*target as usize, &packet, bytes.as_ptr()) };
            }
        }
        self.combining.outgoing = bytes;
        if rooted && !targets.contains(&self.id) {
            // The root's PE has it all now; nobody waits here.
            self.combining.close(spec.context, number);
        }
    }

    /// Hands out the result if everybody's contribution is there.
    ///
    /// # Safety
    /// The outputs of those who wait are writable for the result.
    unsafe fn finish_if_complete(&mut self, context: u32, number: u32) {
        let operation = self.combining.operation(context, number);
        let Some(spec) = operation.spec else { return };
        if operation.covered(spec.size) < spec.size {
            return;
        }
        operation.covered_here = spec.size;
        operation.parts.append(&mut operation.remote);
        operation.fold();
        let result = operation.result(&spec);
        let mut away = Vec::new();
        for waiting in &operation.waiting {
            let Some(state) = self.ranks[waiting.rank as usize].as_deref_mut() else {
                away.push(*waiting);
                continue;
            };
            // SAFETY: as the caller promises: `out` has room for the result.
            unsafe { operation.hand_out(&spec, &result, waiting) };
            if state.finish(waiting.request) {
                self.ready.push_back(waiting.rank);
            }
        }
        operation.waiting.clear();
        for mut waiting in away {
            let operation = self.combining.operation(context, number);
            let mut bytes = vec![0u8; spec.result_len()];
            let out = std::mem::replace(&mut waiting.out, bytes.as_mut_ptr());
            // SAFETY: the bytes have room for the result; `out` has, says the caller.
            unsafe {
                operation.hand_out(&spec, &result, &waiting);
                self.finish_away(Waiting { out, ..waiting }, &bytes);
            }
        }
        let operation = self.combining.operation(context, number);
        if operation.arrived == operation.here {
            self.combining.close(context, number);
        }
    }

    /// Gives the result to a rank that lives elsewhere.
    ///
    /// # Safety
    /// Its output is writable for the result.
    #[cold]
    unsafe fn finish_away(&mut self, waiting: Waiting, result: &[u8]) {
        let Waiting { rank, request, out, .. } = waiting;
        {
            // The rank's memory can be written here if it is its slot's and in this node.
            let leased = Arena::contains(out as usize).then(|| self.shared.lease_of(rank));
            if !result.is_empty() && !matches!(leased, Some(Some(_))) {
                return self.send_result(rank, request, result.to_vec());
            }
            // SAFETY: as the caller promises.
            unsafe { copy_short(result.as_ptr(), out, result.len()) };
        }
        self.complete(rank, request);
    }
}

impl Spec {
    /// Whether both mean the same operation.
    #[inline]
    fn agrees_with(&self, other: &Spec) -> bool {
        (self.unit, self.root, self.what) == (other.unit, other.root, other.what)
    }

    /// What all ranks have to agree about, in short.
    fn disagreement(&self) -> Disagreement {
        let (kind, operator) = match self.what {
            What::Fold(operator) => (1, ((operator.op as u32) << 8) | operator.scalar as u32),
            What::Concatenate => (2, 0),
            What::Broadcast => (3, 0),
            What::Exchange => (0, 0),
        };
        let root = self.root.map_or(0, |root| (root & 0x1f_ffff) + 1);
        // Eight bits for the operator's kinds are enough to tell nearly all of them apart.
        let operator = (operator ^ (operator >> 5)) & 0xff;
        Disagreement { fingerprint: (kind << 30) | (operator << 22) | root, unit: self.unit as u32 }
    }

    /// Bytes of the result.
    fn result_len(&self) -> usize {
        if self.what == What::Concatenate { self.unit * self.size as usize } else { self.unit }
    }
}

impl Combining {
    /// An operation, begun or not.
    #[inline]
    fn operation(&mut self, context: u32, number: u32) -> &mut Operation {
        if self.key != Some((context, number)) {
            self.take_to_hand((context, number));
        }
        &mut self.at_hand
    }

    fn take_to_hand(&mut self, key: Key) {
        let next = self.others.remove(&key);
        match self.key.replace(key) {
            Some(before) => {
                let next = next.or_else(|| self.spare.pop()).unwrap_or_default();
                self.others.insert(before, std::mem::replace(&mut self.at_hand, next));
            }
            None => {
                if let Some(next) = next {
                    self.spare.push(std::mem::replace(&mut self.at_hand, next));
                }
            }
        }
    }

    /// The first rank of this PE has come to an operation.
    fn begin(&mut self, shared: Shared, id: u32, spec: &Spec, number: u32) {
        let here = self.groups.begin(shared, id, spec);
        let operation = self.operation(spec.context, number);
        operation.spec = Some(*spec);
        operation.here = here;
        operation.conflict = operation.others.filter(|others| *others != spec.disagreement());
    }

    /// All ranks of this PE have come, and what they wait for is done.
    fn close(&mut self, context: u32, number: u32) {
        let operation = self.operation(context, number);
        if let Some(spec) = operation.spec.take() {
            let arrived = operation.arrived;
            operation.clear();
            self.groups.contributed(&spec, arrived);
        }
        self.key = None;
    }
}

impl Operation {
    #[inline]
    fn store(&mut self, start: u32, level: u32, bytes: &[u8]) -> Part {
        let at = self.data.len();
        match bytes.first_chunk::<8>() {
            // One number.
            Some(word) if bytes.len() == 8 => self.data.extend_from_slice(word),
            _ => self.data.extend_from_slice(bytes),
        }
        Part { start, level, at }
    }

    /// Ranks whose contribution is there.
    fn covered(&self, size: u32) -> u32 {
        let remote = self.remote.iter();
        let remote = remote.map(|p| p.start.saturating_add(1 << p.level).min(size) - p.start);
        self.covered_here + remote.sum::<u32>()
    }

    /// Folds what can be folded now; see the module's text for the order.
    fn fold(&mut self) {
        let Some(spec) = self.spec else { return };
        let operator = match spec.what {
            What::Fold(operator) => Some(operator),
            // A barrier: there is nothing to lay side by side.
            What::Concatenate if spec.unit == 0 => None,
            What::Concatenate | What::Broadcast | What::Exchange => return,
        };
        let (parts, pairs, data) = (&mut self.parts, &mut self.pairs, self.data.as_mut_ptr());
        // Ranks come in turn: most often beginning with another one than the first.
        if let Some(turn) = parts.windows(2).position(|pair| pair[0].start > pair[1].start) {
            parts.rotate_left(turn + 1);
            if !parts.is_sorted_by_key(|part| part.start) {
                parts.sort_unstable_by_key(|part| part.start);
            }
        }
        // What is folded replaces the parts from the front on.
        let mut folded = 0;
        for next in 0..parts.len() {
            parts[folded] = parts[next];
            folded += 1;
            loop {
                let top = &mut parts[folded - 1];
                let half = 1u32 << top.level;
                if top.start.is_multiple_of(2 * half) {
                    if top.level < EVERYBODY - 1 && top.start + half >= spec.size && top.start > 0 {
                        // Its right neighbour has no ranks.
                        top.level += 1;
                        continue;
                    }
                    break;
                }
                let right = *top;
                let Some(left) = folded.checked_sub(2).map(|i| &mut parts[i]) else { break };
                if left.level != right.level || left.start + half != right.start {
                    break;
                }
                // SAFETY: each part has `unit` bytes in `data`, and no two overlap.
                pairs.push(unsafe { (data.add(left.at), data.add(right.at)) });
                left.level += 1;
                folded -= 1;
            }
        }
        parts.truncate(folded);
        if let Some(operator) = operator {
            // SAFETY: as said above.
            unsafe { operator.fold_pairs(pairs, spec.unit) };
        }
        pairs.clear();
    }

    /// Where in `data` the result is that all get, when all parts are there and folded.
    fn result(&mut self, spec: &Spec) -> Range<usize> {
        let Spec { what, unit, .. } = *spec;
        match what {
            What::Fold(_) | What::Broadcast => {
                self.parts.first().map_or(0..0, |part| part.at..part.at + unit)
            }
            What::Exchange => 0..0,
            What::Concatenate => {
                let begin = self.data.len();
                self.data.resize(begin + spec.result_len(), 0);
                let (parts, result) = self.data.split_at_mut(begin);
                for part in self.parts.iter().filter(|_| unit > 0) {
                    let to = part.start as usize * unit;
                    result[to..to + unit].copy_from_slice(&parts[part.at..part.at + unit]);
                }
                begin..self.data.len()
            }
        }
    }

    /// Gives a rank its result.
    ///
    /// # Safety
    /// Its output has room for that.
    #[inline(always)]
    unsafe fn hand_out(&self, spec: &Spec, result: &Range<usize>, to: &Waiting) {
        // SAFETY: as the caller promises.
        unsafe {
            if spec.what == What::Exchange {
                return self.hand_out_parts(spec, to);
            }
            let result = &self.data[result.start..result.end];
            copy_short(result.as_ptr(), to.out, result.len());
        }
    }

    /// # Safety
    /// As [`hand_out`](Self::hand_out).
    #[inline(never)]
    unsafe fn hand_out_parts(&self, spec: &Spec, to: &Waiting) {
        let each = spec.unit / spec.size as usize;
        for part in &self.parts {
            let at = part.at + to.place as usize * each;
            let bytes = &self.data[at..at + each];
            // SAFETY: a part for each rank fits.
            unsafe { copy_short(bytes.as_ptr(), to.out.add(part.start as usize * each), each) };
        }
    }

    /// Forgets everything.
    fn clear(&mut self) {
        self.spec = None;
        self.parts.clear();
        self.remote.clear();
        self.data.clear();
        self.waiting.clear();
        self.arrived = 0;
        self.covered_here = 0;
        self.conflict = None;
        self.others = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::operator::Op;
    use crate::datatype::Scalar;
    use proptest::prelude::*;

    fn spec(size: u32) -> Spec {
        let operator = Operator { op: Op::Sum, scalar: Scalar::F64 };
        Spec {
            what: What::Fold(operator),
            root: None,
            context: 1,
            rank: 0,
            size,
            first: 0,
            unit: 8,
        }
    }

    /// The tree, written down.
    fn tree(values: &[f64], start: usize, level: u32) -> f64 {
        if level == 0 {
            return values[start];
        }
        let half = 1usize << (level - 1);
        let left = tree(values, start, level - 1);
        if start + half < values.len() {
            left + tree(values, start + half, level - 1)
        } else {
            left
        }
    }

    proptest! {
        #[test]
        fn sums_are_the_same_bits_however_ranks_are_spread(
            values in prop::collection::vec(-1e10f64..1e10, 1..70),
            owners in prop::collection::vec(0usize..4, 70),
            order in any::<u64>(),
        ) {
            let n = values.len() as u32;
            let mut all = Operation { spec: Some(spec(n)), ..Operation::default() };
            for pe in 0..4 {
                let mut mine = Operation { spec: Some(spec(n)), ..Operation::default() };
                for i in 0..n {
                    let i = (u64::from(i).wrapping_add(order) % u64::from(n)) as usize;
                    if owners[i] == pe {
                        let part = mine.store(i as u32, 0, &values[i].to_ne_bytes());
                        mine.parts.push(part);
                    }
                }
                mine.fold();
                for part in &mine.parts {
                    let part = all.store(part.start, part.level, &mine.data[part.at..part.at + 8]);
                    all.remote.push(part);
                }
            }
            prop_assert_eq!(all.covered(n), n);
            all.parts = std::mem::take(&mut all.remote);
            all.fold();
            prop_assert_eq!(all.parts.len(), 1);
            let at = all.parts[0].at;
            let sum = f64::from_ne_bytes(all.data[at..at + 8].try_into().unwrap());
            let top = n.next_power_of_two().trailing_zeros();
            prop_assert_eq!(sum.to_bits(), tree(&values, 0, top).to_bits());
        }
    }
}
