//! Ranks at a point where they may be moved (Charm++'s AtSync), and ranks that move by their state.
//!
//! A rank that moves by its state does so in a second step: it is told where to go, in the same call of `migrate` or
//! before it, encodes its state, and leaves.

use std::mem::MaybeUninit;
use std::time::Duration;

use super::{Migration, MoveBy, MovingRank, Stays, dispatch, ship};
use crate::pe::{AtSync, Awaiting, Core, Encoded, Engine, Request, Started, Status, Wait};
use vrt_slot::{external, hooks};

/// The encoded state of a rank, written directly into the block of its PE's pool from which it is decoded in this node,
/// or sent to another one. The block goes with the rank; if it is dropped in a rank that has stayed, it is freed. (An
/// address, not a pointer: it may lie in a rank's future.)
#[derive(Debug)]
pub struct KeptState {
    at: usize,
    len: usize,
}

impl KeptState {
    /// A block of this many bytes, if available; all of them must be [written](Self::write).
    pub fn allocate(core: &mut Core, len: usize) -> Option<KeptState> {
        // SAFETY: the pool is this PE's.
        let block = unsafe { hooks::allocate_in(core.pool, ship::whole_lines(len)) };
        (!block.is_null()).then_some(KeptState { at: block as usize, len })
    }

    /// The block, for writing.
    pub fn write(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the block is as long, and nobody else's.
        unsafe { std::slice::from_raw_parts_mut(self.at as *mut MaybeUninit<u8>, self.len) }
    }

    /// The written bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block is as long, and nobody else's; as memory of the arena, which is a file, it has
        // some contents from the beginning.
        unsafe { std::slice::from_raw_parts(self.at as *const u8, self.len) }
    }
}

impl Drop for KeptState {
    fn drop(&mut self) {
        // SAFETY: a block that is nobody else's: a rank that has left does not drop anything here.
        unsafe { hooks::free_in_arena(self.at as *mut u8) };
    }
}

/// Pending requests of a PE's ranks about moving.
#[derive(Debug, Default)]
pub struct AtSyncRanks {
    /// Ranks that want to move, each with the PE to which.
    pub(super) pending_moves: Vec<(u32, u32)>,
    /// The ranks that wait in `migrate`, each with the number of that call.
    pub waiting: Vec<(u32, u32)>,
    /// Bytes of states that have moved at their ranks' own request, and the time that took.
    pub gone: (u64, Duration),
    /// Something happened after which all ranks may be waiting in `migrate`.
    changed: bool,
    /// Ranks known to be here that have not ended: the last count, minus those that have left or ended since.
    known: usize,
}

impl AtSyncRanks {
    /// Whether, since this was last asked, something happened after which all ranks may be waiting.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether all ranks of the PE may be waiting in `migrate`. Counting them touches a cache line of each, which must
    /// not happen for each rank that begins to wait.
    pub fn may_be_all(&self) -> bool {
        self.waiting.len() >= self.known
    }

    /// This many ranks of the PE that have not ended have been counted.
    pub fn counted(&mut self, ranks: usize) {
        self.known = ranks;
    }

    /// A rank has ended here, or has left.
    pub fn one_less(&mut self) {
        self.known = self.known.saturating_sub(1);
    }

    /// Records work for a rank that moves at its own request.
    pub fn went_by_itself(&mut self, bytes: u64, taken: Duration) {
        self.gone.0 += bytes;
        self.gone.1 += taken;
    }
}

impl Migration {
    /// How the running rank would move if it offered itself now; `None`: not at all.
    pub fn would_move(&self, core: &mut Core) -> Option<MoveBy> {
        let move_by = self.rules.move_by?;
        let called = !self.rules.periodic || core.running().destination.is_some();
        (called || move_by == MoveBy::InPlace).then_some(move_by)
    }

    /// The running rank wants to move to another PE, with its encoded state if it moves that way and there was room for
    /// it.
    pub fn leave_for(&mut self, core: &mut Core, to: u32, kept: Option<&KeptState>) -> Started {
        let (at, len) = kept.map_or((0, 0), |kept| (kept.at, kept.len));
        let state = core.running();
        let request = state.new_request(Request::send());
        state.at_sync = Some(AtSync { request, at, len });
        self.at_sync.pending_moves.push((core.current, to));
        self.look_soon(core);
        Started::pending(request)
    }

    /// The running rank offers itself to be moved.
    pub fn at_sync(&mut self, core: &mut Core) -> Started {
        if self.rules.periodic {
            return Started::done();
        }
        let state = core.running();
        let request = state.new_request(Request::send());
        state.at_sync = Some(AtSync { request, at: 0, len: 0 });
        state.at_sync_calls = state.at_sync_calls.wrapping_add(1);
        self.at_sync.waiting.push((core.current, core.running().at_sync_calls));
        self.look_soon(core);
        Started::pending(request)
    }

    /// Something happened after which all ranks may be waiting in `migrate`.
    pub fn look_soon(&mut self, core: &mut Core) {
        self.at_sync.changed = true;
        core.call_soon();
    }

    /// Tells a rank to move to another PE by its state when it is in `migrate`.
    pub fn set_destination(&mut self, core: &mut Core, rank: u32, to: u32) -> Result<(), Stays> {
        self.may_go(core, rank, to)?;
        core.rank(rank).ok_or(Stays::NotHere)?.destination = Some(to);
        Ok(())
    }
}

/// A rank that offered itself stays, or moves with its memory: it continues.
pub fn end_at_sync(core: &mut Core, rank: u32) {
    let at_sync = core.rank(rank).and_then(|state| state.at_sync.take());
    if let Some(at_sync) = at_sync {
        core.complete(rank, at_sync.request);
    }
}

/// Moves a rank that waits in `migrate` by its encoded state: drops its stack and heap whole, and has
/// its program begin again on another PE. Returns the bytes of the state.
pub(super) fn move_by_state(engine: &mut Engine, rank: u32, to: u32) -> Result<u64, Stays> {
    debug_assert_ne!(to, engine.id);
    let Some(state) = engine.rank(rank) else { return Err(Stays::NotHere) };
    let Some(at_sync) = state.at_sync else { return Err(Stays::NotHere) };
    let open = state.requests.iter().filter(|request| request.in_use).count();
    if open > 1 || state.matched.iter().any(Option::is_some) {
        return Err(Stays::Pinned("it has open requests besides `migrate`"));
    }
    if state.owned.windows > 0 {
        return Err(Stays::Pinned("it has a window: others would reach memory that it drops"));
    }
    if at_sync.at == 0 {
        return Err(Stays::Pinned("there is no room for its encoded state"));
    }
    let far = !engine.shared.is_near(to);
    if far && !engine.shared.send_away(rank) {
        return Err(Stays::InUse);
    }
    let Some(mut state) = engine.ranks[rank as usize].take() else { return Err(Stays::NotHere) };
    // Its handles go with its heap, without being dropped one by one. Those that the state has are made
    // again from it; then the others are given up.
    state.owned.communicators = 0;
    state.drop_restored();
    let kept = Encoded { at: at_sync.at as *mut u8, len: at_sync.len };
    state.restored = Some(kept);
    state.status = Status::Ready;
    state.awaiting = Awaiting::Nothing;
    state.awaited = std::ptr::null();
    state.wait = Wait::default();
    state.requests = Vec::new();
    state.free_requests = Vec::new();
    state.detached = Vec::new();
    let slot = state.slot;
    let (migration, core) = engine.part::<Migration>();
    // SAFETY: the slot is this PE's, its rank is suspended and will not be resumed, and
    // `may_move` saw that nobody outside waits to wake it. What it has sent is still there.
    // The pages stay: in this node they serve the rank's next life.
    unsafe {
        core.net.keep_data_of(rank);
        external::abandon(slot);
        hooks::own(slot, 0);
    }
    let timers = if far { core.timers.take_relative(rank) } else { core.timers.take_of(rank) };
    let mut moving = MovingRank::pack(rank, *state, timers);
    moving.begins = true;
    if far {
        core.announce(rank, to, moving.moves);
        // SAFETY: the rank was this PE's.
        unsafe { moving.detach_beside_state() };
        migration.send_state(core, rank, to, kept);
    }
    tracing::trace!(rank, to, bytes = at_sync.len, "moves by its state");
    dispatch(core, rank, to, &mut moving);
    Ok(at_sync.len as u64)
}
#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks were counted for each one that came to wait in `migrate`, so that a step among 16,384 of a PE took a second.
    #[test]
    fn ranks_are_counted_when_all_may_wait() {
        let mut ranks = AtSyncRanks::default();
        // How many there are is not known yet.
        assert!(ranks.may_be_all());
        ranks.counted(3);
        for rank in 0..2 {
            ranks.waiting.push((rank, 1));
            assert!(!ranks.may_be_all());
        }
        ranks.waiting.push((2, 1));
        assert!(ranks.may_be_all());
    }

    #[test]
    fn a_rank_that_goes_is_not_waited_for() {
        let mut ranks = AtSyncRanks::default();
        ranks.counted(2);
        ranks.waiting.push((0, 1));
        assert!(!ranks.may_be_all());
        ranks.one_less();
        assert!(ranks.may_be_all());
        (0..3).for_each(|_| ranks.one_less());
        assert!(ranks.may_be_all());
    }
}
