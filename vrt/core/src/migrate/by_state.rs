//! Moves a rank by the state that it has encoded.

use crate::migrate::migration::{Migration, Stays};
use crate::migrate::state::{MovingRank, dispatch};
use crate::pe::{Awaiting, Encoded, Engine, Status, Wait};
use vrt_shm::Begun;
use vrt_slot::{external, hooks};

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
    if far && engine.shared.lease(rank).begin_leaving() == Begun::InUse {
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
    // SAFETY: G1, G2; the rank is not resumed, and `may_go` has seen that nobody outside waits to wake it. The pages
    // stay: in this node they serve the rank's next life.
    unsafe {
        core.net.keep_data_of(rank);
        external::abandon(slot);
        hooks::own(slot, 0);
    }
    let timers = if far { core.timers.take_relative(rank) } else { core.timers.take_of(rank) };
    let mut moving = MovingRank::pack(rank, state, timers);
    moving.begins = true;
    if far {
        core.announce(rank, to, moving.state.moves);
        // SAFETY: G1: the rank was this PE's until now.
        unsafe { moving.detach_beside_state() };
        migration.send_state(core, rank, to, kept);
    }
    tracing::trace!(rank, to, bytes = at_sync.len, "moves by its state");
    dispatch(core, rank, to, &mut moving);
    Ok(at_sync.len as u64)
}
