//! Polling: the loop with nothing to do, and a rank that waits while nothing else is ready.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use crate::cycles::{self, cycles_between};
use crate::net::shared::Ended;
use crate::pe::core::Engine;
use crate::pe::idle::policy::{CALLS_BETWEEN_TURNS, LOOKS, RANK_SPINS, TIMED_SPINS};
use crate::pe::rank_state::Awaiting;
use crate::pe::requests::Completion;
use crate::pe::thread::Pe;

impl Pe {
    /// Looks for work for a while.
    pub(super) fn look_around(&mut self) -> bool {
        self.engine.idles.store(true, Ordering::Relaxed);
        let found = if self.engine.options.oversubscribed {
            (0..self.engine.yields_before_sleep()).any(|_| {
                std::thread::yield_now();
                self.progress() || self.engine.shared.job().ended() != Ended::Not
            })
        } else if self.engine.net.remote().is_none() {
            self.receivers.are_there() && self.look_patiently()
        } else {
            (0..self.engine.looks_before_sleep()).any(|_| self.look())
        };
        self.book_idle();
        if found {
            self.engine.back_offs = 0;
        }
        found
    }

    fn look(&mut self) -> bool {
        std::hint::spin_loop();
        (self.has_arrivals() || self.engine.net.has_backlog()) && self.progress()
    }

    fn look_patiently(&mut self) -> bool {
        let began = cycles::now();
        let mut last = began;
        loop {
            if (0..LOOKS).any(|_| self.look()) {
                return true;
            }
            let now = cycles::now();
            let patience = &mut self.engine.patience;
            if patience.ends_at_gap(cycles_between(last, now))
                || cycles_between(began, now) > patience.cycles()
            {
                return false;
            }
            last = now;
        }
    }

    /// Whether the running rank need not suspend to wait for idleness, as that is there now.
    pub(crate) fn is_idle_beside(&mut self) -> bool {
        !self.engine.timers.await_idleness()
            && self.would_yield_to_nobody()
            && !self.engine.running().notified
    }

    /// Looks for a while whether the running rank's request gets done, when there is nothing else
    /// to do: an answer from another PE comes sooner than two switches take.
    #[inline(always)]
    pub(crate) fn look_for(&mut self, request: u32, outcome: &Cell<Option<Completion>>) -> bool {
        self.may_look()
            && self.look_long(|engine| {
                outcome.set(engine.running().take_if_done(request));
                outcome.get().is_some()
            })
    }

    /// The same for whatever the running rank waits for. When it returns true the rank does not
    /// have to suspend.
    pub(crate) fn look_until_woken(&mut self) -> bool {
        // Notified already: it yields.
        if !self.may_look() || self.engine.running().notified {
            return false;
        }
        let found = self.look_long(|engine| engine.running().notified);
        if found {
            let state = self.engine.running();
            state.notified = false;
            state.awaiting = Awaiting::Nothing;
        }
        found
    }

    /// Takes what has come from other PEs, beside the running rank; whether there was anything. (The loop of the PE
    /// does so only once in some switches: a rank that looks for a message between two pieces of work would be told
    /// of it some pieces late, and what it has sent to other nodes would wait here as long.)
    #[inline(always)]
    pub(crate) fn take_arrivals(&mut self) -> bool {
        // A rank that offers itself cannot be moved before it suspends.
        (self.engine.net.has_remote() || self.has_arrivals())
            && self.engine.running().at_sync.is_none()
            && self.progress()
    }

    /// Whether the running rank would go on at once if it let the others run: none is ready, and nothing is to be
    /// done. To be asked after [`take_arrivals`](Self::take_arrivals). Not at every [`CALLS_BETWEEN_TURNS`]th call:
    /// timers, tokio and who wants to move the rank have their turns then.
    #[inline(always)]
    pub(crate) fn has_no_other_work(&mut self) -> bool {
        let engine = &mut self.engine;
        engine.calls_without_turn += 1;
        let goes_on = engine.calls_without_turn < CALLS_BETWEEN_TURNS
            && engine.ready.is_empty()
            && !engine.net.has_remote()
            && !engine.net.has_backlog()
            && !engine.has_kept()
            // A rank that offers itself cannot be moved before it suspends.
            && engine.running().at_sync.is_none();
        if !goes_on {
            engine.calls_without_turn = 0;
        }
        goes_on
    }

    /// Whether the running rank would go on at once if it let the others run. Where some are ready they run, whatever has
    /// come.
    #[inline(always)]
    pub(crate) fn would_yield_to_nobody(&mut self) -> bool {
        if !self.engine.ready.is_empty() {
            return false;
        }
        self.take_arrivals();
        self.has_no_other_work()
    }

    #[inline(always)]
    fn may_look(&mut self) -> bool {
        let alone = self.engine.ready.is_empty() && !self.engine.timers.await_idleness();
        let others = self.receivers.are_there() || self.engine.net.has_remote();
        // A rank that offers itself cannot be moved before it suspends.
        alone
            && others
            && !self.engine.options.oversubscribed
            && self.engine.running().at_sync.is_none()
    }

    #[inline(never)]
    fn look_long(&mut self, is_done: impl Fn(&mut Engine) -> bool) -> bool {
        self.engine.send_gathered();
        if let Some(remote) = self.engine.net.remote() {
            remote.flush();
        }
        self.engine.idles.store(true, Ordering::Relaxed);
        let mut found = false;
        let mut spins = 0;
        let mut unhurried = None;
        // What is to be done beside is done before something has come, if there is time: nobody waits for that.
        let mut rest_is_done = false;
        while spins < RANK_SPINS {
            spins += 1;
            let taken = self.rings_are_ready() && self.take_from_rings();
            found = taken && is_done(&mut self.engine);
            if found && rest_is_done {
                break;
            }
            if taken || !rest_is_done || self.has_arrivals_beside_rings() {
                rest_is_done = true;
                if self.progress_beside_rings() || taken {
                    found = found || is_done(&mut self.engine);
                    if found || !self.engine.ready.is_empty() {
                        break;
                    }
                }
            }
            if spins > RANK_SPINS / 4 {
                std::hint::spin_loop();
            }
            if spins == TIMED_SPINS {
                unhurried = Some(cycles::now());
            }
        }
        // This time was the PE's, not the rank's. To ask for the time takes as long as a look, so
        // the first spins are taken to last as long as others did.
        let mut waited = self.engine.look_time.of(spins.min(TIMED_SPINS));
        if let Some(began) = unhurried {
            let rest = cycles::now().wrapping_sub(began);
            if spins > 2 * TIMED_SPINS {
                self.engine.look_time.have_taken(spins - TIMED_SPINS, rest);
            }
            waited += rest;
        }
        self.engine.idles.store(false, Ordering::Relaxed);
        self.engine.idle += waited;
        self.engine.stamp = self.engine.stamp.wrapping_add(waited);
        if self.engine.has_observer() {
            self.engine.observe_look(waited);
        }
        found
    }
}
