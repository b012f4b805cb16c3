//! Deadlock: all ranks wait for each other.
//!
//! Before it sleeps, a PE publishes in shared memory that it is idle, whether its ranks wait only for messages, and how
//! many packets it has sent and taken. The last PE to become idle finds all others idle, too; if then as much was taken
//! as was sent, and no PE has a signal, nothing can ever happen again. The check reads all epochs (they grow with each
//! idling) before and after the rest, so that it notices a PE that woke, sent and slept again in between. Where nodes
//! share no memory, `pe::termination` asks instead.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::net::shared::{Ended, Idleness, PeBlock};
use crate::pe::core::Core;
use crate::pe::idle::policy::LOOK_FOR_THREADS;
use crate::pe::timers;
use vrt_slot::{foreign, image_thread};

impl Core {
    /// Whether a rank of this PE waits for something outside `vrt`, which holds its waker.
    #[inline(always)]
    pub(crate) fn waits_for_outside(&self) -> bool {
        self.wait_for_outside.load(Ordering::Acquire) > 0
    }

    /// Publishes that this PE is idle, and ends the job when all are and nothing is on its way.
    /// Returns whether its ranks wait for messages only. `awaits`: a timer or task may wake them.
    pub(super) fn become_idle(&mut self, awaits: bool) -> bool {
        let block = self.block();
        block.sent.store(self.net.sent_in_rings(), Ordering::Relaxed);
        block.received.store(self.received, Ordering::Relaxed);
        block.epoch.fetch_add(1, Ordering::SeqCst);
        // From now on a rank elsewhere that begins to wait for a lock says so; those that did before
        // are seen.
        block.idle.store(Idleness::Looking as u32, Ordering::SeqCst);
        let acts = self.threads_act();
        let outside = awaits || acts || self.waits_for_outside() || self.may_be_unlocked();
        let how = if outside { Idleness::Outside } else { Idleness::Messages };
        block.idle.store(how as u32, Ordering::SeqCst);
        if !outside && !self.shared.is_spread() && self.nothing_can_happen() {
            self.shared.job().end(Ended::Deadlock, vrt_slot::report::STATUS_RUNTIME);
            self.wake_all();
        }
        !outside
    }

    /// Whether threads that ranks have started do something, which may end the job: they have no part in MPI. Looked at
    /// once in a while; in between it is taken to be so.
    fn threads_act(&mut self) -> bool {
        if !image_thread::are_there() {
            return false;
        }
        let now = timers::monotonic();
        if now < self.next_look_at_threads {
            return true;
        }
        self.next_look_at_threads = now + LOOK_FOR_THREADS.as_nanos() as u64;
        image_thread::act()
    }

    /// Whether a thread may wake a rank that waits for a lock, here or in another PE of the node.
    fn may_be_unlocked(&self) -> bool {
        self.has_blocked_ranks()
            // What a thread did before it ended has come by the time that it is not seen any more.
            && (foreign::has_foreign_threads() || !self.injected.is_empty())
    }

    pub(super) fn has_blocked_ranks(&self) -> bool {
        self.at_locks.blocked > 0 || self.injected.others_wait()
    }

    fn nothing_can_happen(&self) -> bool {
        let blocks = || (0..self.shared.pes()).map(|pe| self.shared.pe(pe));
        // Mostly somebody does not wait, which is soon seen.
        let all_wait = || {
            let waits = Idleness::Messages as u32;
            blocks().all(|block| block.idle.load(Ordering::SeqCst) == waits)
        };
        // Each only grows, so the sum stays only if all do.
        let sum = |count: fn(&PeBlock) -> &AtomicU64| -> u64 {
            blocks().map(|block| count(block).load(Ordering::SeqCst)).fold(0, u64::wrapping_add)
        };
        if !all_wait() {
            return false;
        }
        let epochs = sum(|block| &block.epoch);
        all_wait()
            && sum(|block| &block.sent) == sum(|block| &block.received)
            && blocks().all(|block| block.signals.load(Ordering::SeqCst) == 0)
            && all_wait()
            && sum(|block| &block.epoch) == epochs
            && self.shared.job().ranks_left.load(Ordering::Acquire) > 0
    }
}
