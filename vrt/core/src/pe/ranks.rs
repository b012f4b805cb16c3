//! The ranks of a PE: finding, waking, resuming and stopping them.

use crate::pe::about::RAN_LAST;
use crate::pe::core::Core;
use crate::pe::rank_state::{Awaiting, RankState, Status, WindowPart};
use vrt_slot::SlotHeader;

impl Core {
    /// The state of a rank that lives here.
    #[inline(always)]
    pub fn rank(&mut self, rank: u32) -> Option<&mut RankState> {
        self.ranks[rank as usize].as_deref_mut()
    }

    /// The state of the running rank.
    ///
    /// # Panics
    /// If none runs.
    #[inline(always)]
    pub fn running(&mut self) -> &mut RankState {
        match self.ranks.get_mut(self.current as usize).and_then(Option::as_deref_mut) {
            Some(state) => state,
            None => panic!("a vrt operation was called while no rank runs on this thread"),
        }
    }

    /// Marks a request of a rank as done and wakes the rank if it waits for it.
    #[inline]
    pub fn complete(&mut self, rank: u32, number: u32) {
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else {
            return self.complete_elsewhere(rank, number);
        };
        if state.finish(number) {
            self.ready.push_back(rank);
        }
    }

    /// Something has happened that concerns a rank; `None`: it may be anything.
    #[inline]
    pub(crate) fn notify(&mut self, rank: u32, request: Option<u32>) {
        if self.ranks[rank as usize].as_deref_mut().is_some_and(|state| state.note(request)) {
            self.ready.push_back(rank);
        }
    }

    /// A rank is about to be resumed.
    #[inline(always)]
    pub(crate) fn set_running(&mut self, rank: u32) -> Option<*mut SlotHeader> {
        let state = self.ranks[rank as usize].as_deref_mut()?;
        if state.status != Status::Ready {
            return None;
        }
        state.status = Status::Running;
        state.notified = false;
        // Probes that go on say so again.
        state.probing = false;
        if let Awaiting::Request(request) = state.awaiting
            && !state.awaited.is_null()
        {
            if let Some(outcome) = state.take_if_done(request) {
                // SAFETY: `await_outcome` was promised that it lives until the rank goes on.
                unsafe { (*state.awaited).outcome.set(Some(outcome)) };
            }
            state.awaited = std::ptr::null();
        }
        state.awaiting = Awaiting::Nothing;
        let slot = state.slot;
        if !self.guarded[rank as usize] {
            self.guarded[rank as usize] = true;
            // SAFETY: a prepared slot of this PE.
            unsafe { (*slot).install_guard() };
        }
        self.current = rank;
        RAN_LAST.set(rank);
        Some(slot)
    }

    /// The running rank has stopped after so many cycles. Returns whether it is suspended.
    #[inline(always)]
    pub(crate) fn set_stopped(&mut self, rank: u32, cycles: u64, suspended: bool) -> bool {
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return false };
        state.counters.run += cycles;
        state.counters.switches += 1;
        if !suspended || self.exiting.is_some() {
            return false;
        }
        if state.notified {
            state.status = Status::Ready;
            self.ready.push_back(rank);
        } else {
            state.status = Status::Waiting;
        }
        true
    }

    /// Gives others access to the running rank's part of a window. Any rank that knows the window may access it at
    /// once, so this must happen before the rank tells others that it has its part.
    pub fn add_window(&mut self, context: u32, part: WindowPart) {
        let state = self.running();
        state.owned.windows += 1;
        state.windows.insert(context, part);
        self.used.made.windows += 1;
    }

    /// The running rank has freed its part of the window.
    pub fn remove_window(&mut self, context: u32) {
        let state = self.running();
        state.owned.windows = state.owned.windows.saturating_sub(1);
        state.windows.remove(&context);
    }

    /// The running rank wants to go on after the others.
    #[inline]
    pub(crate) fn yield_current(&mut self) {
        let state = self.running();
        state.awaiting = Awaiting::Anything;
        state.notified = true;
    }

    /// The running rank blocks its thread, and will do so for ever.
    pub(crate) fn stop_for_ever(&mut self, word: usize) {
        let state = self.running();
        state.status = Status::Waiting;
        state.blocked.lock = Some(word);
    }
}
