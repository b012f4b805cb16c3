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
        reason = "places in buffers that are there, and ranks below their number"
    )
)]

use std::collections::VecDeque;

use crate::comm::advance::{Around, Progress};
use crate::comm::groups::Groups;
use crate::comm::guests::{self, Contributions, Guests};
use crate::comm::parts::{EVERYBODY, Key};
use crate::comm::spec::{Disagreement, PART_HEADER, PHASE_BITS, Spec, Waiting, What};
use crate::comm::under_way::UnderWay;
use crate::net::parcel::Parcel;
use crate::net::{INLINE, Kind, Packet};
use crate::pe::{self, Completion, Core, Engine, Request, Room, Started, copy_short};

/// Most packets that wait for an operation to be begun, without one being made for them.
const MOST_EARLY: usize = 128;

/// The small collective operations of a PE.
#[derive(Debug, Default)]
pub struct Combining {
    under_way: UnderWay,
    /// Short packets for operations that no rank of this PE has begun: a few, in the order in which they came.
    early: VecDeque<Packet>,
    /// A buffer for a packet's data, reused between packets.
    outgoing: Vec<u8>,
    /// Which ranks take part in the operations of each context.
    pub groups: Groups,
    /// Contributions in flight from ranks that began elsewhere.
    guests: Guests,
}

/// How a contribution has changed things for its rank.
#[derive(Clone, Copy, Debug)]
enum Contributed {
    /// Results may have been handed out.
    MayBeDone,
    /// Nobody has got a result by it.
    Waits,
}

/// Starts a small collective operation of the running rank.
///
/// # Safety
/// `input` is readable for `unit` bytes now (if the rank contributes), and `out` is writable
/// for the result (if the rank gets it) until the request is done: B3.
#[inline]
pub(crate) unsafe fn combine(
    engine: &mut Engine,
    spec: &Spec,
    number: Option<u32>,
    input: *const u8,
    out: *mut u8,
) -> Started {
    let (combining, core) = engine.part::<Combining>();
    // SAFETY: the same promise.
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
        // Those that wait hear of a conflict.
        let _ = combining.contribute(core, &Spec { rank, ..spec }, number, waiting.take(), bytes);
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
    // SAFETY: the packet's payload, says the caller.
    unsafe { combining.take_packet(core, packet, payload) };
}

impl Combining {
    /// Starts a small collective operation of the running rank.
    ///
    /// # Safety
    /// As for [`combine`].
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
            // SAFETY: the same promise.
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
            // SAFETY: the rank contributes `unit` bytes, says the caller.
            _ => unsafe { std::slice::from_raw_parts(input, unit) },
        };
        let waiting = request.map(|request| Waiting { rank: me, place: rank, request, out });
        let said = match core.shared.home(me) == core.id {
            true => self.contribute(core, spec, number, waiting, bytes),
            false => self.contribute_as_guest(core, spec, number, waiting, bytes),
        };
        match (request, said) {
            (None, Err(conflict)) => Started::Done(conflict.outcome()),
            (None, Ok(_)) if broadcast => core.when_sent(),
            (None, Ok(_)) => Started::done(),
            (Some(request), Ok(Contributed::Waits)) => Started::pending(request),
            (Some(request), _) => core.outcome(request),
        }
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
            if !self.early.is_empty() {
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
            // SAFETY: the root's `unit` bytes, says the caller; with the header they fit into the packet.
            unsafe { copy_short(input, rest.as_mut_ptr(), unit) };
            for target in targets.iter() {
                // SAFETY: the packet has no payload.
                unsafe { core.net.send(*target as usize, &packet, std::ptr::null()) };
            }
        } else {
            let front = self.early.front()?;
            let means_it = (front.context, front.sequence) == (context, number)
                && Disagreement::of(front) == meant;
            if !means_it || front.len as usize != PART_HEADER + unit {
                return None;
            }
            self.groups.alone(core.shared, core.id, spec)?;
            let packet = self.early.pop_front()?;
            // SAFETY: the packet has `unit` bytes behind the header, as was checked; B3, says the caller.
            unsafe { copy_short(packet.data.0.as_ptr().add(PART_HEADER), out, unit) };
            outcome.bytes = unit as u64;
        }
        self.groups.contributed(spec, 1);
        if is_root { Some(core.when_sent()) } else { Some(Started::Done(outcome)) }
    }

    /// A rank that began here takes part in an operation. `bytes` is what it contributes, if it
    /// does; `waiting` says where it wants the result, if it does. An error: ranks disagree.
    fn contribute(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        number: u32,
        waiting: Option<Waiting>,
        bytes: &[u8],
    ) -> Result<Contributed, Disagreement> {
        let Spec { root, rank, context, .. } = *spec;
        let broadcast = matches!(spec.what, What::Broadcast);
        let is_root = root == Some(rank);
        let Combining { under_way, early, outgoing, groups, .. } = self;
        let around = &mut Around { core, groups, outgoing };
        let operation = under_way.get((context, number));
        operation.enter(around, early, spec, waiting)?;
        operation.arrived += 1;
        if !broadcast {
            operation.add(rank, bytes);
        } else if is_root {
            let part = operation.store(0, EVERYBODY, bytes);
            operation.parts.push(part);
            operation.covered_here = spec.size;
        }
        if let Some(conflict) = operation.conflict {
            operation.report_conflict(around.core);
            return Err(conflict);
        }
        let last = operation.arrived == operation.here;
        let sends = if broadcast { is_root } else { last };
        let mut progress = if sends { operation.send_parts(around) } else { Progress::UnderWay };
        if progress == Progress::UnderWay && (broadcast || last) {
            // SAFETY: B3.
            progress = unsafe { operation.finish_if_complete(around) };
        }
        if progress == Progress::Over {
            self.close((context, number));
        }
        Ok(if broadcast || last { Contributed::MayBeDone } else { Contributed::Waits })
    }

    /// The running rank, which began elsewhere, takes part in an operation. An error: ranks disagree.
    #[inline(never)]
    fn contribute_as_guest(
        &mut self,
        core: &mut Core,
        spec: &Spec,
        number: u32,
        mut waiting: Option<Waiting>,
        bytes: &[u8],
    ) -> Result<Contributed, Disagreement> {
        let key = (spec.context, number);
        let broadcast = matches!(spec.what, What::Broadcast);
        if broadcast || !self.groups.has_members_of(core.shared, core.id, spec) {
            guests::send_alone(core, spec, number, waiting, bytes);
        } else if spec.is_rooted() {
            self.guests.add(core, &self.groups, spec, number, waiting, bytes);
        } else {
            // All PEs with members get all parts, but not before this rank's home has sent what it
            // contributes: the operation is still under way here.
            let Combining { under_way, early, outgoing, groups, guests } = self;
            let around = &mut Around { core, groups, outgoing };
            let operation = under_way.get(key);
            operation.enter(around, early, spec, waiting.take())?;
            if let Some(conflict) = operation.conflict {
                operation.report_conflict(around.core);
                return Err(conflict);
            }
            guests.add(core, groups, spec, number, waiting, bytes);
            return Ok(Contributed::Waits);
        }
        // Ranks of this PE may know better.
        self.under_way.conflict(key).map_or(Ok(Contributed::Waits), Err)
    }

    /// Parts have come from another PE.
    ///
    /// # Safety
    /// `payload` is readable for `packet.payload()` bytes.
    unsafe fn take_packet(&mut self, core: &mut Core, packet: &Packet, payload: *const u8) {
        let key = (packet.context, packet.sequence);
        let is_short = packet.len as usize <= INLINE;
        if is_short && self.early.len() < MOST_EARLY && !self.under_way.may_have(key) {
            return self.early.push_back(*packet);
        }
        let Combining { under_way, outgoing, groups, .. } = self;
        let around = &mut Around { core, groups, outgoing };
        let operation = under_way.get(key);
        if !operation.store_parts(around, packet, payload) {
            return;
        }
        // SAFETY: B3.
        if unsafe { operation.finish_if_complete(around) } == Progress::Over {
            self.close(key);
        }
    }

    /// All ranks of this PE have come, and what they wait for is done.
    fn close(&mut self, key: Key) {
        let operation = self.under_way.get(key);
        if let Some(spec) = operation.spec {
            self.groups.contributed(&spec, operation.arrived);
        }
        operation.clear();
        self.under_way.forget(key);
    }
}
