//! The events that an observer of a PE receives: the basis of traces.
//!
//! Without an observer, each place costs one check. Times are stamps of the cycle counter; those between `from` and
//! `to` of [`Event::Ran`] and [`Event::Idle`] follow each other from the PE's beginning on, without a gap except for
//! the time in which the PE takes in a rank, and the times of a rank add up to its [`Counters`](super::Counters).

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Core, Pe, Status, in_rank, with};
use crate::mailbox::Pattern;
use crate::net::Packet;

/// Receives the events of a PE, on the PE's thread and the process's heap.
pub trait Observer {
    /// Something has happened just now.
    fn observe(&mut self, event: Event<'_>);
}

/// An event. Ranks are ranks of the job.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A rank has run.
    Ran {
        /// The rank.
        rank: u32,
        /// When it began.
        from: u64,
        /// When it stopped.
        to: u64,
        /// What it does next.
        then: Then,
    },
    /// No rank could run.
    Idle {
        /// When that began.
        from: u64,
        /// When it ended.
        to: u64,
    },
    /// A rank has sent a message.
    Sent(Envelope),
    /// A message has been matched. Its sender may still wait for that, and its data may arrive later.
    Matched(Envelope),
    /// A rank has sent a message, which was matched at once.
    SentAndMatched(Envelope),
    /// The receive of a message was cancelled: the message waits for another one.
    PutBack {
        /// The receiver.
        rank: u32,
    },
    /// A rank has begun a collective operation.
    CollectiveBegins {
        /// The rank.
        rank: u32,
        /// The operation's context.
        context: u32,
        /// The call, if it is known.
        call: &'static str,
    },
    /// A rank has finished its part in the first collective operation of the context that it has begun.
    CollectiveEnds {
        /// The rank.
        rank: u32,
        /// The operation's context.
        context: u32,
        /// The call, if it is known.
        call: &'static str,
    },
    /// A rank has left for another PE.
    Leaves {
        /// The rank.
        rank: u32,
        /// The destination PE.
        to: u32,
        /// Bytes transferred.
        bytes: u64,
        /// How it moves.
        by: By,
    },
    /// A rank has arrived from another PE.
    Comes {
        /// The rank.
        rank: u32,
        /// The source PE.
        from: u32,
    },
    /// A rank was to move and could not.
    Stays {
        /// The rank.
        rank: u32,
        /// What pins it.
        why: &'a str,
    },
    /// A balancing step has found the loads, and decided.
    Step {
        /// Number of the step.
        number: u32,
        /// The strategy that decides.
        strategy: &'a str,
        /// Every rank that has not ended.
        ranks: &'a [Placed],
    },
    /// A rank has entered a region of its program.
    RegionBegins {
        /// The rank.
        rank: u32,
        /// The program's name for it.
        name: &'a str,
    },
    /// A rank has left the region that it entered last.
    RegionEnds {
        /// The rank.
        rank: u32,
    },
    /// A rank's program has ended.
    Over {
        /// The rank.
        rank: u32,
        /// Cycles for which it has run.
        run: u64,
        /// How often it has stopped running.
        switches: u64,
        /// Messages that it has sent.
        messages: u64,
        /// Bytes in those.
        bytes: u64,
    },
}

/// What a rank does after it has stopped running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is ready to run.
    Ready,
    /// It continues running: the PE polled whether what it waits for would arrive soon.
    Looks,
    /// It waits in a call.
    Waits {
        /// The call, or empty.
        call: &'static str,
        /// The partner, as a rank of the communicator; `ANY` for any, `None` if there is none.
        partner: Option<i32>,
    },
    /// Its program has ended.
    Over,
}

/// How a rank moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Inside a node: its slot changes owner.
    HandOver,
    /// To another node, with its memory.
    Memory,
    /// By its encoded state.
    State,
}

impl By {
    /// How a rank moves with its memory.
    pub(crate) fn within(is_near: bool) -> By {
        if is_near { By::HandOver } else { By::Memory }
    }
}

/// A message, in flight or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sending rank of the job.
    pub from: u32,
    /// The destination rank of the job.
    pub to: u32,
    /// Its index among the messages from this rank to that one.
    pub sequence: u32,
    /// Its context.
    pub context: u32,
    /// Its tag.
    pub tag: i32,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Envelope {
    pub(crate) fn of(packet: &Packet) -> Envelope {
        let Packet { from, to, sequence, context, tag, .. } = *packet;
        Envelope { from, to, sequence, context, tag, bytes: packet.message_len() }
    }
}

/// A rank in a balancing step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The rank.
    pub rank: u32,
    /// Its current PE.
    pub at: u32,
    /// The PE that it is assigned to.
    pub to: u32,
    /// Time that it has run since the last step.
    pub seconds: f64,
    /// Live bytes of its memory.
    pub bytes: u64,
    /// Whether it is pinned.
    pub pinned: bool,
}

/// A PE of this process is observed.
static OBSERVED: AtomicBool = AtomicBool::new(false);

/// Whether there can be observers. If built with `--cfg vrt_unobserved` there are none, and no place checks for one:
/// `scripts/bench --tracing` compares with that.
pub const CAN_BE_OBSERVED: bool = cfg!(not(vrt_unobserved));

/// Whether a PE of this process is observed.
#[inline(always)]
pub fn is_observed() -> bool {
    CAN_BE_OBSERVED && OBSERVED.load(Ordering::Relaxed)
}

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
        let (from, now) = (self.observed_until, super::cycle_counter());
        let began = now.wrapping_sub(waited);
        let rank = self.current;
        self.observed_until = now;
        self.observe(Event::Ran { rank, from, to: began, then: Then::Looks });
        self.observe(Event::Idle { from: began, to: now });
    }

    /// A rank's program is over.
    #[cold]
    #[inline(never)]
    pub(super) fn observe_end(&mut self, rank: u32, state: &super::RankState) {
        debug_assert_eq!(state.status, Status::Ended);
        let sent = state.peers.iter().fold((0, 0), |(messages, bytes), (_, peer)| {
            (messages + peer.messages, bytes + peer.bytes)
        });
        let super::Counters { run, switches, .. } = state.counters;
        self.observe(Event::Over { rank, run, switches, messages: sent.0, bytes: sent.1 });
    }
}

impl Pe {
    /// Removes the observer: the PE has ended.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.engine.core.observer.take()
    }
}
