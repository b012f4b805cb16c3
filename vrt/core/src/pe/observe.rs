//! Reports events to an observer of a PE: the basis of traces. Without an observer, each place costs one check.

use std::sync::atomic::Ordering;

use crate::cycles;
use crate::mailbox::Pattern;
use crate::pe::core::Core;
use crate::pe::events::{CAN_BE_OBSERVED, Event, OBSERVED, Observer, Then, is_observed};
use crate::pe::rank_state::{Counters, RankState, Status};
use crate::pe::thread::{Pe, with};
use vrt_slot::hooks::in_rank;

/// A rank of this thread has entered a region of its program with this name.
#[inline]
pub fn region_begins(name: &str) {
    of_running(|rank| Event::RegionBegins { rank, name });
}

/// The running rank has left the region that it entered last.
#[inline]
pub fn region_ends() {
    of_running(|rank| Event::RegionEnds { rank });
}

/// The running rank's part in a collective operation is over.
#[inline(always)]
pub(crate) fn collective_ends(context: u32, call: &'static str) {
    if is_observed() {
        observe_collective_end(context, call);
    }
}

#[cold]
#[inline(never)]
fn observe_collective_end(context: u32, call: &'static str) {
    of_running(|rank| Event::CollectiveEnds { rank, context, call });
}

#[inline(always)]
fn of_running<'a>(event: impl FnOnce(u32) -> Event<'a>) {
    if is_observed() && in_rank() {
        with(|pe| {
            let event = event(pe.engine.current);
            pe.engine.observe(event);
        });
    }
}

impl Core {
    /// Begins to tell somebody what happens.
    pub(super) fn begin_to_observe(&mut self) {
        if self.has_observer() {
            OBSERVED.store(true, Ordering::Relaxed);
            self.observed_until = self.stamp;
        }
    }

    /// Whether there is an observer.
    #[inline(always)]
    pub fn has_observer(&self) -> bool {
        CAN_BE_OBSERVED && self.observer.is_some()
    }

    /// Reports an event to the observer, if there is one.
    #[cold]
    #[inline(never)]
    pub fn observe(&mut self, event: Event<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.observe(event);
        }
    }

    /// The running rank has begun a collective operation.
    #[cold]
    #[inline(never)]
    pub(crate) fn observe_collective(&mut self, context: u32, call: &'static str) {
        let rank = self.current;
        self.observe(Event::CollectiveBegins { rank, context, call });
    }

    /// A rank stops at the stamp that was taken last.
    #[cold]
    #[inline(never)]
    pub(super) fn observe_stop(&mut self, rank: u32, suspended: bool) {
        let then = match self.ranks[rank as usize].as_deref() {
            Some(state) if suspended && self.exiting.is_none() => match state.notified {
                true => Then::Ready,
                false => {
                    let wait = state.waits_for();
                    let partner = wait.pattern.map(|Pattern { source, .. }| source);
                    Then::Waits { call: wait.site.call, partner }
                }
            },
            _ => Then::Over,
        };
        let (from, to) = (self.observed_until, self.stamp);
        self.observed_until = to;
        self.observe(Event::Ran { rank, from, to, then });
    }

    /// The PE has been idle until the stamp that was taken last.
    #[cold]
    #[inline(never)]
    pub(super) fn observe_idle(&mut self) {
        let (from, to) = (self.observed_until, self.stamp);
        self.observed_until = to;
        self.observe(Event::Idle { from, to });
    }

    /// The PE has looked for so long whether what the running rank waits for would come.
    #[cold]
    #[inline(never)]
    pub(super) fn observe_look(&mut self, waited: u64) {
        let (from, now) = (self.observed_until, cycles::now());
        let began = now.wrapping_sub(waited);
        let rank = self.current;
        self.observed_until = now;
        self.observe(Event::Ran { rank, from, to: began, then: Then::Looks });
        self.observe(Event::Idle { from: began, to: now });
    }

    /// A rank's program is over.
    #[cold]
    #[inline(never)]
    pub(super) fn observe_end(&mut self, rank: u32, state: &RankState) {
        debug_assert_eq!(state.status, Status::Ended);
        let sent = state.peers.iter().fold((0, 0), |(messages, bytes), (_, peer)| {
            (messages + peer.messages, bytes + peer.bytes)
        });
        let Counters { run, switches, .. } = state.counters;
        self.observe(Event::Over { rank, run, switches, messages: sent.0, bytes: sent.1 });
    }
}

impl Pe {
    /// Removes the observer: the PE has ended.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.engine.core.observer.take()
    }
}
