//! What pins a rank: something outside its slot that it holds, or a reference from its memory to
//! others' or from others' memory to its own.
//!
//! What a rank holds is known at once; references are searched ([`vrt_slot::search`]) when the rank
//! is to move, and before that only if something was found the last time.

use crate::migrate::migration::{Migration, Stays};
use crate::migrate::reasons::Pin;
use crate::pe::{Core, Obstacle, RankState, Status};
use vrt_slot::external::{self, counted, spans};
use vrt_slot::foreign;
use vrt_slot::search::{self, Journey};
use vrt_slot::{SlotHeader, SlotId, allocator};

/// Whether a rank can be moved now, so far as can be told without a search of its memory.
fn may_move(core: &Core, rank: u32, in_node: bool) -> Result<(), Stays> {
    match core.ranks.get(rank as usize).and_then(Option::as_deref) {
        None => Err(Stays::NotHere),
        Some(state) if matches!(state.status, Status::Running | Status::Ended) => {
            Err(Stays::Running)
        }
        Some(state) if state.requests.iter().any(|request| request.direct) => Err(Stays::InUse),
        Some(state) => {
            held_outside(state, in_node, None).map_or(Ok(()), |why| Err(Stays::Pinned(why)))
        }
    }
}

impl Migration {
    /// Whether a suspended rank can go to a PE: it is not pinned, and its memory means the same
    /// there. What is found is kept for [`known_pin`](Self::known_pin).
    pub(crate) fn may_go(&mut self, core: &mut Core, rank: u32, to: u32) -> Result<(), Stays> {
        let journey = match (self.rules.by_state, core.shared.is_near(to)) {
            (true, _) => Journey::ByState,
            (false, true) => Journey::InNode,
            (false, false) => Journey::Away,
        };
        may_move(core, rank, journey == Journey::InNode)?;
        // Nobody outside can wake it any more, but somebody may just have: it must hear that here.
        core.take_injected();
        let obstacle = self.obstacle(core, rank, journey, None);
        let pe = core.id;
        if let Some(state) = core.rank(rank) {
            let steps = state.obstacle.map_or(0, |before| before.steps);
            state.obstacle = obstacle.map(|why| Obstacle { why, steps });
            if obstacle.is_none() && journey == Journey::InNode {
                // SAFETY: G1, G2; `obstacle` was just called for it.
                unsafe { self.search.note_leaving(state.slot, pe) };
            }
        }
        obstacle.map_or(Ok(()), |why| Err(Stays::Pinned(why)))
    }

    /// Why the running rank could not be moved if it were suspended in the call at whose frame its own stack ends.
    pub fn pinned(&mut self, core: &mut Core, frame: usize) -> Option<&'static str> {
        let (rank, farthest) = (core.current, self.farthest_journey(core));
        let in_node = farthest == Journey::InNode;
        let held = core.rank(rank).and_then(|state| held_outside(state, in_node, Some(frame)));
        held.or_else(|| self.obstacle(core, rank, farthest, Some(frame)))
    }

    /// Why a rank cannot move, as far as known when a step begins: its memory is searched again only if something was
    /// found in it the last time, and not while it runs: then it polls, and has frames of the PE on its stack.
    pub fn known_pin(&mut self, core: &mut Core, rank: u32) -> Option<Pin> {
        let in_node = self.farthest_journey(core) == Journey::InNode;
        let state = core.rank(rank)?;
        if let Some(held) = held_itself(state, in_node) {
            return Some(Pin::certain(held));
        }
        if state.status == Status::Running {
            return state.obstacle.map(Pin::from);
        }
        // SAFETY: G1, and the rank is suspended, as it does not run; this is the PE's thread.
        let held =
            unsafe { counted::known_pin(state.slot).or_else(|| spans::pin(state.slot, None)) };
        if let Some(held) = held {
            return Some(Pin::certain(held));
        }
        let Obstacle { steps, .. } = state.obstacle?;
        let farthest = self.farthest_journey(core);
        let found = self.obstacle(core, rank, farthest, None);
        let obstacle = found.map(|why| Obstacle { why, steps: steps.saturating_add(1) });
        core.rank(rank)?.obstacle = obstacle;
        obstacle.map(Pin::from)
    }

    /// How far ranks of this job may go.
    fn farthest_journey(&self, core: &Core) -> Journey {
        match (self.rules.by_state, core.shared.nodes() > 1) {
            (true, _) => Journey::ByState,
            (false, true) => Journey::Away,
            (false, false) => Journey::InNode,
        }
    }

    /// Searches for what keeps a rank from a journey; `frame`: it runs, and its own stack ends there.
    fn obstacle(
        &mut self,
        core: &Core,
        rank: u32,
        journey: Journey,
        frame: Option<usize>,
    ) -> Option<&'static str> {
        let (thorough, farthest) = (core.options.check_moves, self.farthest_journey(core));
        let ranks = &core.ranks;
        let state = ranks.get(rank as usize)?.as_deref()?;
        // A job's slots have the numbers of their ranks.
        let slot_of = |rank: u32| Some(ranks.get(rank as usize)?.as_deref()?.slot);
        let others = Others { of: state.slot, ranks };
        let requests = state.requests.iter().filter(|request| request.in_use);
        let own_roots: Vec<usize> = requests
            .map(|request| request.buffer as usize)
            .chain(state.at_sync.map(|at_sync| at_sync.at))
            .collect();
        let runs = |state: &RankState| matches!(state.status, Status::Running | Status::Ended);
        let mut may_leave = ranks
            .iter()
            .flatten()
            .filter(|state| farthest != Journey::InNode && !runs(state))
            .map(|state| state.slot);
        // SAFETY: G1; this is the PE's thread, on which only the rank that calls this runs, if one does.
        let found = unsafe {
            let header_of = |slot: SlotId| slot_of(slot.0);
            self.search.scan_roots(core.resumes, frame.is_some(), &header_of, &mut may_leave);
            self.search.obstacle(state.slot, journey, thorough, frame, &own_roots, &others)
        }?;
        if thorough && frame.is_none() {
            vrt_slot::report::say(format_args!("check: rank {rank} on PE {}: {found}", core.id));
        }
        Some(self.reasons.text(found))
    }
}

/// Who may refer to the memory of the rank in a slot, among a PE's ranks and threads.
struct Others<'a> {
    of: *mut SlotHeader,
    ranks: &'a [Option<Box<RankState>>],
}

impl search::Others for Others<'_> {
    fn slots(&self) -> Vec<*mut SlotHeader> {
        let others = self.ranks.iter().flatten().filter(|other| other.slot != self.of);
        others.filter(|other| other.status != Status::Ended).map(|other| other.slot).collect()
    }

    fn have_threads(&self) -> bool {
        foreign::has_foreign_threads()
    }
}

/// What a rank has outside its slot and cannot take along, in its node or farther, or what of its PE its memory refers
/// to, if anything. It is suspended, or it runs and its own stack ends at `frame`.
fn held_outside(state: &RankState, in_node: bool, frame: Option<usize>) -> Option<&'static str> {
    held_itself(state, in_node).or_else(|| {
        // SAFETY: G1; the rank is suspended or calls this, on the PE's thread.
        unsafe { counted::pin(state.slot, frame).or_else(|| spans::pin(state.slot, frame)) }
    })
}

/// What a rank has outside its slot that is known without a search.
fn held_itself(state: &RankState, in_node: bool) -> Option<&'static str> {
    if allocator::is_another() {
        return Some("the program's global allocator does not take its memory from malloc");
    }
    if state.waits_for_outside() {
        return Some("it waits for something outside vrt: a tokio timer, socket, file or thread");
    }
    if state.blocked.lock.is_some() {
        return Some("it waits for a lock or condition of its process");
    }
    // SAFETY: G1.
    let held = external::pin(unsafe { &*state.slot }, in_node);
    if held.is_some() {
        return held;
    }
    let outside = state.requests.iter().any(|request| request.in_use && request.outside);
    outside.then_some("a message is under way from or to memory outside its slot")
}
