//! Ranks at a point where they may be moved (Charm++'s AtSync), and ranks that move by their state.
//!
//! A rank that moves by its state does so in a second step: it is told where to go, in the same call of `migrate` or
//! before it, encodes its state, and leaves.

use crate::migrate::kept::KeptState;
use crate::migrate::migration::{Migration, Stays};
use crate::migrate::options::MoveBy;
use crate::pe::{AtSync, Core, Request, Started};

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
