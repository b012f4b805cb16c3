//! The end of a local run in which ranks have not ended, because of a panic or a deadlock.
//!
//! They are abandoned where they wait: never resumed, and without destructors. What they have borrowed disappears with
//! the caller's frame, so no code of theirs may continue. Threads continue that such a rank has started and would have
//! joined before its borrows end: those of a `std::thread::scope`, others that are not joined, and those of a pool that
//! the rank waits for. There is no way to end threads, and they might wait for the rank, so the process ends then.
//! Detached threads, such as those of an idle pool, borrow nothing.

use crate::pe::core::Core;
use crate::pe::rank_state::Status;
use crate::pe::thread::with_in_loop;
use vrt_slot::external::counted;
use vrt_slot::rank::{self, Body};
use vrt_slot::report;

/// The loop of a PE runs while this lives.
#[derive(Debug)]
pub(super) struct Running {
    /// All ranks have ended.
    pub(super) finished: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished
            && let Some(rank) = with_in_loop(|pe| pe.engine.who_lends())
        {
            report::say(format_args!(
                "the run ends while rank {rank} waits and threads that it has to join may use what it \
                 has borrowed (as those of std::thread::scope do): so the whole process ends"
            ));
            std::process::abort();
        }
        with_in_loop(|pe| pe.engine.give_up_wakers());
        counted::forget();
    }
}

impl Core {
    /// Whoever holds wakers of its ranks wakes nobody any more.
    fn give_up_wakers(&self) {
        for state in self.ranks.iter().flatten() {
            // SAFETY: the slot of a rank of this PE: headers stay mapped.
            rank::give_up_wakers(unsafe { &*state.slot });
        }
    }

    /// In a local run: a rank that has not ended and whose threads may use what it has borrowed.
    fn who_lends(&self) -> Option<u32> {
        if !self.options.local {
            return None;
        }
        let ranks = (0..).zip(&self.ranks);
        let mut waiting = ranks.filter_map(|(rank, state)| {
            let state = state.as_deref().filter(|state| state.status != Status::Ended)?;
            // SAFETY: the slot of a rank of this PE. A thread that is a rank is not abandoned: it
            // unwinds.
            unsafe { !Body::is_thread(state.slot) }.then_some((rank, state))
        });
        let lends = waiting.find(|(_, state)| {
            // SAFETY: the slot of a rank of this PE, which is suspended.
            let (held, scoped) =
                unsafe { (&(*state.slot).held, counted::holds_thread(state.slot)) };
            held.has_threads()
                && (held.has_threads_to_join() || scoped || state.blocked.lock.is_some())
        });
        lends.map(|(rank, _)| rank)
    }
}
