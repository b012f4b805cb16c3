//! What the nodes of a job agree on if they share no memory: how many ranks are left, and whether
//! all ranks wait for each other.
//!
//! **Ranks left.** The node of PE 0 counts them; PEs of other nodes tell PE 0 about each rank that
//! has ended, and are told when none is left.
//!
//! **Deadlock** is detected in waves, as in Mattern's four counter method ("Algorithms for
//! distributed termination detection", Distributed Computing 2, 1987): PE 0, when it has been idle
//! for a while, asks every PE for its state; each answers when it is idle itself. If all wait only
//! for messages, and as many packets have been received as were sent, and the next wave finds
//! exactly the same numbers, then nothing happened in between and nothing ever will.
//!
//! ```text
//! PE 0: idle -- Ask(1) --> all      all: when idle -- Answer(1) --> PE 0
//!       all wait, sent = received? -- no --> later again
//!            | yes
//!       Ask(2) ... the same answers? -- yes --> Deadlock --> all: the job ends
//! ```
//!
//! These messages themselves are not counted among the packets.

use std::sync::atomic::Ordering;

use crate::net::parcel::{self, Topic};
use crate::net::shared::Ended;
use crate::pe::core::Core;
use crate::pe::inject;
use crate::pe::thread::Pe;
use crate::pe::timers::monotonic;
use crate::pe::waves::{ControlMessage, Snapshot};
use vrt_slot::report::STATUS_RUNTIME;

/// Nanoseconds from one wave that found somebody busy to the next.
const PERIOD: u64 = 50_000_000;

impl Pe {
    /// Answers who asked how this PE stands, and asks the others if it is time to. For a PE that is
    /// about to sleep; `waits`: only a message can wake its ranks.
    pub(crate) fn look_for_end(&mut self, waits: bool) {
        if !self.engine.shared.is_spread() {
            return;
        }
        let engine = &mut self.engine;
        let mut busy = engine.net.has_backlog();
        let mut received = engine.received;
        if let Some(remote) = engine.net.remote() {
            remote.flush();
            busy |= remote.is_busy();
            received += remote.counts().1;
        }
        let snapshot = Snapshot {
            waits: waits && !busy && engine.injected.is_empty(),
            sent: engine.net.sent() - engine.termination.told,
            received: received - engine.termination.heard,
            signals: inject::signals_given(),
        };
        if let Some(wave) = engine.termination.asked.take() {
            engine.tell_job(0, ControlMessage::Answer { wave, snapshot });
        }
        if engine.id == 0 && snapshot.waits {
            engine.compare_snapshots(snapshot);
        }
        if let Some(remote) = engine.net.remote() {
            remote.flush();
        }
    }
}

impl Core {
    /// A rank of this PE ends with a status other than 0, and the others run to completion: the job's status is that of
    /// the first such rank. Returns whether it is the first one that this node knows of.
    pub fn rank_fails(&mut self, status: i32) -> bool {
        let first = self.shared.job().fail(status);
        if first && self.shared.is_spread() && !self.shared.is_near(0) {
            self.tell_job(0, ControlMessage::Failed(status));
        }
        first
    }

    /// A rank has ended, of this PE or one that PE 0 was told of.
    pub(crate) fn count_ended(&mut self) {
        if self.shared.is_spread() && !self.shared.is_near(0) {
            return self.tell_job(0, ControlMessage::RankEnded);
        }
        if self.shared.job().ranks_left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if self.shared.is_spread() {
            self.tell_others(ControlMessage::Over(self.shared.job().final_status()));
        }
        self.wake_all();
    }

    /// Another PE has told something of the job.
    pub(super) fn job_news(&mut self, from: u32, control: ControlMessage) {
        self.termination.heard += 1;
        match control {
            ControlMessage::RankEnded => self.count_ended(),
            ControlMessage::Failed(status) => {
                let _: bool = self.shared.job().fail(status);
            }
            ControlMessage::Over(status) => {
                if status != 0 {
                    let _: bool = self.shared.job().fail(status);
                }
                self.shared.job().ranks_left.store(0, Ordering::Release);
                self.wake_all();
            }
            ControlMessage::Ask { wave } => self.termination.asked = Some(wave),
            ControlMessage::Answer { wave, snapshot } => {
                if wave == self.termination.wave
                    && let Some(answer) = self.termination.answers.get_mut(from as usize)
                {
                    *answer = Some(snapshot);
                }
            }
            ControlMessage::Deadlock => self.end_in_deadlock(),
        }
    }

    /// Looks at the answers of this wave, and begins another one when there is reason to.
    fn compare_snapshots(&mut self, own: Snapshot) {
        let now = monotonic();
        if self.termination.due == 0 {
            // Idle for the first time: the others may be about to begin.
            self.termination.due = now + PERIOD;
        }
        let termination = &mut self.termination;
        if termination.answers.is_empty() {
            if now >= termination.due {
                self.ask();
            }
            return;
        }
        termination.answers[0] = Some(own);
        let Some(all) = termination.answers.iter().copied().collect::<Option<Vec<_>>>() else {
            return;
        };
        termination.answers.clear();
        let sum = |count: fn(&Snapshot) -> u64| all.iter().map(count).sum::<u64>();
        let quiet = all.iter().all(|pe| pe.waits) && sum(|pe| pe.sent) == sum(|pe| pe.received);
        if quiet && termination.before.as_ref() == Some(&all) {
            self.tell_others(ControlMessage::Deadlock);
            self.end_in_deadlock();
        } else if quiet {
            termination.before = Some(all);
            self.ask();
        } else {
            termination.before = None;
            termination.due = now + PERIOD;
        }
    }

    fn ask(&mut self) {
        self.termination.wave = self.termination.wave.wrapping_add(1);
        self.termination.answers = vec![None; self.shared.pes()];
        self.tell_all(ControlMessage::Ask { wave: self.termination.wave });
    }

    fn end_in_deadlock(&mut self) {
        self.shared.job().end(Ended::Deadlock, STATUS_RUNTIME);
        self.wake_all();
    }

    /// Tells the PEs of other nodes.
    fn tell_others(&mut self, control: ControlMessage) {
        for pe in 0..self.shared.pes() as u32 {
            if !self.shared.is_near(pe) {
                self.tell_job(pe, control);
            }
        }
    }

    fn tell_all(&mut self, control: ControlMessage) {
        for pe in 0..self.shared.pes() as u32 {
            if pe != self.id {
                self.tell_job(pe, control);
            }
        }
    }

    fn tell_job(&mut self, to: u32, control: ControlMessage) {
        debug_assert_ne!(to, self.id, "PE 0 knows what PE 0 would tell it");
        self.termination.told += 1;
        parcel::send(&mut self.net, self.id, to, Topic::Job, &control);
    }
}
